"""One row of a ledger for a reader: what is known of it, and when, account data masked."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import attrs

from .._ledger import views
from .._ledger.ledger import Ledger
from .._protocol.identifiers import shown_key, shown_reference
from .._protocol.outcomes import Outcome, RowState
from .._protocol.records import LedgerRow, StatusChange
from .row_records import record


@attrs.frozen
class RowView:
    """One row, as far as the ledger knows."""

    number: int
    """The row's number among the input's rows of data, from 1."""
    line: int | None
    """The file's line where the row begins, from 1."""
    row_key: str
    """The operator's name of the row; `***` where it could be a person's name or number."""
    reference: str
    """The payout's reference; `***` where it could be a person's name or number."""
    amount: Decimal
    """Major units."""
    currency: str
    method: str
    outcome: Outcome
    """What became of it."""
    payout_status: str | None
    """The payout's status as the service showed it last."""
    payout_id: str | None
    """The payout's id, once it is known."""
    payout_money: str | None
    """Currency and amount that the service shows of the payout, if they are not what was asked for."""
    generation: int
    """How often the row was made new after its payout had failed."""
    failure_code: str | None
    failure_message: str | None
    """The service's own words, account data masked."""
    sends: int
    """How often a process took the row to send it, without the times when provably nothing left."""
    first_sent: float | None
    """Seconds since 1970 when it was first taken to be sent; None before, or if nothing has ever left."""
    last_sent: float | None
    """Seconds since 1970 by which its latest request has left; None before."""
    sent_under: str | None
    """Fingerprint of the secret key of its latest request; None before."""
    decided_at: float | None
    """Seconds since 1970 when its state was recorded; None before. `statuses` has its payouts' times."""
    account: dict[str, dict[str, Any]] = attrs.field(repr=False)
    """Its `instrument` and `customer`, all fields masked that could show whose account it is."""
    statuses: tuple[StatusChange, ...] = ()
    """Each status of its payouts that differs from the one before. Only `row` reads them."""

    @property
    def reason(self) -> str | None:
        """Why it was rejected, has failed or is in doubt, or how it contradicts itself; None without one."""
        return reason_of(self)

    def facts(self) -> dict[str, Any]:
        """The same as JSON values, the amount as text."""
        shown = {"amount": f"{self.amount:f}", "outcome": self.outcome.value, "reason": self.reason}
        return {**attrs.asdict(self), **shown}


def reason_of(row: RowView | LedgerRow) -> str | None:
    """The service's code and words for a refusal or a failure; None without any."""
    return ": ".join(filter(None, (row.failure_code, row.failure_message))) or None


async def row_view(ledger: Ledger, name: str | int) -> RowView | None:
    """Show the row with this key, reference or number; None when there is none. Raises LedgerError."""
    row = await views.find(ledger, name)
    if row is None:
        return None
    return attrs.evolve(view_of(row), statuses=await views.statuses(ledger, row))


def view_of(row: LedgerRow) -> RowView:
    facts, last_sent = record(row, accounts=False), row.last_sent
    if last_sent is not None and row.decided_at is not None and row.state is not RowState.IN_FLIGHT:
        last_sent = min(last_sent, row.decided_at)  # the answer came before the time for sending was over
    return RowView(
        row.number,
        row.line,
        shown_key(row.row_key, row.number),
        shown_reference(row.reference),
        row.amount,
        row.currency,
        row.method,
        row.outcome,
        payout_status=row.service_status,
        payout_id=row.payout_id,
        payout_money=row.payout_money,
        generation=row.generation,
        failure_code=row.failure_code,
        failure_message=row.failure_message,
        sends=row.takes - row.unsent,
        first_sent=row.first_sent,
        last_sent=None if row.first_sent is None else last_sent,
        sent_under=None if row.first_sent is None else row.sent_under,
        decided_at=row.decided_at,
        account={part: facts[part] for part in ("instrument", "customer")},
    )
