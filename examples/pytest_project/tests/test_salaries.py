"""The cases that cost money."""

from __future__ import annotations

from decimal import Decimal

import pytest
from salaries import Salary, is_paid, pay, pay_all

from payments_async import AsyncPayments
from payments_async.testing import SandboxTenant
from payments_sync import Payments

ADA = Salary("ada", "2026-01", "+233200000001", Decimal("5200.50"))
GRACE = Salary("grace", "2026-01", "+233200000002", Decimal("6100"))


async def test_everybody_is_paid(sandbox: SandboxTenant, payments_client: AsyncPayments) -> None:
    assert await pay_all(payments_client, [ADA, GRACE]) == []
    assert sandbox.books.total("GHS") == Decimal("11300.50")


@pytest.mark.parametrize(
    "fault", ["lost_response", "lost_request", "http:503*2", "429:30", "cut_body", "bad_json"]
)
async def test_a_salary_is_paid_once_whatever_happens_on_the_way(
    sandbox: SandboxTenant, payments_client: AsyncPayments, fault: str
) -> None:
    sandbox.on("payouts.create", reference=ADA.reference).respond(fault)
    await pay(payments_client, ADA)
    assert len(sandbox.books.payouts(reference=ADA.reference)) == 1


async def test_an_answer_that_never_comes_is_found_out(
    sandbox: SandboxTenant, payments_client: AsyncPayments
) -> None:
    sandbox.on("payouts.create").respond("lost_response", times=3)
    payout = await pay(payments_client, ADA)
    assert payout.reference == ADA.reference
    assert len(sandbox.books.payouts()) == 1


async def test_a_month_that_is_run_again_pays_nobody_twice(
    sandbox: SandboxTenant, payments_client: AsyncPayments
) -> None:
    first, again = await pay(payments_client, ADA), await pay(payments_client, ADA)
    assert first.id == again.id
    assert sandbox.books.total("GHS") == ADA.amount


async def test_a_salary_that_fails_is_told(sandbox: SandboxTenant, payments_client: AsyncPayments) -> None:
    sandbox.on("payouts.create", reference=GRACE.reference).outcome("fail:INVALID_RECIPIENT")
    assert await pay_all(payments_client, [ADA, GRACE]) == [GRACE.reference]


def test_the_back_office_sees_when_it_has_arrived(
    sandbox: SandboxTenant, sync_payments_client: Payments
) -> None:
    sync_payments_client.payouts.create(
        amount=ADA.amount,
        currency="GHS",
        method="mobile_money",
        instrument={"type": "phone", "phone_number": ADA.phone, "country": "GH"},
        reference=ADA.reference,
    )
    assert not is_paid(sync_payments_client, ADA)
    sandbox.advance(5)
    assert is_paid(sync_payments_client, ADA)
