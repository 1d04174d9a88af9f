"""The contract in small: what no service may get wrong about money, as checks that run in this process.

Each check takes a fresh sandbox and asserts one promise of docs/interface.md. `test_mutants.py` shows that
each earns its place: a service that breaks the promise does not pass.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Literal

from payments_async.sandbox import Sandbox, SandboxLimits, VirtualClock
from tests.sandbox.raw_requests import INTENT, Api

Check = Callable[[Api], None]
KEY = {"idempotency_key": "key-00001"}
HOOK = "https://shop.test/hook"
BARRED: tuple[Literal["expired", "inactive"], ...] = ("expired", "inactive")
BOUNDS: tuple[tuple[str, Any, Any], ...] = (
    ("amount", 1, 0.99),
    ("description", "a" * 500, "a" * 501),
    ("reference", "a" * 191, "a" * 192),
    ("webhook_url", "a" * 2048, "a" * 2049),
    ("metadata", dict.fromkeys("abcdefghij", 1), dict.fromkeys("abcdefghijk", 1)),
)
"""A field, the most or least it may be, and what is too much or too little."""


def fresh(**options: Any) -> Api:
    """A merchant of a new service on a frozen clock."""
    sandbox = Sandbox(clock=VirtualClock.frozen(), **options)
    return Api(sandbox, sandbox.api_key)


def a_repeat_is_answered_from_store(api: Api) -> None:
    first, again = (api.payout(**KEY) for _ in range(2))
    assert (first.status, again.status) == (201, 201)
    assert first.answer.body == again.answer.body
    assert (first.replayed, again.replayed) == (False, True)
    assert len(api.sandbox.books.payouts()) == 1


def a_lost_answer_is_kept(api: Api) -> None:
    assert api.payout(**KEY, scenario="lost_response").answer.fault is not None
    assert api.payout(**KEY).replayed
    assert len(api.sandbox.books.payouts()) == 1


def a_key_lives_for_24_hours(api: Api) -> None:
    api.payout(**KEY)
    api.sandbox.advance(24 * 3600 - 1)
    assert api.payout(**KEY).replayed
    api.sandbox.advance(1)
    assert not api.payout(**KEY).replayed


def a_key_belongs_to_one_body(api: Api) -> None:
    api.payout(**KEY)
    assert api.payout(**KEY, amount=51).status == 409
    assert len(api.sandbox.books.payouts()) == 1


def keys_and_references_belong_to_one_merchant(api: Api) -> None:
    other = Api(api.sandbox, api.sandbox.new_key())
    mine = api.payout(**KEY, reference="r-1")
    theirs = other.payout(**KEY, reference="r-1")
    assert (theirs.status, theirs.replayed) == (201, False)
    assert other.get(f"/payouts/{mine.data['id']}/sync").status == 404
    assert [one["id"] for one in other.get("/payouts").data] == [theirs.data["id"]]


def a_reference_is_used_once(api: Api) -> None:
    assert api.payout(reference="r-1").status == 201
    got = api.payout(reference="r-1")
    assert (got.status, set(got.json)) == (409, {"message"})
    assert len(api.sandbox.books.payouts(reference="r-1")) == 1


def a_key_is_needed_and_has_to_be_good(api: Api) -> None:
    for status in BARRED:
        assert Api(api.sandbox, api.sandbox.new_key(status)).get("/payouts").status == 401
    assert Api(api.sandbox, "sk_sandbox_unknown").payout().status == 401
    assert Api(api.sandbox, "sk_live_" + api.key).payout().status == 401
    assert Api(api.sandbox, api.sandbox.new_key(allowlist=["10.0.0.0/8"])).get("/payouts").status == 403


def bounds_of_fields_hold(api: Api) -> None:
    for name, good, bad in BOUNDS:
        got = api.payout(**{name: bad})
        assert (got.status, set(got.json["errors"])) == (422, {name})
        assert api.payout(**{name: good}).status == 201
    for minutes, status in ((29, 422), (30, 201), (1440, 201), (1441, 422)):
        assert api.checkout(expires_in_minutes=minutes).status == status
    both = {"country_code": "BJ", "phone": {"number": "+2290"}}
    assert api.checkout(restriction=both).status == 422


def what_is_refused_leaves_nothing(api: Api) -> None:
    api.payout(amount=0, reference="r-1")
    assert not api.sandbox.books.payouts()
    assert api.payout(reference="r-1").status == 201


def limits_hold_and_a_429_does_nothing(_: Api) -> None:
    api = fresh(limits=SandboxLimits(writes=2, diagnostics_per_record=1))
    assert [api.payout().status for _ in range(3)] == [201, 201, 429]
    refused = api.payout()
    assert {"Retry-After", "X-RateLimit-Limit", "X-RateLimit-Remaining"} <= set(refused.headers)
    first, second = (entry.id for entry in api.sandbox.books.payouts())
    paths = (f"/payouts/{first}/sync", f"/payouts/{first}/inspect", f"/payouts/{second}/sync")
    assert [api.get(path).status for path in paths] == [200, 429, 200]
    api.sandbox.advance(int(refused.headers["Retry-After"]))
    assert api.payout().status == 201


def pages_are_newest_first_and_stable(api: Api) -> None:
    made = [api.payout().data["id"] for _ in range(5)]
    first = api.get("/payouts?per_page=2").json
    api.payout()
    rest = api.get(f"/payouts?per_page=100&cursor={first['pagination']['next_cursor']}").json
    assert [one["id"] for one in (*first["data"], *rest["data"])] == made[::-1]
    assert first["pagination"]["has_more_pages"]
    assert not rest["pagination"]["has_more_pages"]


def filters_narrow(api: Api) -> None:
    kept = api.payout(currency="USD").data["id"]
    api.payout()
    assert [one["id"] for one in api.get("/payouts?currency=USD").data] == [kept]
    assert api.get("/payouts?created_at[gte]=2026-01-02").data == []


def a_payout_ends_once(api: Api) -> None:
    early = api.payout(metadata={"sandbox_scenario": "fail:NO after=1s"}).data["id"]
    api.sandbox.settle(early)
    api.sandbox.advance(1)
    assert api.sync(early)["status"] == "completed"
    made = api.payout(metadata={"sandbox_scenario": "fail:NO after=10s"}).data
    assert (made["status"], made["failure"]) == ("pending", None)
    api.sandbox.advance(5)
    assert api.sync(made["id"])["status"] == "processing"
    api.sandbox.advance(5)
    failed = api.sync(made["id"])
    assert (failed["status"], failed["failure"]["code"]["value"]) == ("failed", "NO")
    assert (failed["failed_at"] is None, failed["completed_at"]) == (False, None)
    api.sandbox.advance(3600)
    assert api.sync(made["id"]) == failed
    assert api.sandbox.books.total("XOF") == 50


def a_payment_expires_unless_it_is_paid(api: Api) -> None:
    late, paid = (api.checkout(expires_in_minutes=30).data["payment"]["id"] for _ in range(2))
    api.sandbox.pay(paid)
    api.sandbox.advance(1799)
    assert [one.status for one in api.sandbox.books.payments()] == ["pending", "completed"]
    api.sandbox.advance(1)
    statuses = {one.id: one.status for one in api.sandbox.books.payments()}
    assert statuses == {late: "expired", paid: "completed"}


def refunds_in_flight_are_reserved(api: Api) -> None:
    made = api.post("/payment/intents", {**INTENT, "amount": 10}).data["id"]
    path = f"/payment/intents/{made}/refunds/availability"
    told = api.get(path).data
    assert (told["is_refundable"], told["execution_method"]) == (False, None)
    assert isinstance(told["unavailable_reason"], str)
    api.sandbox.pay(made)
    api.sandbox.refund(made, Decimal(3))
    flying = api.sandbox.refund(made, Decimal(4), pending=True)
    told = api.get(path).data
    amounts = [told[f"{name}_amount"]["value"] for name in ("refunded", "pending", "refundable")]
    assert (amounts, told["has_pending_refund"]) == ([3, 4, 3], True)
    api.sandbox.settle(flying, "fail:NO")
    assert api.get(path).data["refundable_amount"]["value"] == 7


def amounts_are_exact(api: Api) -> None:
    body = b'{"amount": 12345678901234567.89, "currency": "USD"}'
    told = api.post("/payment/intents", body)
    assert b'"value":12345678901234567.89' in told.answer.body


def webhooks_tell_of_creation_and_end(api: Api) -> None:
    api.payout(webhook_url=HOOK)
    api.sandbox.advance(10)
    assert [one.event for one in api.sandbox.deliveries] == ["payout.created", "payout.completed"]


def metadata_comes_back_as_it_was(api: Api) -> None:
    given = {"order": 7, "nested": {"a": [1, None]}}
    made = api.payout(metadata=given).data
    assert made["metadata"] == given
    assert api.get("/payouts").data[0]["metadata"] == given


CHECKS: tuple[Check, ...] = (
    a_repeat_is_answered_from_store,
    a_lost_answer_is_kept,
    a_key_lives_for_24_hours,
    a_key_belongs_to_one_body,
    keys_and_references_belong_to_one_merchant,
    a_reference_is_used_once,
    a_key_is_needed_and_has_to_be_good,
    bounds_of_fields_hold,
    what_is_refused_leaves_nothing,
    limits_hold_and_a_429_does_nothing,
    pages_are_newest_first_and_stable,
    filters_narrow,
    a_payout_ends_once,
    a_payment_expires_unless_it_is_paid,
    refunds_in_flight_are_reserved,
    amounts_are_exact,
    webhooks_tell_of_creation_and_end,
    metadata_comes_back_as_it_was,
)


def broken() -> list[str]:
    """The promises that the service in this process does not keep, by name."""
    found = []
    for check in CHECKS:
        try:
            check(fresh())
        except Exception:  # whatever a wrong service makes it stumble over is a promise not kept
            found.append(check.__name__)
    return found
