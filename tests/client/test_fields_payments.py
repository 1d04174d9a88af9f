"""Attempts, next actions and failovers, field by field (Resources, Payment attempt)."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from payments_async.models import (
    Amount,
    ExchangeRate,
    Failover,
    Failure,
    FailureCode,
    Gateway,
    GatewayTransaction,
    Method,
    NextAction,
)
from tests.support import bodies
from tests.support.forms import ATTEMPTS, ATTEMPTS_ALONE, Connect, at, exactly, read, rows

pytestmark = pytest.mark.parametrize("surface", ["async"], indirect=True)  # the mirror decodes nothing itself

LIST = ("attempt in the list",)


def second(number: int) -> datetime:
    return datetime(2026, 1, 2, 3, 4, number, tzinfo=UTC)


NEXT_ACTION: bodies.Json = {
    **bodies.NEXT_ACTION,
    "instructions": ("Dial the code.", "Enter your PIN."),
    "fields": ({"name": "otp", "rules": {"length": 6}},),
}
ATTEMPT = {
    "id": "pa_1",
    "method": Method(**bodies.METHOD),
    "amount": Amount(Decimal("10.10"), "XOF 10.10", "XOF 10", "XOF"),
    "correction_rate": Decimal("1.02"),
    "gateway": Gateway(GatewayTransaction("gt_1", "gt-ref-1", "ext-1", "SETTLED")),
    "failover": Failover(True, {"reason": "GATEWAY_DOWN", "tried": [1, 2]}),
    "completed_at": second(5),
    "failed_at": second(6),
    "created_at": second(0).replace(microsecond=123456),
}
ALONE = {
    "exchange_rate": Decimal("655.957"),
    "next_action": NextAction(**NEXT_ACTION),
    "failure": Failure(
        FailureCode("CUSTOMER_DECLINED", message="Declined by the customer."), "The payer said no."
    ),
    **dict.fromkeys(("status", "processing_at", "action_required_at", "expired_at")),
}
LISTED = {
    "exchange_rate": ExchangeRate(Decimal("655.95700000"), "EUR", "XOF", "1 EUR = 655.957 XOF"),
    "next_action": NextAction(type="none", **NEXT_ACTION),
    "failure": Failure(
        FailureCode("INSUFFICIENT_FUNDS", "CUSTOMER_ERROR", "Too little money."), "The balance is too low."
    ),
    "status": "processing",
    "processing_at": second(1),
    "action_required_at": second(2),
    "expired_at": second(7),
}
FAILOVER = {"is_failover": True, "decision": {"reason": "GATEWAY_DOWN", "tried": [1, 2]}}

ROWS = [
    *rows(ATTEMPTS, "field.attempt", ATTEMPT),
    *rows(ATTEMPTS_ALONE, "field.attempt", ALONE),
    *rows(LIST, "field.attempt", LISTED),
    *rows(ATTEMPTS, "field.next-action", NEXT_ACTION, at="next_action"),
    *rows(ATTEMPTS_ALONE, "field.next-action", {"type": None}, at="next_action"),
    *rows(LIST, "field.next-action", {"type": "none"}, at="next_action"),
    *rows(ATTEMPTS, "field.failover", FAILOVER, at="failover"),
]


@pytest.mark.parametrize(("form", "path", "expected"), ROWS)
async def test_a_field_is_read_with_its_type(
    connect: Connect, form: str, path: str, expected: object
) -> None:
    assert exactly(at(await read(connect, form), path), expected)


@pytest.mark.fact("field.attempt.failure")
@pytest.mark.parametrize("body", [{"failure": None}, {}], ids=["null", "missing"])
async def test_an_attempt_that_did_not_fail_has_no_failure(connect: Connect, body: bodies.Json) -> None:
    without = {name: value for name, value in bodies.ATTEMPT.items() if name != "failure"}
    assert (await read(connect, "attempt", {"data": {**without, **body}})).failure is None


@pytest.mark.fact("field.failover.decision", "open.inner-objects")
@pytest.mark.parametrize("decision", [None, "next", 3, ["a", {"b": None}], {"deep": {"x": [1]}}, False])
async def test_a_failover_decision_is_whatever_json_came(connect: Connect, decision: object) -> None:
    body = {"data": {**bodies.ATTEMPT, "failover": {"is_failover": False, "decision": decision}}}
    assert exactly((await read(connect, "attempt", body)).failover.decision, decision)
