"""How a payout has ended, in the forms that a service may use."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from payments_async.bulk._protocol.payout_status import described, facts_of, failure_of, status_of
from payments_async.models import Amount, Failure, FailureCode, Payout

AT = datetime(2026, 1, 1, tzinfo=UTC)


def payout(**fields: Any) -> Payout:
    """A payout."""
    return Payout(id="po_1", reference="r", **fields)


@pytest.mark.parametrize(
    ("shown", "status", "failure"),
    [
        (payout(status="pending"), "pending", None),
        (payout(status="completed"), "completed", None),
        (payout(status="failed"), "failed", "failed"),
        (payout(status="reversed"), "reversed", "reversed"),
        (payout(completed_at=AT), "completed", None),
        (payout(failed_at=AT), "failed", "failed"),
        (payout(status="bounced", failed_at=AT), "bounced", "bounced"),
        (payout(status="settled", completed_at=AT), "settled", None),
        (payout(status="reversed", completed_at=AT), "reversed", "reversed"),
        (payout(), None, None),
        (payout(status="failed", failure=Failure(code=FailureCode(value="NO_FUNDS"))), "failed", "NO_FUNDS"),
        (payout(status="failed", failure=Failure()), "failed", "failed"),
        (payout(status="failed", failure=Failure(code=FailureCode(value="of +229 90"))), "failed", "failed"),
        (payout(status="failed", completed_at=AT), "failed", None),
    ],
)
def test_status_and_failure_are_read_from_statuses_and_timestamps(
    shown: Payout, status: str | None, failure: str | None
) -> None:
    assert (status_of(shown), failure_of(shown)) == (status, failure)


@pytest.mark.parametrize(
    ("shown", "told"),
    [
        (payout(status="pending", completed_at=AT), "pending with completed_at"),
        (payout(status="completed", failed_at=AT), "completed with failed_at"),
        (payout(completed_at=AT, failed_at=AT), "without a status with completed_at and failed_at"),
    ],
)
def test_a_contradiction_names_the_status_and_the_timestamps(shown: Payout, told: str) -> None:
    assert described(shown) == f"{told}: the service contradicts itself"


def test_the_facts_of_a_payout_are_exact() -> None:
    made = Amount(value=Decimal("11.0000000000000000000001"), currency="XCD")
    assert facts_of(payout(amount=made, status="completed")) == (
        "po_1, XCD 11.0000000000000000000001, completed"
    )


@pytest.mark.parametrize(
    ("amount", "told"),
    [
        (Amount(currency="XCD"), "po_1, XCD"),
        (Amount(value=Decimal("1E+99999"), currency="XCD"), "po_1, XCD 1E+99999"),
    ],
)
def test_an_amount_that_is_not_shown_or_absurd_is_told_in_few_digits(amount: Amount, told: str) -> None:
    assert facts_of(payout(amount=amount)) == told
