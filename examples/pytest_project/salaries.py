"""Pays salaries, each once: awaited, and blocking for the scripts of the back office."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from payments_async import AsyncPayments, DuplicateReference, Instrument, OutcomeUnknown, Payout
from payments_sync import Payments


@dataclass(frozen=True)
class Salary:
    """What one person is paid for one month."""

    person: str
    month: str
    phone: str
    amount: Decimal

    @property
    def reference(self) -> str:
        """The same whenever it is paid, so that it is paid once."""
        return f"salary-{self.month}-{self.person}"


async def pay(client: AsyncPayments, salary: Salary) -> Payout:
    """Pay a salary that may have been paid before."""
    try:
        return await client.payouts.create(
            amount=salary.amount,
            currency="GHS",
            method="mobile_money",
            instrument=Instrument.phone(salary.phone, "GH"),
            reference=salary.reference,
        )
    except OutcomeUnknown as unknown:
        payout = await client.resolve(unknown)
        assert isinstance(payout, Payout)
        return payout
    except DuplicateReference:
        found = await client.payouts.find(salary.reference)
        assert found is not None
        return found


async def pay_all(client: AsyncPayments, salaries: Iterable[Salary]) -> list[str]:
    """Pay them one by one and give the references of those that failed."""
    payouts = [await client.payouts.wait(await pay(client, salary)) for salary in salaries]
    return [payout.reference or "" for payout in payouts if not payout.is_successful]


def is_paid(client: Payments, salary: Salary) -> bool:
    """Whether a salary has arrived."""
    found = client.payouts.find(salary.reference)
    return found is not None and found.is_successful
