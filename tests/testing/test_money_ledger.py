"""The money ledger: each rule is broken by what it names, and by nothing that looks like it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from unittest.mock import ANY

import pytest

from payments_async.sandbox import Sandbox, VirtualClock
from payments_async.testing import SandboxTenant

INSTRUMENT = {"type": "phone", "phone_number": "+233200000001", "country": "GH"}
PAYOUT = {"amount": 10, "currency": "GHS", "method": "mobile_money", "instrument": INSTRUMENT}
INTENT = {"amount": 10, "currency": "GHS"}
ATTEMPT = {"method_code": "m", "country": "GH", "phone": {"number": "+233200000001", "country": "GH"}}


@pytest.fixture
def tenant() -> SandboxTenant:
    return SandboxTenant(Sandbox(clock=VirtualClock.frozen()))


def post(tenant: SandboxTenant, path: str, body: Any, key: str | None = None, api_key: str = "") -> int:
    headers = {"Authorization": f"Bearer {api_key or tenant.api_key}", "Content-Type": "application/json"}
    if key is not None:
        headers["X-Idempotency-Key"] = f"key-{key:0>8}"
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return tenant.service.handle("POST", f"/v1{path}", headers, raw).status


def pay(tenant: SandboxTenant, key: str | None, reference: str | None = None, **changes: Any) -> int:
    named = {} if reference is None else {"reference": reference}
    return post(tenant, "/payouts", {**PAYOUT, **named, **changes}, key)


def broken(tenant: SandboxTenant) -> list[str]:
    return [finding.rule for finding in tenant.findings()]


def lose(tenant: SandboxTenant, times: int = 1) -> None:
    tenant.on("payouts.create").respond("lost_response", times=times)


def collect(tenant: SandboxTenant, key: str, entity: str | None, outcome: str = "complete immediate") -> int:
    body = {**INTENT, "attempt": ATTEMPT, "metadata": {"sandbox_scenario": outcome}}
    return post(tenant, "/payment/intents", body | ({"entity_id": entity} if entity else {}), key)


def losing_request(tenant: SandboxTenant) -> None:
    tenant.on("payouts.create").respond("lost_request")


def paying(key: str | None, reference: str | None = None, status: int = 0, **changes: Any) -> Any:
    """A step: one request for a payout, answered with this status, if it is given."""
    return lambda tenant: pay(tenant, key, reference, **changes) == (status or ANY)


def collecting(key: str, entity: str | None, outcome: str = "complete immediate") -> Any:
    """A step: one payment."""
    return lambda tenant: collect(tenant, key, entity, outcome)


def reading(tenant: SandboxTenant) -> bool:
    """A step: the list is read, as `find` does."""
    headers = {"Authorization": f"Bearer {tenant.api_key}"}
    return tenant.service.handle("GET", "/v1/payouts?reference=r-1", headers).status == 200


def sending(body: bytes) -> Any:
    """A step: one refused request."""
    return lambda tenant: post(tenant, "/payouts", body, body.hex()) >= 400


def simulated(tenant: SandboxTenant) -> None:
    tenant.on("payouts.create").respond("http:409")


def failing(tenant: SandboxTenant) -> None:
    tenant.on("payouts.create").outcome("fail:NO_FUNDS immediate", times=1)


def given_back(tenant: SandboxTenant) -> None:
    collect(tenant, "1", "order-7")
    tenant.refund(tenant.books.payments()[0].id)


UNAVAILABLE = {"sandbox_scenario": "http:503"}
NESTED = {**INSTRUMENT, "more": [1, {"a": None}]}

SCENES: dict[str, tuple[list[Callable[[SandboxTenant], object]], list[str]]] = {
    "two equal payouts, answered": ([paying("1", "r-1"), paying("2", "r-2")], []),
    "a repeat under the same key": ([lose, paying("1", "r-1"), paying("1", "r-1"), paying("2", "r-2")], []),
    "another amount": ([lose, paying("1", "r-1"), paying("2", "r-2", amount=11)], []),
    "another currency": ([lose, paying("1", "r-1"), paying("2", "r-2", currency="XOF")], []),
    "another method": ([lose, paying("1", "r-1"), paying("2", "r-2", method="other")], []),
    "a request that was lost": ([losing_request, paying("1", "r-1"), paying("2", "r-2")], []),
    "two equal payouts without references": ([paying("1"), paying("2")], ["paid_again"]),
    "a payout that failed": ([failing, lose, paying("1", "r-1"), paying("2", "r-2")], []),
    "equal but for a null": (
        [lose, paying("1", "r-1", instrument=NESTED), paying("2", "r-2", instrument=NESTED)],
        ["paid_again"],
    ),
    "one key under two bodies": ([paying("1", "r-1"), paying("1", "r-2", status=409)], ["key_reused"]),
    "a repeat without a key": (
        [paying(None, "r-1", metadata=UNAVAILABLE), paying(None, "r-1", metadata=UNAVAILABLE)],
        ["posted_without_key"],
    ),
    "two POSTs without a key that differ": ([paying(None, "r-1"), paying(None, "r-2")], []),
    "a reference that is taken, and its payout read": (
        [paying("1", "r-1"), paying("2", "r-1", status=409), reading],
        [],
    ),
    "a reference that is taken, and nothing more": ([paying("1", "r-1"), paying("2", "r-1", status=409)], []),
    "a reference after the service had refused it": (
        [paying("1", "r-1"), paying("2", "r-1", status=409), reading, paying("3", "r-1", status=409)],
        ["reference_refused"],
    ),
    "the first key again after a refusal": (
        [paying("1", "r-1"), paying("2", "r-1", status=409), paying("1", "r-1")],
        [],
    ),
    "an equal payout under another reference after a refusal": (
        [paying("1", "r-1"), paying("2", "r-1", status=409), paying("3", "r-2")],
        ["reference_refused"],
    ),
    "an equal payout under another reference after a refusal and a read": (
        [paying("1", "r-1"), paying("2", "r-1", status=409), reading, paying("3", "r-2")],
        [],
    ),
    "another payout after a refusal": (
        [paying("1", "r-1"), paying("2", "r-1", status=409), paying("3", "r-2", amount=11)],
        [],
    ),
    "a reference after a lost answer": ([lose, paying("1", "r-1"), paying("2", "r-1", status=409)], []),
    "a simulated 409": ([paying("1", "r-1"), simulated, paying("2", "r-1", status=409)], []),
    "a payment after one that was declined": (
        [collecting("1", "order-7", "fail:DECLINED immediate"), collecting("2", "order-7")],
        [],
    ),
    "a payment after one that hangs": (
        [collecting("1", "order-7", "manual"), collecting("2", "order-7")],
        [],
    ),
    "payments for other entities": (
        [
            collecting("1", "order-7"),
            collecting("2", "order-8"),
            collecting("3", None),
            collecting("4", None),
        ],
        [],
    ),
    "a payment after one that was refunded": ([given_back, collecting("2", "order-7")], []),
    "bodies that are no JSON objects": ([sending(b"[1]"), sending(b"{"), sending(b"[]")], []),
}


@pytest.mark.parametrize(("steps", "rules"), SCENES.values(), ids=SCENES)
def test_a_rule_is_broken_by_what_it_names_alone(
    tenant: SandboxTenant, steps: list[Callable[[SandboxTenant], object]], rules: list[str]
) -> None:
    assert {step(tenant) for step in steps} <= {None, True, 201}
    assert broken(tenant) == rules


def test_a_payout_in_doubt_that_is_sent_anew_under_another_reference_is_paid_twice(
    tenant: SandboxTenant,
) -> None:
    lose(tenant)
    pay(tenant, "1", "r-1", description="salary")
    pay(tenant, "2", "r-2", description="salary, again", amount=10.00)
    (finding,) = tenant.findings()
    assert finding.rule == "paid_again"
    assert "'r-2'" in finding.text
    assert "'r-1'" in finding.text
    assert "233200000001" not in finding.text


@pytest.mark.parametrize("account", ["ada@shop.test", "+233 24 412 3456"])
def test_a_finding_shows_no_account_data_and_no_long_name(tenant: SandboxTenant, account: str) -> None:
    lose(tenant)
    pay(tenant, "1", account)
    pay(tenant, "2", 90 * "x")
    (finding,) = tenant.findings()
    assert account not in finding.text
    assert f"reference '{40 * 'x'}')" in finding.text


@pytest.mark.parametrize(("entity", "shown"), [("order-7", "order-7"), ("ada@shop.test", "•••st")])
def test_two_payments_collected_for_one_entity_are_found(
    tenant: SandboxTenant, entity: str, shown: str
) -> None:
    collect(tenant, "1", entity)
    collect(tenant, "2", entity)
    (finding,) = tenant.findings()
    assert finding.rule == "collected_twice"
    assert finding.text == f"2 payments were collected for the entity {shown!r}"


def test_two_attempts_of_one_payment_that_both_completed_are_found(tenant: SandboxTenant) -> None:
    collect(tenant, "1", "order-7")
    with tenant.service.changing() as world:  # what the service must never do
        (owner,) = (each for each in world.tenants.values() if each.payments)
        owner.payments[0].attempts *= 2
    assert broken(tenant) == ["collected_twice"]


def test_other_tenants_do_not_matter_and_further_keys_do(tenant: SandboxTenant) -> None:
    stranger = tenant.service.new_key()
    for key in ("1", "2"):
        post(tenant, "/payouts", PAYOUT, key, stranger)
    assert broken(tenant) == []
    other = tenant.new_key()
    for key in ("1", "2"):
        post(tenant, "/payouts", PAYOUT, key, other)
    assert broken(tenant) == ["paid_again"]
