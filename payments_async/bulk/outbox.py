"""Payouts that are asked for in the app's own database transaction, beside the order that they are for.

    outbox = Outbox("payouts", environment="live")
    async with session.begin():
        session.add(order)
        await outbox.add(session, amount="10.10", currency="GHS", method=…, instrument=…, reference="order-7")

What is rolled back is never sent. What is committed is paid once, by `PayoutBatch.run` of the same name.
"""

from __future__ import annotations

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession

from ..params import CustomerFields, CustomerInput, Instrument, Money, Pairs
from ._outbox import OutboxRow, OutboxStatements, outbox_row, require_same


class Outbox(OutboxStatements):
    """Payouts that are added within transactions of the app's own AsyncSession or AsyncConnection."""

    async def add(
        self,
        session: AsyncSession | AsyncConnection,
        *,
        amount: Money,
        currency: str,
        method: str,
        instrument: Instrument | Pairs,
        reference: str,
        description: str | None = None,
        customer: CustomerInput | CustomerFields | None = None,
        webhook_url: str | None = None,
        metadata: Pairs | None = None,
        gateway_options: Pairs | None = None,
    ) -> OutboxRow:
        """Ask for a payout in the present transaction: it is paid once that is committed, and only then.

        Args:
            session: the app's own, whose database has the tables of `metadata`.
            amount: major units, at least 1: Decimal, int or decimal text.
            currency: ISO 4217, three uppercase letters.
            method: the payout method's code, from the dashboard.
            instrument: the receiving account or phone number.
            reference: your identifier, unique within the project, at most 191 characters. Added again with
                the same content, it is the same payout.
            description: at most 500 characters.
            customer: whom it is for.
            webhook_url: the address that gets creation, completion and failure events, unsigned, at most 2048
                characters.
            metadata: up to 9 pairs, returned unchanged.
            gateway_options: parameters for gateways, by gateway code.

        Raises:
            InvalidRequest: every fault of the arguments; nothing was inserted.
            OutboxConflict: the reference stands already, for other content.
            BulkError: the outbox's name is that of a batch of a file.
        """
        statement = self.statement(
            amount=amount,
            currency=currency,
            method=method,
            instrument=instrument,
            reference=reference,
            description=description,
            customer=customer,
            webhook_url=webhook_url,
            metadata=metadata,
            gateway_options=gateway_options,
        )
        await session.execute(statement)
        found = (await session.execute(self.lookup(reference))).mappings().first()
        return require_same(statement, found)

    async def find(self, session: AsyncSession | AsyncConnection, reference: str) -> OutboxRow | None:
        """Look up the payout that was added with this reference; None if it never was, or is forgotten."""
        found = (await session.execute(self.lookup(reference))).mappings().first()
        return None if found is None else outbox_row(found)
