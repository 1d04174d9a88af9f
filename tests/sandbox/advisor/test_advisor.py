"""The Advisor: each break of the interface's guidance is found, and what is allowed is not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal

import attrs
import pytest

from payments_async import Instrument, OutcomeUnknown
from payments_async._http.transport import AiohttpTransport
from payments_async._runtime import SYSTEM
from payments_async.sandbox import Sandbox, SandboxLimits, VirtualClock, _service
from payments_async.sandbox._common.profiles import OBSERVED
from payments_async.sandbox._journal import LoggedExchange, WebhookTried
from payments_async.sandbox.advisor import HEADINGS, Finding, advise
from payments_async.sandbox.advisor._evidence import evidence_from
from payments_async.sandbox.advisor._webhooks import watched
from tests.sandbox.raw_requests import INTENT, PAYOUT, TRIED, Api
from tests.support.jumping import JumpingRuntime

CHECKOUTS, INTENTS, PAYOUTS = "/payment/checkouts", "/payment/intents", "/payouts"
ORDER = {**INTENT, "entity_id": "order-1"}
ONE, TWO, THREE = ({"idempotency_key": f"key-0000{number}"} for number in (1, 2, 3))
UNNAMED = {"metadata": {"n": 1}}
FAILING = {"metadata": {"sandbox_scenario": "fail:NO_FUNDS immediate"}}
PENDING = {"metadata": {"sandbox_scenario": "hang"}}


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine's clock stands still as the sandbox's does, however busy the machine is."""
    monkeypatch.setattr(_service, "real_seconds", float)


def findings(sandbox: Sandbox) -> list[Finding]:
    found = advise(sandbox.entries(), sandbox.clock.now())
    for finding in found:
        assert finding.why
        assert finding.fix
        assert finding.section
        assert all(sandbox.journal.with_causes(request) for request in finding.requests)
    return found


def rules(sandbox: Sandbox) -> list[str]:
    return [finding.rule for finding in findings(sandbox)]


# --- what a program does ------------------------------------------------------------------------

Step = Callable[[Api], object]


def pay(reference: str | None = "r-1", **options: Any) -> Step:
    """A payout."""
    return lambda api: api.payout(reference=reference, **options)


def post(path: str, body: object = INTENT, **options: Any) -> Step:
    return lambda api: api.post(path, body, **options)


def get(path: str) -> Step:
    return lambda api: api.get(path)


def wait(seconds: float) -> Step:
    return lambda api: api.sandbox.advance(seconds)


def ask(method: str, **headers: str) -> Step:
    """A request with headers of its own."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda api: api.sandbox.handle(method, f"/v1{PAYOUTS}", named)


def read_attempt(api: Api) -> None:
    """Read the newest attempt."""
    payment = api.sandbox.books.payments()[-1]
    api.get(f"{INTENTS}/{payment.id}/attempts/{payment.attempts[-1]}")


def read_checkout(api: Api) -> None:
    """Read the newest checkout."""
    (session,) = api.sandbox._core.world.tenants[api.key].sessions
    api.get(f"{CHECKOUTS}/{session}")


def pay_checkout(api: Api) -> None:
    """A payer pays the newest payment."""
    api.sandbox.pay(api.sandbox.books.payments()[-1].id)


def sync(api: Api) -> None:
    """A live read of the newest payout."""
    api.sync(api.sandbox.books.payouts()[-1].id)


def replay(api: Api) -> None:
    """The inspector's button."""
    request = api.sandbox.requests[0].request_id
    path = f"/_sandbox/api/requests/{request}/replay"
    api.sandbox.handle("POST", path, {"Content-Type": "application/json"}, b"")


def deliver(event: str = "payout.completed", status: int | None = 204, *, listened: bool = False) -> Step:
    """A webhook of the newest payout is tried."""

    def act(api: Api) -> None:
        payout, at = api.sandbox.books.payouts()[-1].id, api.sandbox.clock.now()
        tried = WebhookTried(at, "wh_1", payout, event, status, None, only_listened=listened)
        api.sandbox.journal.add(tried)

    return act


PAID = [pay(None), wait(5)]
DELIVERED = [*PAID, deliver()]
NEXT = [wait(60), post(INTENTS)]
CLOSE_PAIRS = [pay(**ONE, scenario="http:503*9"), pay(**ONE, scenario="http:503*9")]

ALLOWED: Mapping[str, Sequence[Step]] = {
    "equal payouts, each with its reference": [pay("r-1", **ONE), pay("r-2", **TWO)],
    "an unnamed payout after an equal one that failed": [
        pay(None, **ONE, **FAILING),
        pay(None, **TWO, **UNNAMED),
    ],
    "nothing": [],
    "the same sold again to the next customer": [post(CHECKOUTS), wait(30)] * 5,
    "one post each": [pay("r-1"), pay("r-2")],
    "what was refused is sent anew": [pay(amount=0), pay(amount=0)],
    "two customers buy the same": [post(INTENTS, **ONE), post(INTENTS, **TWO)],
    "what a 422 refused is paid under a new key": [pay(amount=0, **ONE), pay(amount=0, **TWO)],
    "what a 428 refused is paid under a new key": [pay(idempotency_key="short"), pay(**TWO)],
    "what a 429 kept out is paid under a new key": [pay(**ONE, scenario="429:10"), wait(10), pay(**TWO)],
    "a key is used again after a day": [pay("r-1", **ONE), wait(86_400), pay("r-2", **ONE)],
    "a retry in time": [pay(**ONE, scenario="429:10"), wait(10), pay(**ONE)],
    "other requests need not wait for a 429": [
        pay("r-1", **ONE, scenario="429:10"),
        pay("r-2", **TWO),
        get("/nowhere"),
        get("/nowhere"),
    ],
    "one loop with back-off: full jitter comes close to nothing now and then": [
        step
        for pause in (0.01, 0.4, 0.02, 3.0, 5.0)
        for step in (pay(**ONE, scenario="http:503*9"), wait(pause))
    ],
    "polling every five seconds": [post(INTENTS, {**TRIED, **PENDING}), *[read_attempt, wait(5.0)] * 10],
    "polling more slowly": [post(INTENTS, {**TRIED, **PENDING}), *[read_attempt, wait(7.5)] * 10],
    "two readings at once: a payer comes back while a webhook arrives": [
        post(INTENTS, {**TRIED, **PENDING}),
        *[read_attempt, read_attempt, wait(60)] * 3,
    ],
    "a list that changes": [step for n in range(6) for step in (get(PAYOUTS), pay(f"r-{n}"))],
    "a list with nothing open": [pay(), wait(10), *[get("/payouts?status=failed"), get(PAYOUTS)] * 4],
    "a final record read now and then": [
        post(CHECKOUTS),
        pay_checkout,
        *[read_checkout] * 3,
        wait(3_600),
        read_checkout,
    ],
    "live operations beside normal reads": [pay(**PENDING), *[get(PAYOUTS), sync, wait(10)] * 3],
    "a webhook after which the list was read": [*DELIVERED, wait(2), get(PAYOUTS), *NEXT],
    "a webhook after which the record was read": [*DELIVERED, wait(2), sync, *NEXT],
    "a webhook of just now": DELIVERED,
    "a webhook about no end": [pay(None), deliver("payout.created"), *NEXT],
    "a webhook that was refused": [pay(None), deliver(status=500), *NEXT],
    "a webhook without an answer": [pay(None), deliver(status=None), *NEXT],
    "a webhook to a mere listener": [*PAID, deliver(listened=True), *NEXT],
    "a person opens the address": [ask("GET", sec_fetch_site="none", sec_fetch_mode="navigate")],
    "fetch of a JavaScript server": [ask("GET", sec_fetch_mode="cors")],
    "a preflight without a key": [ask("OPTIONS", origin="https://shop.test")],
    "what the inspector sent again": [pay(), *[replay] * 4],
    "bodies that are no JSON name nothing": [
        post(PAYOUTS, body, **key) for key in (ONE, TWO) for body in (b"[1]", b"{")
    ],
}


@pytest.mark.parametrize("name", ALLOWED)
def test_what_is_allowed_is_not_found(api: Api, sandbox: Sandbox, name: str) -> None:
    for step in ALLOWED[name]:
        step(api)
    assert findings(sandbox) == []


@attrs.frozen
class Mistake:
    """What a program did, the rule that finds it, and which of its requests show it (all when None)."""

    steps: Sequence[Step]
    rule: str
    requests: Sequence[int] | None = None
    subject: str | None = None
    says: str = ""
    """Part of the title."""


FOUND: Mapping[str, Mistake] = {
    "equal payouts without references, an hour apart": Mistake(
        [pay(None, **ONE), wait(3_600), pay(None, **TWO, **UNNAMED)],
        "paid_again",
        says="2 equal payouts made without a reference",
    ),
    "an unnamed payout after a named one whose answer was lost": Mistake(
        [pay("r-1", **ONE, scenario="lost_response"), pay(None, **TWO)], "paid_again"
    ),
    **{
        f"three posts to {path} without a key": Mistake([post(path, body), wait(10)] * 3, "post_without_key")
        for path, body in ((PAYOUTS, PAYOUT), (INTENTS, INTENT), (CHECKOUTS, INTENT))
    },
    "a second try, seconds after the fifth customer's": Mistake(
        [*[post(CHECKOUTS), wait(30)] * 5, post(CHECKOUTS), wait(5), post(CHECKOUTS)],
        "post_without_key",
        (5, 6),
        says="sent 2 times without",
    ),
    "a program that was started again": Mistake(
        [*[post(CHECKOUTS, ORDER), wait(1)] * 2, wait(3_600), *[post(CHECKOUTS, ORDER), wait(1)] * 2],
        "post_without_key",
        says="sent 4 times in 2 runs without",
    ),
    "a try in doubt, repeated an hour later": Mistake(
        [post(CHECKOUTS, scenario="lost_response"), wait(3_600), post(CHECKOUTS)], "post_without_key"
    ),
    "a named order, repeated an hour later": Mistake(
        [post(CHECKOUTS, ORDER), wait(3_600), post(CHECKOUTS, ORDER)], "post_without_key"
    ),
    "a repeat that only its reference stopped": Mistake(
        [pay(scenario="lost_response"), wait(3_600), pay()], "post_without_key", subject="r-1"
    ),
    "a retry with a new key": Mistake(
        [post(INTENTS, **ONE, scenario="lost_response"), wait(10), post(INTENTS, **TWO)], "two_keys"
    ),
    "a named payout under two keys": Mistake([pay(**ONE), pay(**TWO)], "two_keys", subject="r-1"),
    "a payout under two keys after a 429": Mistake(
        [pay(**ONE, scenario="429:10"), wait(10), pay(**TWO), pay(**THREE)], "two_keys", (1, 2)
    ),
    "one key for two bodies": Mistake(
        [pay("r-1", **ONE), pay("r-2", **ONE), pay("r-2", **TWO)],
        "one_key",
        (0, 1),
        "r-1",
        "2 bodies under one idempotency key",
    ),
    "one key for two bodies within a day": Mistake(
        [pay("r-1", **ONE), wait(86_400), pay("r-2", **ONE), wait(86_399), pay("r-3", **ONE)],
        "one_key",
        (1, 2),
    ),
    "a read that comes again too early": Mistake(
        [lambda api: api.get(PAYOUTS, scenario="429:10"), get(PAYOUTS)], "early_retry", subject="/v1/payouts"
    ),
    "tries side by side": Mistake(
        [pay(None, **ONE, scenario="http:503*9")] * 4, "parallel_loops", subject="key-00001"
    ),
    "pairs at the same moments": Mistake(
        [step for pause in (0.5, 1.0, 2.0) for step in (*CLOSE_PAIRS, wait(pause))], "parallel_loops"
    ),
    "polling every two seconds": Mistake(
        [post(INTENTS, {**TRIED, **PENDING}), *[read_attempt, wait(2)] * 4], "polling_too_fast", (1, 2, 3, 4)
    ),
    "polling a checkout": Mistake([post(CHECKOUTS), *[read_checkout] * 3], "polling_too_fast", (1, 2, 3)),
    "an unchanged list": Mistake(
        [pay(**PENDING), wait(10), *[get("/payouts?per_page=5")] * 5], "polling_too_fast", (1, 2, 3, 4, 5)
    ),
    "polling after the end": Mistake(
        [post(INTENTS, TRIED), *[read_attempt, wait(5)] * 6], "polling_after_final", (2, 3, 4, 5, 6)
    ),
    "live operations in place of reads": Mistake(
        [pay(**PENDING), *[sync, wait(10)] * 3], "live_reads", (1, 2, 3)
    ),
    "a webhook that was believed": Mistake([*DELIVERED, *NEXT], "webhook_trusted", ()),
    "a webhook that was believed, and no request after it": Mistake(
        [*DELIVERED, wait(60)], "webhook_trusted", ()
    ),
    "a key in a browser": Mistake([ask("GET", origin="https://shop.test")], "key_in_browser"),
    "a key in a browser's script": Mistake(
        [ask("GET", sec_fetch_site="cross-site", sec_fetch_mode="cors")], "key_in_browser"
    ),
    "a preflight for a key": Mistake(
        [
            ask(
                "OPTIONS",
                origin="https://shop.test",
                access_control_request_headers="Authorization, Content-Type",
            )
        ],
        "key_in_browser",
    ),
}
SEVERITIES = {
    **dict.fromkeys(("polling_too_fast", "polling_after_final", "live_reads", "early_retry"), "limits"),
    "key_in_browser": "secret",
}
"""Of all other rules it is money."""


@pytest.mark.usefixtures("still")
@pytest.mark.parametrize("name", FOUND)
def test_a_mistake_is_found_with_the_requests_that_show_it(api: Api, sandbox: Sandbox, name: str) -> None:
    mistake = FOUND[name]
    for step in mistake.steps:
        step(api)
    (finding,) = findings(sandbox)
    asked = [one.request_id for one in sandbox.requests]
    places = range(len(asked)) if mistake.requests is None else mistake.requests
    assert (finding.rule, finding.requests) == (mistake.rule, tuple(asked[place] for place in places))
    assert finding.severity == SEVERITIES.get(mistake.rule, "money")
    assert mistake.subject in (None, finding.subject)
    assert mistake.says in finding.title
    assert api.key not in repr(finding)


def test_a_repeat_that_only_its_reference_stopped_says_so(api: Api, sandbox: Sandbox) -> None:
    for _ in range(2):
        api.payout(reference="r-1", scenario="lost_response")
    (finding,) = findings(sandbox)
    assert "Only the payout's reference" in finding.why


def test_two_projects_have_nothing_to_do_with_each_other(api: Api, stranger: Api, sandbox: Sandbox) -> None:
    for mine, theirs in (
        (pay(None, amount=11), pay(None, amount=11)),
        (pay("r-1", **ONE), pay("r-2", **ONE)),
    ):
        mine(api)
        theirs(stranger)
    assert findings(sandbox) == []


def test_what_endangers_money_comes_first(api: Api, sandbox: Sandbox) -> None:
    for step in (ask("GET", origin="https://shop.test"), pay(), pay()):
        step(api)
    assert rules(sandbox) == ["post_without_key", "key_in_browser"]


# --- one key for two bodies, in every profile ---------------------------------------------------


@pytest.mark.parametrize("profile", ["observed", "alternate", "hostile", "strict"])
def test_a_lost_try_sent_again_with_another_body_is_found(profile: str) -> None:
    sandbox = Sandbox(clock=VirtualClock.frozen(), profile=profile)
    api = Api(sandbox, sandbox.api_key)
    api.post(INTENTS, INTENT, **ONE, scenario="lost_response")
    api.post(INTENTS, {**INTENT, "amount": 51}, **ONE)
    assert "one_key" in rules(sandbox)


def test_a_corrected_body_under_the_key_of_a_refusal_that_is_not_kept_is_allowed() -> None:
    lenient = Sandbox(clock=VirtualClock.frozen(), profile="alternate")  # keeps no refusals
    api = Api(lenient, lenient.api_key)
    api.payout(amount=0, **ONE)
    assert api.payout(**ONE).status < 300
    assert findings(lenient) == []
    api.payout(amount=0, **TWO)
    api.payout(amount=0, reference="r-2", **TWO)  # wrong by itself
    api.payout(reference="r-3")
    api.payout(reference="r-3", **TWO)  # taken, by another key's
    assert "one_key" not in rules(lenient)


@pytest.mark.parametrize("reused_key", ["conflict", "replay", "invalid"])
@pytest.mark.parametrize("errors", ["lists", "texts", "nested"])
def test_a_corrected_body_is_found_however_the_service_takes_a_used_key(
    reused_key: Literal["conflict", "replay", "invalid"], errors: Literal["lists", "texts", "nested"]
) -> None:
    profile = attrs.evolve(OBSERVED, reused_key=reused_key, errors=errors)
    sandbox = Sandbox(clock=VirtualClock.frozen(), profile=profile)
    api = Api(sandbox, sandbox.api_key)
    api.payout(amount=0, **ONE)
    assert api.payout(**ONE).status >= 400
    assert rules(sandbox) == ["one_key"]


# --- Retry-After --------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", ["observed", "hostile"])  # seconds, and a date
def test_a_retry_before_its_time_is_found(profile: str) -> None:
    sandbox = Sandbox(clock=VirtualClock.frozen(), profile=profile)
    api = Api(sandbox, sandbox.api_key)
    sandbox.on("payouts.create").respond("429:10")
    api.payout(**ONE)
    sandbox.advance(5)
    api.payout(**ONE)
    (finding,) = findings(sandbox)
    assert finding.rule == "early_retry"
    assert "5.0 s after a 429 that asked for 10 s" in finding.title


def test_a_retry_after_that_cannot_be_read_is_not_judged(api: Api, sandbox: Sandbox) -> None:
    api.get(PAYOUTS, scenario="429:10")
    api.get(PAYOUTS, scenario="slow:1")
    entries = sandbox.entries()
    assert isinstance(entries[0].item, LoggedExchange)
    entries[0].item.retry_after = "soon"
    assert advise(entries) == []


# --- webhooks -----------------------------------------------------------------------------------


def test_the_events_of_one_record_are_one_finding(api: Api, sandbox: Sandbox) -> None:
    for step in (*DELIVERED, wait(60), deliver("payout.failed"), wait(60)):
        step(api)
    (finding,) = findings(sandbox)
    assert finding.title.startswith("payout.completed and payout.failed were accepted")
    assert finding.subject == sandbox.books.payouts()[0].id
    assert finding.webhooks == ("wh_1", "wh_1")


def test_a_delivery_is_watched_until_its_record_is_read_or_time_has_passed(
    api: Api, sandbox: Sandbox
) -> None:
    for step in DELIVERED:
        step(api)
    assert watched(evidence_from(sandbox.entries(), sandbox.clock.now())) == 1
    sandbox.advance(60)  # and no request comes
    assert advise(sandbox.entries()) == []
    said = json.loads(sandbox.handle("GET", "/_sandbox/api/advice").body)
    assert ([one["rule"] for one in said["findings"]], said["watched"]) == (["webhook_trusted"], 0)
    api.payout()
    for step in (wait(5), deliver(), sync):
        step(api)
    assert watched(evidence_from(sandbox.entries(), sandbox.clock.now())) == 0


# --- our own client -----------------------------------------------------------------------------


@pytest.fixture
def serving() -> Iterator[Sandbox]:
    limits = SandboxLimits(writes=30)
    with Sandbox(clock=VirtualClock.frozen(), limits=limits) as sandbox:
        yield sandbox


async def test_our_own_client_gives_no_reason_for_advice(
    serving: Sandbox, connect: Callable[..., Any]
) -> None:
    runtime = JumpingRuntime(on_jump=serving.advance)
    client = connect(
        serving, runtime=runtime, transport=runtime.wrap(AiohttpTransport(runtime=SYSTEM)), max_retries=5
    )
    wallet = Instrument.phone("+22990000000", "BJ")
    serving.on("payouts.create").respond("lost_response http:503 429:2 cut_body", times=1)
    serving.on("payouts.list").respond("429:7")

    async def pay(number: int) -> Any:
        return await client.payouts.create(
            amount=Decimal("10.10"), currency="GHS", method="m", instrument=wallet, reference=f"r-{number}"
        )

    made = [await pay(number) for number in range(3)]
    made += await asyncio.gather(*(pay(number) for number in range(3, 40)))  # more than the limit
    waited = await asyncio.gather(*(client.payouts.wait(payout) for payout in made))
    assert all(payout.is_successful for payout in waited)
    for number in (0, 1, 2, 3):
        assert await client.payouts.find(f"r-{number}") is not None

    checkouts = [await client.checkouts.create(amount=50, currency="XOF") for _ in range(2)]
    for checkout in checkouts:
        serving.pay(checkout.checkout.id, outcome="complete after=30s")
        await client.checkouts.wait(checkout.checkout.id)
        await client.checkouts.retrieve(checkout.checkout.id)
    await client.payouts.sync(made[0].id)
    serving.on("payouts.create").respond("http:503", times=6)
    with pytest.raises(OutcomeUnknown) as unknown:
        await pay(100)
    assert (await client.resolve(unknown.value)).reference == "r-100"

    assert findings(serving) == []
    assert len(serving.requests) > 60


# --- what is accepted without a word ------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "change", "title"),
    [
        (PAYOUTS, {"currency": "AAA"}, "AAA is no currency of ISO 4217"),
        (PAYOUTS, {"amount": 10.001}, "the amount has more decimals than GHS, which has 2"),
        (INTENTS, {"amount": 10.5}, "the amount has more decimals than XOF, which has 0"),
        (PAYOUTS, {"method": "+22990000000"}, "the method has not the form of a method's code"),
        (PAYOUTS, {"method": "bank_transfer"}, "the instrument is a phone, and the method is bank_transfer"),
        (PAYOUTS, {"refrence": "r-2"}, "refrence is no field; reference is one"),
        (
            CHECKOUTS,
            {"customer": {"firstName": "Ada"}},
            "customer.firstName is no field; customer.first_name is one",
        ),
        (CHECKOUTS, {"return_url": "/thanks"}, "return_url is no http or https address"),
        (PAYOUTS, {"webhook_url": "shop.test/hook"}, "webhook_url is no http or https address"),
    ],
)
def test_what_may_be_accepted_and_mean_something_else_is_shown(
    api: Api, sandbox: Sandbox, path: str, change: Mapping[str, object], title: str
) -> None:
    body = {**(PAYOUT if path == PAYOUTS else INTENT), "currency": "GHS" if path == PAYOUTS else "XOF"}
    for number in range(2):
        named = {"reference": f"r-{number}"} if path == PAYOUTS else {}
        api.post(path, {**body, **named, **change}, idempotency_key=f"key-0000{number}")
    assert rules(sandbox) == ["accepted_as_is"]
    (finding,) = findings(sandbox)
    assert finding.title.partition(": ")[2] == title
    assert len(finding.requests) == 2
    assert finding.severity == "request"


@pytest.mark.parametrize(
    "change",
    [
        {"sender_name": "a field of a newer interface"},
        {"method": "moov_bj"},
        {"method": "own_code_7"},
        {"webhook_url": "http://127.0.0.1:9/hook"},
        {"customer": {"first_name": "Ada", "loyalty": "gold"}},
        {"amount": 10.50, "currency": "GHS"},
    ],
)
def test_what_can_be_meant_is_no_finding(api: Api, sandbox: Sandbox, change: Mapping[str, object]) -> None:
    api.post(PAYOUTS, {**PAYOUT, **change}, idempotency_key="key-00001")
    assert findings(sandbox) == []


def test_a_repeated_checkout_is_another_page_and_not_a_second_payment(api: Api, sandbox: Sandbox) -> None:
    for _ in range(2):
        api.post(CHECKOUTS, ORDER)
    (finding,) = findings(sandbox)
    assert finding.why == "Each repeat makes another page to pay on: a payer who is given both can pay twice."


def test_every_rule_finds_a_mistake() -> None:
    assert {mistake.rule for mistake in FOUND.values()} | {"accepted_as_is"} == set(HEADINGS)
