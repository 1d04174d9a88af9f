"""The Advisor: each break of the interface's guidance is found, and what is allowed is not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, Literal

import attrs
import pytest

from payments_async import Instrument, OutcomeUnknown
from payments_async._http.transport import AiohttpTransport
from payments_async._runtime import SYSTEM
from payments_async.sandbox import Sandbox, SandboxLimits, VirtualClock
from payments_async.sandbox._journal import JournalEntry, LoggedExchange, WebhookTried
from payments_async.sandbox.advisor.advisor import Finding, advise
from payments_async.sandbox.advisor.evidence import evidence_from
from payments_async.sandbox.advisor.webhooks import watched
from payments_async.sandbox.common.profiles import OBSERVED
from tests.sandbox.raw_requests import INTENT, PAYOUT, TRIED, Api
from tests.support.jumping import JumpingRuntime


def findings(sandbox: Sandbox) -> list[Finding]:
    found = advise(sandbox.entries(), sandbox.clock.now())
    for finding in found:
        assert finding.why
        assert finding.fix
        assert finding.section
        assert all(sandbox.journal.exchange(request) is not None for request in finding.requests)
    return found


def rules(sandbox: Sandbox) -> list[str]:
    return [finding.rule for finding in findings(sandbox)]


def requests(sandbox: Sandbox) -> tuple[str, ...]:
    return tuple(one.request_id for one in sandbox.requests)


def test_an_empty_journal_has_nothing_to_mend(sandbox: Sandbox) -> None:
    assert findings(sandbox) == []


# --- POST repeated without a key ----------------------------------------------------------------


@pytest.mark.parametrize("path", ["/payouts", "/payment/intents", "/payment/checkouts"])
def test_a_post_repeated_without_a_key_is_found(sandbox: Sandbox, api: Api, path: str) -> None:
    body = PAYOUT if path == "/payouts" else INTENT
    for _ in range(3):
        api.post(path, body)
        sandbox.advance(10)
    (finding,) = findings(sandbox)
    assert (finding.rule, finding.severity, finding.requests) == (
        "post_without_key",
        "money",
        requests(sandbox),
    )


def test_the_same_sold_again_to_the_next_customer_is_no_repeat(api: Api, sandbox: Sandbox) -> None:
    for _ in range(5):
        api.post("/payment/checkouts", INTENT)
        sandbox.advance(30)
    assert findings(sandbox) == []
    api.post("/payment/checkouts", INTENT)  # another try, seconds after the fifth customer's
    sandbox.advance(5)
    api.post("/payment/checkouts", INTENT)
    (finding,) = findings(sandbox)
    assert finding.requests == requests(sandbox)[-2:]
    assert "sent 2 times without" in finding.title


def test_a_program_that_was_started_again_is_told_as_a_run_of_its_own(api: Api, sandbox: Sandbox) -> None:
    for _ in range(2):
        for _ in range(2):
            api.post("/payment/checkouts", {**INTENT, "entity_id": "order-1"})
            sandbox.advance(1)
        sandbox.advance(3600)
    (finding,) = findings(sandbox)
    assert "sent 4 times in 2 runs without" in finding.title


def test_a_try_in_doubt_or_a_named_thing_is_repeated_however_late(api: Api, sandbox: Sandbox) -> None:
    api.post("/payment/checkouts", INTENT, scenario="lost_response")
    sandbox.advance(3600)
    api.post("/payment/checkouts", INTENT)
    assert [finding.requests for finding in findings(sandbox)] == [requests(sandbox)]
    api.post("/payment/checkouts", {**INTENT, "entity_id": "order-1"})
    sandbox.advance(3600)
    api.post("/payment/checkouts", {**INTENT, "entity_id": "order-1"})
    assert [finding.requests for finding in findings(sandbox)] == [
        requests(sandbox)[:2],
        requests(sandbox)[2:],
    ]


def test_one_post_without_a_key_and_other_bodies_are_not_a_repeat(api: Api, sandbox: Sandbox) -> None:
    api.payout(reference="r-1")
    api.payout(reference="r-2")
    assert findings(sandbox) == []


def test_a_post_that_was_refused_may_be_sent_anew(api: Api, sandbox: Sandbox) -> None:
    api.payout(amount=0)
    api.payout(amount=0)
    assert findings(sandbox) == []


def test_a_repeat_that_only_its_reference_stopped_is_found(api: Api, sandbox: Sandbox) -> None:
    api.payout(reference="r-1", scenario="lost_response")
    sandbox.advance(3600)
    assert api.payout(reference="r-1").status == 409
    (finding,) = findings(sandbox)
    assert (finding.rule, finding.subject, finding.requests) == ("post_without_key", "r-1", requests(sandbox))
    assert "Only the payout's reference" in finding.why


def test_two_projects_do_not_repeat_each_other(api: Api, stranger: Api, sandbox: Sandbox) -> None:
    api.payout()
    stranger.payout()
    assert findings(sandbox) == []


# --- one body under two keys --------------------------------------------------------------------


def test_a_retry_with_a_new_key_is_found(api: Api, sandbox: Sandbox) -> None:
    api.post("/payment/intents", INTENT, idempotency_key="key-00001", scenario="lost_response")
    sandbox.advance(10)
    api.post("/payment/intents", INTENT, idempotency_key="key-00002")
    (finding,) = findings(sandbox)
    assert (finding.rule, finding.requests) == ("two_keys", requests(sandbox))


def test_one_named_payout_under_two_keys_is_found(api: Api, sandbox: Sandbox) -> None:
    api.payout(reference="r-1", idempotency_key="key-00001")
    api.payout(reference="r-1", idempotency_key="key-00002")
    (finding,) = findings(sandbox)
    assert (finding.rule, finding.subject) == ("two_keys", "r-1")


def test_two_customers_may_buy_the_same(api: Api, sandbox: Sandbox) -> None:
    api.post("/payment/intents", INTENT, idempotency_key="key-00001")
    api.post("/payment/intents", INTENT, idempotency_key="key-00002")
    assert findings(sandbox) == []


@pytest.mark.parametrize("refused", [{"amount": 0}, {"idempotency_key": "short"}], ids=["422", "428"])
def test_what_was_definitely_refused_is_not_paid_a_second_time(
    api: Api, sandbox: Sandbox, refused: dict[str, Any]
) -> None:
    key = {"idempotency_key": "key-00001", **refused}
    assert api.payout(reference="r-1", **key).status in (422, 428)
    body = {name: value for name, value in refused.items() if name == "amount"}
    api.payout(reference="r-1", idempotency_key="key-00002", **body)
    assert findings(sandbox) == []


def test_what_a_429_kept_out_is_not_paid_a_second_time(api: Api, sandbox: Sandbox) -> None:
    sandbox.on("payouts.create").respond("429:10")
    api.payout(reference="r-1", idempotency_key="key-00001")
    sandbox.advance(10)
    api.payout(reference="r-1", idempotency_key="key-00002")
    assert findings(sandbox) == []
    api.payout(reference="r-1", idempotency_key="key-00003")
    assert [found.requests for found in findings(sandbox)] == [requests(sandbox)[1:]]


# --- one key for two bodies ---------------------------------------------------------------------


def test_one_key_for_two_bodies_is_found(api: Api, sandbox: Sandbox) -> None:
    api.payout(reference="r-1", idempotency_key="key-00001")
    assert api.payout(reference="r-2", idempotency_key="key-00001").status == 409
    assert api.payout(reference="r-2", idempotency_key="key-00002").status == 201  # as it should be
    (finding,) = findings(sandbox)
    assert (finding.rule, finding.severity, finding.subject) == ("one_key", "money", "r-1")
    assert finding.requests == requests(sandbox)[:2]
    assert "2 bodies under one idempotency key" in finding.title


@pytest.mark.parametrize("profile", ["observed", "alternate", "hostile", "strict"])
def test_a_lost_try_sent_again_with_another_body_is_found(profile: str) -> None:
    sandbox = Sandbox(clock=VirtualClock.frozen(), profile=profile)
    api = Api(sandbox, sandbox.api_key)
    api.post("/payment/intents", INTENT, idempotency_key="key-00001", scenario="lost_response")
    api.post("/payment/intents", {**INTENT, "amount": 51}, idempotency_key="key-00001")
    assert "one_key" in rules(sandbox)


def test_a_corrected_body_under_the_key_of_a_refusal_is_found_where_it_is_refused(
    api: Api, sandbox: Sandbox
) -> None:
    api.payout(amount=0, idempotency_key="key-00001")
    assert api.payout(idempotency_key="key-00001").status == 409
    assert rules(sandbox) == ["one_key"]
    lenient = Sandbox(clock=VirtualClock.frozen(), profile="alternate")  # keeps no refusals
    api = Api(lenient, lenient.api_key)
    api.payout(amount=0, idempotency_key="key-00001")
    assert api.payout(idempotency_key="key-00001").status < 300
    assert findings(lenient) == []
    api.payout(amount=0, idempotency_key="key-00002")
    api.payout(amount=0, reference="r-2", idempotency_key="key-00002")  # wrong by itself
    api.payout(reference="r-3")
    api.payout(reference="r-3", idempotency_key="key-00002")  # taken, by another key's
    assert "one_key" not in rules(lenient)


@pytest.mark.parametrize("reused_key", ["conflict", "replay", "invalid"])
@pytest.mark.parametrize("errors", ["lists", "texts", "nested"])
def test_a_corrected_body_is_found_however_the_service_takes_a_used_key(
    reused_key: Literal["conflict", "replay", "invalid"], errors: Literal["lists", "texts", "nested"]
) -> None:
    profile = attrs.evolve(OBSERVED, reused_key=reused_key, errors=errors)
    sandbox = Sandbox(clock=VirtualClock.frozen(), profile=profile)
    api = Api(sandbox, sandbox.api_key)
    api.payout(amount=0, idempotency_key="key-00001")
    assert api.payout(idempotency_key="key-00001").status >= 400
    assert rules(sandbox) == ["one_key"]


def test_a_key_stands_for_one_request_for_as_long_as_it_is_kept(api: Api, sandbox: Sandbox) -> None:
    api.payout(reference="r-1", idempotency_key="nightly-job")
    sandbox.advance(86_400)
    assert api.payout(reference="r-2", idempotency_key="nightly-job").status == 201
    assert findings(sandbox) == []
    sandbox.advance(86_399)
    assert api.payout(reference="r-3", idempotency_key="nightly-job").status == 409
    assert [found.requests for found in findings(sandbox)] == [requests(sandbox)[1:]]


def test_two_keys_may_use_one_idempotency_key(api: Api, stranger: Api, sandbox: Sandbox) -> None:
    api.payout(reference="r-1", idempotency_key="key-00001")
    stranger.payout(reference="r-2", idempotency_key="key-00001")
    assert findings(sandbox) == []


# --- Retry-After --------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", ["observed", "hostile"])  # seconds, and a date
def test_a_retry_before_its_time_is_found(profile: str) -> None:
    sandbox = Sandbox(clock=VirtualClock.frozen(), profile=profile)
    api = Api(sandbox, sandbox.api_key)
    sandbox.on("payouts.create").respond("429:10")
    api.payout(idempotency_key="key-00001")
    sandbox.advance(5)
    api.payout(idempotency_key="key-00001")
    (finding,) = findings(sandbox)
    assert (finding.rule, finding.requests) == ("early_retry", requests(sandbox))
    assert "5.0 s after a 429 that asked for 10 s" in finding.title


def test_a_read_that_comes_again_too_early_is_found(api: Api, sandbox: Sandbox) -> None:
    sandbox.on("payouts.list").respond("429:10")
    api.get("/payouts")
    api.get("/payouts")
    (finding,) = findings(sandbox)
    assert (finding.rule, finding.subject) == ("early_retry", "/v1/payouts")


def test_a_retry_in_time_is_not(api: Api, sandbox: Sandbox) -> None:
    sandbox.on("payouts.create").respond("429:10")
    api.payout(idempotency_key="key-00001")
    sandbox.advance(10)
    api.payout(idempotency_key="key-00001")
    assert findings(sandbox) == []


def test_other_requests_need_not_wait_for_a_429(api: Api, sandbox: Sandbox) -> None:
    sandbox.on("payouts.create", reference="r-1").respond("429:10")
    api.payout(reference="r-1", idempotency_key="key-00001")
    api.payout(reference="r-2", idempotency_key="key-00002")
    api.get("/nowhere")
    api.get("/nowhere")
    assert findings(sandbox) == []


def test_a_retry_after_that_cannot_be_read_is_not_judged(api: Api, sandbox: Sandbox) -> None:
    api.get("/payouts", scenario="429:10")
    api.get("/payouts", scenario="slow:1")
    entries = sandbox.entries()
    assert isinstance(entries[0].item, LoggedExchange)
    entries[0].item.retry_after = "soon"
    assert advise(entries) == []


# --- loops side by side -------------------------------------------------------------------------


def test_tries_side_by_side_are_found(api: Api, sandbox: Sandbox) -> None:
    sandbox.on("payouts.create").respond("http:503", times=None)
    for _ in range(4):
        api.payout(idempotency_key="key-00001")
    (finding,) = findings(sandbox)
    assert (finding.rule, finding.requests, finding.subject) == (
        "parallel_loops",
        requests(sandbox),
        "key-00001",
    )


def test_pairs_at_the_same_moments_are_two_loops(api: Api, sandbox: Sandbox) -> None:
    sandbox.on("payouts.create").respond("http:503", times=None)
    for pause in (0.5, 1.0, 2.0):
        api.payout(reference="r-1", idempotency_key="key-00001")
        api.payout(reference="r-1", idempotency_key="key-00001")
        sandbox.advance(pause)
    assert rules(sandbox) == ["parallel_loops"]


def test_one_loop_with_back_off_is_not(api: Api, sandbox: Sandbox) -> None:
    sandbox.on("payouts.create").respond("http:503", times=None)
    for pause in (0.01, 0.4, 0.02, 3.0, 5.0):  # full jitter comes close to nothing now and then
        api.payout(idempotency_key="key-00001")
        sandbox.advance(pause)
    assert findings(sandbox) == []


# --- reading ------------------------------------------------------------------------------------


def intent(api: Api) -> str:
    data = api.post("/payment/intents", {**TRIED, "metadata": {"sandbox_scenario": "hang"}}).data
    return f"/payment/intents/{data['id']}/attempts/{data['active_attempt']['id']}"


def test_polling_faster_than_five_seconds_is_found(api: Api, sandbox: Sandbox) -> None:
    path = intent(api)
    for _ in range(4):
        api.get(path)
        sandbox.advance(2)
    (finding,) = findings(sandbox)
    assert (finding.rule, finding.requests) == ("polling_too_fast", requests(sandbox)[1:])
    assert finding.subject == path.rpartition("/")[2]


def test_polling_a_checkout_too_fast_is_found(api: Api, sandbox: Sandbox) -> None:
    session = api.checkout().data["checkout"]["id"]
    for _ in range(3):
        api.get(f"/payment/checkouts/{session}")
    assert rules(sandbox) == ["polling_too_fast"]


@pytest.mark.parametrize("pause", [5.0, 7.5])
def test_polling_at_the_pace_of_the_guidance_is_not(api: Api, sandbox: Sandbox, pause: float) -> None:
    path = intent(api)
    for _ in range(10):
        api.get(path)
        sandbox.advance(pause)
    assert findings(sandbox) == []


def test_two_readings_at_once_are_a_payer_who_comes_back(api: Api, sandbox: Sandbox) -> None:
    path = intent(api)
    for _ in range(3):
        api.get(path)
        api.get(path)
        sandbox.advance(60)
    assert findings(sandbox) == []


def test_an_unchanged_list_read_in_a_loop_is_found(api: Api, sandbox: Sandbox) -> None:
    api.payout(metadata={"sandbox_scenario": "hang"})
    sandbox.advance(10)
    for _ in range(5):
        api.get("/payouts?per_page=5")
    assert rules(sandbox) == ["polling_too_fast"]


def test_a_list_that_changes_or_holds_nothing_open_is_not_polled(api: Api, sandbox: Sandbox) -> None:
    for number in range(6):
        api.get("/payouts")
        api.payout(reference=f"r-{number}")
    sandbox.advance(10)
    for _ in range(6):
        api.get("/payouts?status=failed")  # nothing
        api.get("/payouts?status=completed")  # all final
    assert findings(sandbox) == []


def test_reading_on_after_the_end_is_found(api: Api, sandbox: Sandbox) -> None:
    data = api.post("/payment/intents", TRIED).data
    path = f"/payment/intents/{data['id']}/attempts/{data['active_attempt']['id']}"
    for _ in range(6):  # final after 5 s
        api.get(path)
        sandbox.advance(5)
    (finding,) = findings(sandbox)
    assert (finding.rule, len(finding.requests)) == ("polling_after_final", 5)


def test_a_final_record_may_be_looked_at_now_and_then(api: Api, sandbox: Sandbox) -> None:
    session = api.checkout().data["checkout"]["id"]
    sandbox.pay(session)
    for _ in range(3):
        api.get(f"/payment/checkouts/{session}")
    sandbox.advance(3_600)
    api.get(f"/payment/checkouts/{session}")
    assert findings(sandbox) == []


def test_live_operations_in_place_of_reads_are_found(api: Api, sandbox: Sandbox) -> None:
    payout = api.payout(metadata={"sandbox_scenario": "hang"}).data["id"]
    for _ in range(3):
        api.sync(payout)
        sandbox.advance(10)
    (finding,) = findings(sandbox)
    assert (finding.rule, finding.subject, len(finding.requests)) == ("live_reads", payout, 3)


def test_live_operations_beside_normal_reads_are_not(api: Api, sandbox: Sandbox) -> None:
    payout = api.payout(metadata={"sandbox_scenario": "hang"}).data["id"]
    for _ in range(3):
        api.get("/payouts")
        api.sync(payout)
        sandbox.advance(10)
    assert findings(sandbox) == []


# --- trust --------------------------------------------------------------------------------------


def told(
    sandbox: Sandbox, record: str, event: str, status: int | None = 204, *, only_listened: bool = False
) -> list[JournalEntry]:
    """The journal, with a try of a webhook at its end, and a minute after that."""
    at = sandbox.clock.now()
    sandbox.journal.add(WebhookTried(at, "wh_1", record, event, status, None, only_listened=only_listened))
    return sandbox.entries()


def test_a_webhook_that_was_believed_is_found(api: Api, sandbox: Sandbox) -> None:
    payout = api.payout().data["id"]
    sandbox.advance(5)
    told(sandbox, payout, "payout.completed")
    sandbox.advance(60)
    api.post("/payment/intents", INTENT)
    (finding,) = findings(sandbox)
    assert (finding.rule, finding.subject, finding.severity) == ("webhook_trusted", payout, "money")
    assert finding.webhooks == ("wh_1",)
    told(sandbox, payout, "payout.failed")
    sandbox.advance(60)
    api.post("/payment/intents", INTENT | {"entity_id": "order-2"})
    (finding,) = findings(sandbox)
    assert finding.title.startswith("payout.completed and payout.failed were accepted")
    assert finding.webhooks == ("wh_1", "wh_1")


def test_a_webhook_that_was_believed_is_found_once_time_has_passed(api: Api, sandbox: Sandbox) -> None:
    payout = api.payout().data["id"]
    sandbox.advance(5)
    told(sandbox, payout, "payout.completed")
    now = sandbox.clock.now()
    assert (watched(evidence_from(sandbox.entries(), now)), rules(sandbox)) == (1, [])
    shown = sandbox.handle("GET", "/_sandbox/advisor").body.decode()
    assert "1 accepted webhook being watched: its record has 60 s" in shown
    sandbox.advance(60)  # and no request comes
    assert rules(sandbox) == ["webhook_trusted"]
    assert advise(sandbox.entries()) == []
    said = json.loads(sandbox.handle("GET", "/_sandbox/api/advice").body)
    assert ([one["rule"] for one in said["findings"]], said["watched"]) == (["webhook_trusted"], 0)
    assert "being watched" not in sandbox.handle("GET", "/_sandbox/advisor").body.decode()


def test_a_webhook_that_was_read_back_is_no_longer_watched(api: Api, sandbox: Sandbox) -> None:
    payout = api.payout().data["id"]
    sandbox.advance(5)
    told(sandbox, payout, "payout.completed")
    api.sync(payout)
    assert watched(evidence_from(sandbox.entries(), sandbox.clock.now())) == 0


@pytest.mark.parametrize("read", ["list", "sync"])
def test_a_webhook_after_which_the_record_was_read_is_not(api: Api, sandbox: Sandbox, read: str) -> None:
    payout = api.payout().data["id"]
    sandbox.advance(5)
    told(sandbox, payout, "payout.completed")
    sandbox.advance(2)
    api.get("/payouts") if read == "list" else api.sync(payout)
    sandbox.advance(60)
    api.post("/payment/intents", INTENT)
    assert findings(sandbox) == []


@pytest.mark.parametrize(
    ("event", "status"), [("payout.created", 204), ("payout.completed", 500), ("payout.completed", None)]
)
def test_a_webhook_that_tells_no_end_or_was_not_taken_needs_no_reading(
    api: Api, sandbox: Sandbox, event: str, status: int | None
) -> None:
    payout = api.payout().data["id"]
    told(sandbox, payout, event, status)
    sandbox.advance(60)
    api.post("/payment/intents", INTENT)
    assert findings(sandbox) == []


def test_a_webhook_that_was_only_listened_to_needs_no_reading(api: Api, sandbox: Sandbox) -> None:
    payout = api.payout().data["id"]
    sandbox.advance(5)
    told(sandbox, payout, "payout.completed", only_listened=True)
    sandbox.advance(60)
    api.post("/payment/intents", INTENT)
    assert findings(sandbox) == []


def test_a_webhook_of_just_now_may_still_be_read_back(api: Api, sandbox: Sandbox) -> None:
    payout = api.payout().data["id"]
    sandbox.advance(5)
    assert advise(told(sandbox, payout, "payout.completed")) == []


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://shop.test"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"},
    ],
)
def test_a_key_in_a_browser_is_found(sandbox: Sandbox, headers: dict[str, str]) -> None:
    sandbox.handle("GET", "/v1/payouts", {"Authorization": f"Bearer {sandbox.api_key}", **headers})
    (finding,) = findings(sandbox)
    assert (finding.rule, finding.severity) == ("key_in_browser", "secret")
    assert sandbox.api_key not in repr(finding)


def test_a_browser_that_asks_whether_it_may_send_a_key_is_found(sandbox: Sandbox) -> None:
    asked = {"Origin": "https://shop.test", "Access-Control-Request-Headers": "Authorization, Content-Type"}
    sandbox.handle("OPTIONS", "/v1/payouts", asked)
    assert rules(sandbox) == ["key_in_browser"]


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("GET", {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}),  # somebody opens the address
        ("GET", {"Sec-Fetch-Mode": "cors"}),  # fetch of a JavaScript server
        ("OPTIONS", {"Origin": "https://shop.test"}),
    ],
)
def test_what_shows_no_key_to_anybody_is_not(sandbox: Sandbox, method: str, headers: dict[str, str]) -> None:
    sandbox.handle(method, "/v1/payouts", headers)
    assert findings(sandbox) == []


def test_what_the_inspector_sent_again_is_nobodys_mistake(api: Api, sandbox: Sandbox) -> None:
    api.payout()
    for _ in range(4):
        request = sandbox.requests[0].request_id
        sandbox.handle(
            "POST", f"/_sandbox/api/requests/{request}/replay", {"Content-Type": "application/json"}, b""
        )
    assert len(sandbox.requests) == 5
    assert findings(sandbox) == []


def test_what_endangers_money_comes_first(api: Api, sandbox: Sandbox) -> None:
    sandbox.handle("GET", "/v1/payouts", {"Origin": "https://shop.test"})
    api.payout()
    api.payout()
    assert rules(sandbox) == ["post_without_key", "key_in_browser"]


def test_a_body_that_is_no_json_names_nothing(api: Api, sandbox: Sandbox) -> None:
    for key in ("key-00001", "key-00002"):
        api.post("/payouts", b"[1]", idempotency_key=key)
        api.post("/payouts", b"{", idempotency_key=key)
    assert findings(sandbox) == []


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
            amount=Decimal("10.10"), currency="XOF", method="m", instrument=wallet, reference=f"r-{number}"
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
