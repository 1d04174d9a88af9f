"""The money rules, in the Advisor and in the test kit: each break is found, and what is allowed is not."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import attrs
import pytest

from payments_async.sandbox import OBSERVED, Sandbox, VirtualClock
from payments_async.sandbox.advisor import Finding, advise
from payments_async.sandbox.advisor._rules import RULES
from payments_async.testing import SandboxTenant
from tests.sandbox.raw_requests import INTENT, PAYOUT, PHONE, TRIED, Api, WebhookTried

CHECKOUTS, INTENTS, PAYOUTS = "/payment/checkouts", "/payment/intents", "/payouts"
ORDER = {**INTENT, "entity_id": "order-1"}
ONE, TWO, THREE = ({"idempotency_key": f"key-0000{number}"} for number in (1, 2, 3))
NOTED = {"metadata": {"n": 1}}
FAILING = {"metadata": {"sandbox_scenario": "fail:NO_FUNDS immediate"}}
LOST = {"scenario": "lost_response"}
NESTED = {**PHONE, "more": [1, {"a": None}]}

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


def collect(entity: str | None, outcome: str = "complete immediate", **key: str) -> Step:
    """A payment for an order, with an attempt that ends so."""
    body = {**TRIED, "metadata": {"sandbox_scenario": outcome}} | ({"entity_id": entity} if entity else {})
    return post(INTENTS, body, **key)


def ask(method: str, **headers: str) -> Step:
    """A request with headers of its own, and with the key."""

    def act(api: Api) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        own = {} if method == "OPTIONS" else {"authorization": f"Bearer {api.key}"}
        api.sandbox.handle(method, f"/v1{PAYOUTS}", {**own, **named})

    return act


def rule(respond: str) -> Step:
    return lambda api: api.sandbox.on("payouts.create").respond(respond)


def give_back(api: Api) -> None:
    api.sandbox.refund(api.sandbox.books.payments()[-1].id)


def sync(api: Api) -> None:
    """A live read of the newest payout."""
    api.sync(api.sandbox.books.payouts()[-1].id)


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
TAKEN = [pay("r-1", **ONE), pay("r-1", **TWO)]
"""The service says that the reference is taken."""

ALLOWED: Mapping[str, Sequence[Step]] = {
    "nothing": [],
    "one post each": [pay("r-1"), pay("r-2")],
    "what was refused is sent anew": [pay(amount=0), pay(amount=0)],
    "the same sold again to the next customer": [post(CHECKOUTS), wait(30)] * 5,
    "two customers buy the same": [post(INTENTS, **ONE), post(INTENTS, **TWO)],
    "of two customers who buy the same one gets no answer, and tries again": [
        post(INTENTS, **ONE, **LOST),
        post(INTENTS, **TWO),
        post(INTENTS, **ONE),
    ],
    "what a 422 refused is paid under a new key": [pay(amount=0, **ONE), pay(amount=0, **TWO)],
    "what a 428 refused is paid under a new key": [pay(idempotency_key="short"), pay(**TWO)],
    "what a 429 kept out is paid under a new key": [pay(**ONE, scenario="429:10"), wait(10), pay(**TWO)],
    "a key is used again after a day": [pay("r-1", **ONE), wait(86_400), pay("r-2", **ONE)],
    "bodies that are no JSON": [post(PAYOUTS, body, **key) for key in (ONE, TWO) for body in (b"[1]", b"{")],
    "equal payouts, each with its reference": [pay("r-1", **ONE), pay("r-2", **TWO)],
    "an unnamed payout after an equal one that failed": [
        pay(None, **ONE, **FAILING),
        pay(None, **TWO, **NOTED),
    ],
    "a lost payout that failed": [pay("r-1", **ONE, **FAILING, **LOST), pay("r-2", **TWO)],
    "a request that was lost": [rule("lost_request"), pay("r-1", **ONE), pay("r-2", **TWO)],
    "a lost answer that a repeat brought": [pay("r-1", **ONE, **LOST), pay("r-1", **ONE), pay("r-2", **TWO)],
    **{
        f"another {name} after a lost answer": [pay("r-1", **ONE, **LOST), pay("r-2", **TWO, **{name: value})]
        for name, value in (("amount", 51), ("currency", "GHS"), ("method", "other"))
    },
    "a reference that is taken": TAKEN,
    "the same program once more, and several at once": [*TAKEN, pay("r-1", **THREE)],
    "a taken reference after a lost answer": [pay("r-1", **ONE, **LOST), pay("r-1", **TWO)],
    "a taken reference, and its payout read": [*TAKEN, get(PAYOUTS)],
    "the first key again after a refusal": [*TAKEN, pay("r-1", **ONE)],
    "an equal payout under another reference after a refusal and a read": [*TAKEN, get(PAYOUTS), pay("r-2")],
    "another payout after a refusal": [*TAKEN, pay("r-2", amount=11, **THREE)],
    "a simulated 409": [pay("r-1", **ONE), rule("http:409"), pay("r-1", **TWO), pay("r-1", **THREE)],
    "a payment after one that was declined": [
        collect("order-7", "fail:DECLINED immediate", **ONE),
        collect("order-7", **TWO),
    ],
    "a payment after one that hangs": [collect("order-7", "manual", **ONE), collect("order-7", **TWO)],
    "a payment after one that was refunded": [
        collect("order-7", **ONE),
        give_back,
        collect("order-7", **TWO),
    ],
    "payments for other orders": [
        collect(order, **key)
        for order, key in (
            ("order-7", ONE),
            ("order-8", TWO),
            (None, THREE),
            (None, {"idempotency_key": "key-4444"}),
        )
    ],
    "a webhook after which the list was read": [*DELIVERED, wait(2), get(PAYOUTS), *NEXT],
    "a webhook after which the record was read": [*DELIVERED, wait(2), sync, *NEXT],
    "a webhook about an end that was read before it came": [*PAID, get(PAYOUTS), wait(1), deliver(), *NEXT],
    "a webhook of just now": DELIVERED,
    "a webhook about no end": [pay(None), deliver("payout.created"), *NEXT],
    "a webhook that was refused": [pay(None), deliver(status=500), *NEXT],
    "a webhook without an answer": [pay(None), deliver(status=None), *NEXT],
    "a webhook to a mere listener": [*PAID, deliver(listened=True), *NEXT],
    "a person opens the address": [ask("GET", sec_fetch_site="none", sec_fetch_mode="navigate")],
    "fetch of a JavaScript server": [ask("GET", sec_fetch_mode="cors")],
    "a preflight without a key": [ask("OPTIONS", origin="https://shop.test")],
}


@attrs.frozen
class Mistake:
    """What a program did, the rule that finds it, and which of its requests show it (all when None)."""

    steps: Sequence[Step]
    rule: str
    requests: Sequence[int] | None = None
    subject: str | None = None
    says: str = ""
    """Part of the text."""


FOUND: Mapping[str, Mistake] = {
    **{
        f"three posts to {path} without a key": Mistake(
            [post(path, body), wait(10)] * 3, "posted_without_key", says="was sent 3 times"
        )
        for path, body in ((PAYOUTS, PAYOUT), (INTENTS, INTENT), (CHECKOUTS, INTENT))
    },
    "a second try, seconds after the fifth customer's": Mistake(
        [
            *[post(CHECKOUTS), wait(30)] * 5,
            post(CHECKOUTS),
            wait(5),
            post(CHECKOUTS),
            wait(60),
            post(CHECKOUTS),
        ],
        "posted_without_key",
        (5, 6),
    ),
    "a try in doubt, repeated an hour later": Mistake(
        [post(CHECKOUTS, **LOST), wait(3_600), post(CHECKOUTS)], "posted_without_key"
    ),
    "a named order, repeated an hour later": Mistake(
        [post(CHECKOUTS, ORDER), wait(3_600), post(CHECKOUTS, ORDER)], "posted_without_key", subject="order-1"
    ),
    "a repeat that only its reference stopped": Mistake(
        [pay(**LOST), wait(3_600), pay()], "posted_without_key", subject="r-1"
    ),
    "a retry with a new key": Mistake(
        [post(INTENTS, **ONE, **LOST), wait(10), post(INTENTS, **TWO)], "retried_with_new_key"
    ),
    "a payout that may have been made, with a new key": Mistake(
        [pay(None, **ONE, scenario="http:503"), pay(None, **TWO)], "retried_with_new_key"
    ),
    "one key for two bodies": Mistake(
        [pay("r-1", **ONE), pay("r-2", **ONE), pay("r-2", **TWO)],
        "key_reused",
        (0, 1),
        "r-1",
        "differ under one",
    ),
    "one key for two bodies within a day": Mistake(
        [pay("r-1", **ONE), wait(86_400), pay("r-2", **ONE), wait(86_399), pay("r-3", **ONE)],
        "key_reused",
        (1, 2),
    ),
    "equal payouts without references, an hour apart": Mistake(
        [pay(None, **ONE), wait(3_600), pay(None, **TWO, **NOTED)],
        "paid_again",
        says="no references tell them apart",
    ),
    "three equal payouts without references": Mistake(
        [pay(None, **key, metadata={"n": number}) for number, key in enumerate((ONE, TWO, THREE))],
        "paid_again",
    ),
    "an unnamed payout after a named one whose answer was lost": Mistake(
        [pay("r-1", **ONE, **LOST), pay(None, **TWO)], "paid_again", subject="r-1"
    ),
    "a payout in doubt under another reference": Mistake(
        [pay("r-1", **ONE, **LOST, description="a"), pay("r-2", **TWO, amount=50.00)],
        "paid_again",
        says="the answer to the first had not arrived",
    ),
    "a payout in doubt that is equal but for a null": Mistake(
        [
            pay("r-1", **ONE, **LOST, instrument=NESTED),
            pay("r-2", **TWO, instrument={**NESTED, "more": [1, {}]}),
        ],
        "paid_again",
    ),
    "a reference after the service had refused it, with another content": Mistake(
        [*TAKEN, get(PAYOUTS), pay("r-1", **THREE, description="a")], "reference_refused", (0, 1, 3), "r-1"
    ),
    "an equal payout under another reference after a refusal": Mistake(
        [*TAKEN, pay("r-2", **THREE)], "reference_refused"
    ),
    "two payments for one order": Mistake(
        [collect("order-7", **ONE), wait(60), collect("order-7", **TWO)],
        "collected_twice",
        says="2 payments were collected for the entity 'order-7'",
    ),
    "a webhook that was believed": Mistake([*DELIVERED, *NEXT], "webhook_trusted", ()),
    "a webhook that was believed, and no request after it": Mistake(
        [*DELIVERED, wait(60)], "webhook_trusted", ()
    ),
    "two webhooks of a record": Mistake(
        [*DELIVERED, deliver("payout.failed"), wait(60)],
        "webhook_trusted",
        (),
        says="payout.completed and payout.failed",
    ),
    "a key in a browser": Mistake(
        [ask("GET", origin="https://shop.test")], "key_in_browser", says="https://shop.test"
    ),
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
WITHOUT_KEY = "a preflight"
"""These requests carry no key, so that no tenant of the test kit has them."""


def found(sandbox: Sandbox, steps: Sequence[Step], name: str = "") -> list[Finding]:
    """What the Advisor and the ledger of a tenant found in these steps; it is the same."""
    tenant = SandboxTenant(sandbox)
    for step in steps:
        step(Api(sandbox, tenant.api_key))
    findings = advise(sandbox.entries(), sandbox.clock.now())
    assert tenant.findings() == ([] if name.startswith(WITHOUT_KEY) else findings)
    return findings


@pytest.mark.parametrize("name", ALLOWED)
def test_what_is_allowed_is_not_found(sandbox: Sandbox, name: str) -> None:
    assert found(sandbox, ALLOWED[name], name) == []


@pytest.mark.parametrize("name", FOUND)
def test_a_mistake_is_found_with_the_requests_that_show_it(sandbox: Sandbox, name: str) -> None:
    mistake = FOUND[name]
    (finding,) = found(sandbox, mistake.steps, name)
    asked = [one.request_id for one in sandbox.requests]
    places = range(len(asked)) if mistake.requests is None else mistake.requests
    assert (finding.rule, finding.requests) == (mistake.rule, tuple(asked[place] for place in places))
    assert mistake.subject in (None, finding.subject)
    assert mistake.says in finding.text
    assert (finding.why, finding.fix) == (RULES[finding.rule].why, RULES[finding.rule].fix)
    assert "sk_sandbox" not in repr(finding)


def test_every_rule_finds_a_mistake_in_the_order_of_the_table(sandbox: Sandbox) -> None:
    assert list(dict.fromkeys(mistake.rule for mistake in FOUND.values())) == list(RULES)
    steps = [ask("GET", origin="https://shop.test"), pay(), pay()]
    assert [one.rule for one in found(sandbox, steps)] == ["posted_without_key", "key_in_browser"]


@pytest.mark.parametrize(
    ("name", "shown"),
    [("ada@shop.test", "'•••st'"), ("+233 24 412 3456", "'•••56'"), (90 * "x", f"'{40 * 'x'}'")],
)
def test_a_finding_shows_no_account_data_and_no_long_name(sandbox: Sandbox, name: str, shown: str) -> None:
    (finding,) = found(sandbox, [pay(name, **ONE, **LOST), pay("r-2", **TWO)])
    assert f"reference {shown})" in finding.text
    assert "22990000000" not in finding.text


def test_two_projects_have_nothing_to_do_with_each_other(api: Api, stranger: Api, sandbox: Sandbox) -> None:
    for steps in (
        (pay(None, amount=11), pay(None, amount=11)),
        (pay("r-1", **ONE), pay("r-2", **ONE)),
        (collect("order-7", **TWO), collect("order-7", **TWO)),
    ):
        steps[0](api)
        steps[1](stranger)
    assert advise(sandbox.entries(), sandbox.clock.now()) == []


def test_further_keys_of_a_tenant_are_its_own(sandbox: Sandbox) -> None:
    tenant, key = SandboxTenant(sandbox), sandbox.new_key()
    for own, rules in ((key, []), (tenant.new_key(), ["paid_again"])):
        for step in (pay(None, **ONE), pay(None, **TWO, **NOTED)):
            step(Api(sandbox, own))
        assert [finding.rule for finding in tenant.findings()] == rules


# --- one key for two bodies, in every profile ---------------------------------------------------


def of(profile: Any) -> tuple[Sandbox, Api]:
    sandbox = Sandbox(clock=VirtualClock.frozen(), profile=profile)
    return sandbox, Api(sandbox, sandbox.api_key)


def rules(sandbox: Sandbox) -> list[str]:
    return [finding.rule for finding in advise(sandbox.entries(), sandbox.clock.now())]


@pytest.mark.parametrize("profile", ["observed", "alternate", "hostile", "strict"])
def test_a_lost_try_sent_again_with_another_body_is_found(profile: str) -> None:
    sandbox, api = of(profile)
    api.post(INTENTS, INTENT, **ONE, **LOST)
    api.post(INTENTS, {**INTENT, "amount": 51}, **ONE)
    assert "key_reused" in rules(sandbox)


def test_a_corrected_body_under_the_key_of_a_refusal_that_is_not_kept_is_allowed() -> None:
    sandbox, api = of("alternate")  # keeps no refusals
    api.payout(amount=0, **ONE)
    assert api.payout(**ONE).status < 300
    assert rules(sandbox) == []


@pytest.mark.parametrize("reused_key", ["conflict", "replay", "invalid"])
@pytest.mark.parametrize("errors", ["lists", "texts", "nested"])
def test_a_corrected_body_is_found_however_the_service_takes_a_used_key(
    reused_key: Literal["conflict", "replay", "invalid"], errors: Literal["lists", "texts", "nested"]
) -> None:
    sandbox, api = of(attrs.evolve(OBSERVED, reused_key=reused_key, errors=errors))
    api.payout(amount=0, **ONE)
    assert api.payout(**ONE).status >= 400
    assert rules(sandbox) == ["key_reused"]


def test_what_a_request_showed_is_not_guessed_once_its_answer_was_dropped(api: Api, sandbox: Sandbox) -> None:
    """Without the answer it is not known that a list showed a record."""
    for step in (*DELIVERED, get(PAYOUTS), wait(60)):
        step(api)
    assert advise(sandbox.entries(), sandbox.clock.now()) == []
    for exchange in sandbox.journal.newest_exchanges():
        exchange.drop_bytes()
    assert advise(sandbox.entries(), sandbox.clock.now()) == []


def test_the_control_api_gives_the_findings(api: Api, sandbox: Sandbox) -> None:
    for _ in range(2):
        api.payout(reference="r-1")
    (found,) = json.loads(sandbox.handle("GET", "/_sandbox/api/advice").body)["findings"]
    assert (found["rule"], found["requests"]) == ("posted_without_key", ["req_00000001", "req_00000002"])
