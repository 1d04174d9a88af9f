"""docs/openapi.json against the sandbox: every answer of a day's traffic is one the document describes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from payments_async.sandbox import Answer, Sandbox, SandboxLimits, VirtualClock
from tests.fidelity.document import SCHEMAS, described, everything, operations, properties, validator
from tests.sandbox.raw_requests import ACTION_TYPES, BANK, CRYPTO, PHONE, Api

ROUTES = [
    (method.upper(), re.compile("/v1" + re.sub(r"\{\w+\}", "[^/]+", path)), operation)
    for method, path, operation in operations()
]
HEADERS = {"Content-Type", "Date"}
"""Headers of any answer over HTTP, which the document does not name."""
FORMS = (
    "form.amount",
    "form.method",
    "form.exchange-rate.object",
    "form.exchange-rate.number",
    "form.country",
    "form.customer",
    "form.gateway-transaction",
    "form.failure.payout",
    "form.failure.attempt",
    "form.next-action",
    "form.failover",
    "form.attempt.single",
    "form.attempt.create",
    "form.attempt.list",
    "form.intent.create",
    "form.intent.checkout",
    "form.intent.list",
    "form.checkout",
    "form.checkout.appearance",
    "form.instrument",
    "form.payout",
    "form.refund-availability",
    "form.pagination",
    "form.method-status",
)
OUTCOMES = ("complete", "fail:NO_FUNDS immediate", "failover:1 after=1s", "hang")
LOOK = {"color": "#fe0", "brand": "Shop", "icon_url": "https://shop.test/icon.svg"}


Seen = list[tuple[str, int, Answer]]
"""Operation, status and answer."""


class Heard(Sandbox):
    """A sandbox that notes every answer."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.seen: Seen = []

    def handle(self, method: str, path: str, *arguments: Any, **options: Any) -> Answer:
        answer = super().handle(method, path, *arguments, **options)
        for wanted, pattern, operation in ROUTES:
            if wanted == method and pattern.fullmatch(path.partition("?")[0]):
                self.seen.append((operation["operationId"], answer.status, answer))
        return answer


@pytest.fixture(scope="module")
def seen() -> Seen:
    """The answers of a day with every operation, every form of a record, and every refusal."""
    limits = SandboxLimits(diagnostics_per_record=8)
    sandbox = Heard(clock=VirtualClock.frozen(), limits=limits)
    api = Api(sandbox, sandbox.api_key)
    make_payments(api)
    make_payouts(api)
    be_refused(api)
    sandbox.advance(90_000)
    read_everything(api)
    return sandbox.seen


def make_payments(api: Api) -> None:
    full: dict[str, Any] = {
        "customer": {"email": "ada@example.com", "first_name": "Ada", "last_name": "A."},
        "description": "Shoes",
        "webhook_url": "https://shop.test/hook",
        "statement_descriptor": "Shop 1",
        "receipt_email": "ada@example.com",
        "return_url": "https://shop.test/back",
        "metadata": {"order": 7},
        "entity_created_at": "2025-12-31T23:00:00Z",
        "gateway_options": {"sandbox_card": {"three_d_secure": True}},
    }
    session = api.checkout(**full, restriction={"country_code": "BJ"}, appearance=LOOK).data
    locked = api.checkout(restriction={"phone": {"number": "+22990000000", "country": "BJ"}}).data
    for outcome in (*OUTCOMES, *(f"action:{kind}" for kind in ACTION_TYPES)):
        made = api.intent(**full | {"metadata": {"sandbox_scenario": outcome}}).data
        api.get(f"/payment/intents/{made['id']}/refunds/availability")
        for _ in range(2):
            api.post(f"/payment/intents/{made['id']}/requery", {}, idempotency_key="requery-0" + made["id"])
        attempt = f"/payment/intents/{made['id']}/attempts/{made['active_attempt']['id']}"
        api.get(attempt)
        api.get(f"{attempt}/inspect")
    api.get("/payment/intents?per_page=100")
    api.post("/payment/intents", {"amount": 1, "currency": "KWD"})
    for one in (session, locked):
        api.sandbox.pay(one["payment"]["id"], method="visa_card")
        api.get(f"/payment/checkouts/{one['checkout']['id']}")
    api.sandbox.refund(session["payment"]["id"], Decimal(10))
    api.sandbox.refund(session["payment"]["id"], Decimal(10), pending=True)
    api.get(f"/payment/intents/{session['payment']['id']}/refunds/availability")
    api.get(f"/payment/checkouts/{session['checkout']['id']}")


def make_payouts(api: Api) -> None:
    for number, instrument in enumerate(
        (PHONE, {**BANK, "swift_bic": "ABCDNGLA"}, {**CRYPTO, "memo_tag": "1"})
    ):
        scenario = {"sandbox_scenario": "fail:NO" if number == 1 else "complete"}
        fields: dict[str, Any] = {"instrument": instrument, "reference": f"r-{number}", "metadata": scenario}
        made, _ = (api.payout(idempotency_key=f"key-0000{number}", **fields).data for _ in range(2))
        api.get(f"/payouts/{made['id']}/sync")
        api.get(f"/payouts/{made['id']}/inspect")
    api.payout(customer={"first_name": "Ada"}, description="rent", webhook_url="https://shop.test/hook")


def be_refused(api: Api) -> None:
    api.payout(reference="r-0")
    api.payout(amount=51, idempotency_key="key-00000")
    for path in ("/payouts", "/payment/intents", "/payment/checkouts"):
        api.post(path, {})
        api.post(path, b"{")
        api.post(path, {}, idempotency_key="short")
        api.post(path, {"amount": 1, "currency": "EUR"}, idempotency_key="key-shared")
        api.post(path, {"amount": 2, "currency": "EUR"}, idempotency_key="key-shared")
    api.post("/payment/intents/pi_none/requery", {}, idempotency_key="short")
    api.post("/payment/intents/pi_none/requery", b"[]")
    api.post("/payment/intents/pi_none/requery", {}, idempotency_key="key-shared")
    for path in ("/payouts", "/payment/intents"):
        for query in ("per_page=0", "cursor=nonsense", "created_at[gte]=yesterday", "status=%ff"):
            api.get(f"{path}?{query}")
    expired = Api(api.sandbox, api.sandbox.new_key("expired"))
    elsewhere = Api(api.sandbox, api.sandbox.new_key(allowlist=["10.0.0.1"]))
    for method, path, _ in operations():
        plain = re.sub(r"\{\w+\}", "none" + method, path)
        for one in (api, expired, elsewhere):
            one.send(method.upper(), plain, {} if method == "post" else None)
        for scenario in ("http:500", "429:3"):
            api.send(method.upper(), plain, {} if method == "post" else None, scenario=scenario)


def read_everything(api: Api) -> None:
    for path in ("/payouts", "/payment/intents"):
        for query in ("", "?per_page=2", "?per_page=100&created_at[lte]=2026-01-01"):
            cursor = api.get(path + query).json["pagination"]["next_cursor"]
            if cursor:
                api.get(f"{path}?per_page=2&cursor={cursor}")
    for country in ("BJ", "ZZ"):
        api.get(f"/utils/status/payment/method/mtn_bj/{country}")


@pytest.mark.fact(*FORMS)
def test_every_answer_has_exactly_the_fields_that_the_document_names(seen: Seen) -> None:
    for operation, status, answer in seen:
        found = list(validator(operation, status).iter_errors(json.loads(answer.body)))
        assert not found, (operation, status, found[0].json_path, found[0].message)


@pytest.mark.fact("endpoint.bearer-required", "endpoint.attempts.inspect", "endpoint.payouts.inspect")
def test_every_described_answer_has_been_seen(seen: Seen) -> None:
    met = {(operation, described(status)) for operation, status, _ in seen}
    known = {(one["operationId"], status) for *_, one in operations() for status in one["responses"]}
    assert known == met


def test_every_header_is_one_that_the_document_names(seen: Seen) -> None:
    named = {
        (one["operationId"], status): set(answer["headers"])
        for *_, one in operations()
        for status, answer in one["responses"].items()
    }
    for operation, status, answer in seen:
        assert set(answer.headers) - HEADERS <= named[operation, described(status)], (operation, status)
        if status == 429:
            assert set(answer.headers) - HEADERS == named[operation, described(status)]


def named_values(value: Any) -> Iterator[tuple[str, Any]]:
    """Every field within an answer, at any depth."""
    for inner in value if isinstance(value, list) else ():
        yield from named_values(inner)
    for name, inner in value.items() if isinstance(value, dict) else ():
        yield name, inner
        yield from named_values(inner)


def records() -> set[str]:
    """The schemas that answers are made of."""
    found, parts = set[str](), [operation["responses"] for *_, operation in operations()]
    while parts:
        named = {one["$ref"].rsplit("/", 1)[1] for one in everything(parts.pop()) if "$ref" in one}
        parts += [SCHEMAS[name] for name in named - found]
        found |= named
    return found


def test_every_field_has_been_seen_with_a_value(seen: Seen) -> None:
    """So that none is described, and checked, as null alone."""
    bodies = [json.loads(answer.body) for _, status, answer in seen if status < 300]
    filled = {name for body in bodies for name, value in named_values(body) if value is not None}
    known = {name for record in records() for name in properties(record)}
    assert known - filled == {"avatar_url", "errors"}, "a sandbox has no pictures of people"


@pytest.mark.parametrize("name", ["CheckoutRequest", "PaymentIntentRequest", "PayoutRequest"])
def test_the_largest_amount_is_the_sandboxs_and_the_currency_says_what_is_left_open(name: str) -> None:
    amount = properties(name)["amount"]
    assert amount["maximum"] == 10**24
    assert "names no maximum" in amount["description"]
    assert "the service decides" in properties(name)["currency"]["description"]
