"""One row of a ledger for a reader: what is known of it, its attempts and times, account data masked."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import attrs

from .._ledger.ledger import Ledger
from .._protocol.attempts import NO_ATTEMPTS, RowAttempts
from .._protocol.identifiers import shown_key, shown_reference
from .._protocol.outcomes import Outcome
from .._protocol.records import HIDDEN, IntentTimes, LedgerRow, StatusChange
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
    generation: int
    """How often the row was made new after its payout had failed."""
    failure_code: str | None
    failure_message: str | None
    """The service's own words, account data masked."""
    attempts: RowAttempts
    """The requests that were sent for it; none are kept of a row that was created at once."""
    first_sent: float | None
    """Seconds since 1970 when its first intent was recorded; None before."""
    last_sent: float | None
    """Seconds since 1970 when its last attempt began, or its last intent was recorded; None before."""
    base_url: str
    """The service that its batch is paid at."""
    account: dict[str, dict[str, Any]] = attrs.field(repr=False)
    """Its `instrument` and `customer`, all fields masked that could show whose account it is."""
    payout_money: str | None = None
    """Currency and amount that the service shows of the payout, if they are not what was asked for."""
    statuses: tuple[StatusChange, ...] = ()
    """Each status of its payouts that differs from the one before. Only `row` reads them."""

    @property
    def name(self) -> str:
        """What finds the row: its key, else its reference, else its number, the first that is not masked."""
        return next(each for each in (self.row_key, self.reference, str(self.number)) if each != HIDDEN)

    @property
    def reason(self) -> str | None:
        """Why it was rejected, has failed or is in doubt, or how it contradicts itself; None without one."""
        return reason_of(self)

    def facts(self) -> dict[str, Any]:
        """The same as JSON values, the amount as text."""
        values = attrs.asdict(self, recurse=False)
        shown = {"amount": f"{self.amount:f}", "outcome": self.outcome.value, "reason": self.reason}
        statuses = [attrs.asdict(each) for each in self.statuses]
        return {**values, **shown, "attempts": self.attempts.facts(), "statuses": statuses}


def reason_of(row: RowView | LedgerRow) -> str | None:
    """The service's code and words for a refusal or a failure; None without any."""
    return ": ".join(filter(None, (row.failure_code, row.failure_message))) or None


async def row_view(ledger: Ledger, name: str | int) -> RowView | None:
    """Show the row with this key, reference or number; None when there is none. Raises LedgerError."""
    row = await ledger.find(name)
    if row is None:
        return None
    (shown,) = await views(ledger, [row])
    return attrs.evolve(shown, statuses=await ledger.statuses(row))


async def views(ledger: Ledger, rows: Sequence[LedgerRow]) -> list[RowView]:
    """Show these rows, at most a thousand. Raises LedgerError."""
    attempts, times = await ledger.attempts([row.number for row in rows]), await ledger.intent_times(rows)
    base_url = ledger.header.binding.base_url
    return [
        _view(row, attempts.get(row.number, NO_ATTEMPTS), times.get(row.number), base_url) for row in rows
    ]


def _view(row: LedgerRow, attempts: RowAttempts, at: IntentTimes | None, base_url: str) -> RowView:
    facts = record(row, accounts=False)
    known = row.known
    begun = (each.at - each.seconds for each in attempts)
    return RowView(
        *(row.number, row.line, shown_key(row.row_key, row.number), shown_reference(row.reference)),
        amount=row.amount,
        currency=row.currency,
        method=row.method,
        outcome=row.outcome,
        payout_status=row.service_status,
        payout_id=known.payout_id or None,
        payout_money=row.payout_money,
        generation=known.generation,
        failure_code=row.failure_code,
        failure_message=row.failure_message,
        attempts=attempts,
        first_sent=None if at is None else at.first.wall,
        last_sent=None if at is None else max([at.last.wall, *begun]),
        base_url=base_url,
        account={part: facts[part] for part in ("instrument", "customer")},
    )
