"""Makes rows new again: those whose payouts have finally failed, and those that were rejected."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Final

import attrs

from ...models.common import amount_text
from .._engine.payout_list import PayoutList
from .._engine.reading import JudgedRow, ListReading
from .._engine.service import Service
from .._ledger.ledger import Ledger
from .._protocol.identifiers import next_generation, same_again, shown_key
from .._protocol.listed_payouts import UNSEEN, UNSEEN_EARLIER, retry_block
from .._protocol.outcomes import EXACT, NOT_ARRIVED, Outcome, brief
from .._protocol.records import HIDDEN, LedgerRow, RowSet, grouped
from .._protocol.row_state import RowState
from ..errors import BulkError

_REASONS: Final = 100
_GROUP: Final = 500
_RETURNED: Final = "its payout had arrived and was returned: name the row to pay its {} once more"


@attrs.frozen
class LeftRow:
    """A row that is not retried."""

    number: int
    reason: str
    """The reason, without account data."""


@attrs.frozen
class RetryReport:
    """The rows that the next `run` will pay again."""

    batch_id: str
    rows: tuple[int, ...]
    """The numbers of the rows, in rising order."""
    totals: Mapping[str, Decimal] = attrs.field(repr=brief)
    """{currency: the sum of the rows' amounts, major units}."""
    left: tuple[LeftRow, ...]
    """Rows that were requested, or believed to have failed, and are left unchanged."""
    dry_run: bool = False
    """True if no row was made new: the report is what would have been done."""
    reasons: Mapping[int, str] = attrs.field(factory=dict)
    """{number: reason for the retry} of the first hundred `rows`: key, amount, failure code."""


@attrs.define
class _Retried:
    """Counts the rows that are made new again."""

    rows: list[int] = attrs.field(factory=list)
    totals: dict[str, Decimal] = attrs.field(factory=dict)
    reasons: dict[int, str] = attrs.field(factory=dict)

    def add(self, row: LedgerRow) -> None:
        """Count a row, with its reason if it is one of the first; no account data."""
        self.rows.append(row.number)
        self.totals[row.currency] = EXACT.add(self.totals.get(row.currency, Decimal(0)), row.amount)
        if len(self.reasons) < _REASONS:
            name = shown_key(row.row_key, row.number)
            key = "" if name in ("", HIDDEN) else f"{name}, "
            why = row.failure_code or "no failure code"
            self.reasons[row.number] = f"{key}{amount_text(row.currency, row.amount)}: {why}"

    def report(self, ledger: Ledger, left: Sequence[LeftRow] = (), *, dry_run: bool) -> RetryReport:
        """Make the report of these rows, and of those left unchanged."""
        in_order = tuple(sorted(left, key=lambda left: left.number))
        rows, batch_id = tuple(sorted(self.rows)), ledger.header.binding.batch_id
        return RetryReport(batch_id, rows, self.totals, in_order, dry_run, self.reasons)


async def _require(ledger: Ledger, wanted: Collection[int] | None, state: RowState, reason: str) -> None:
    """Check that all requested rows are in that state. Raises BulkError."""
    found = await ledger.numbered(wanted or ())
    for number in sorted(wanted or ()):
        row = found.get(number)
        if row is None:
            raise BulkError(f"row {number} is not in the batch; nothing was changed")
        if row.state is not state:
            outcome = row.outcome.replace("_", " ")
            raise BulkError(f"row {number}: {outcome}, and {reason}; nothing was changed")


class Retrier:
    """Reads the whole list, then makes rows new. A row stays of which any payout has not failed.

    So does one whose payout had arrived and was returned, unless it is asked for by its number.
    """

    def __init__(
        self, ledger: Ledger, service: Service, rows: Collection[int] | None, *, dry_run: bool = False
    ) -> None:
        self._ledger, self._service, self._dry_run = ledger, service, dry_run
        self._wanted = None if rows is None else frozenset(rows)
        self._reading = ListReading(ledger, service)
        self._failed, self._unsent = RowSet(), RowSet()
        self._blocked: dict[int, str] = {}
        self._retried = _Retried()
        self._left: list[LeftRow] = []

    async def retry(self, on_commit: Callable[[], object]) -> RetryReport:
        """Scan the list once. Raises BulkError for rows that cannot be retried, and PaymentsError."""
        why = "only a created row's payout can have failed"
        await _require(self._ledger, self._wanted, RowState.CREATED, why)
        walk = PayoutList(self._service)
        while not walk.is_over:
            page = await self._reading.take(await walk.page())
            self._take(each for each in page if each.row.number not in self._reading.several)
            on_commit()
        self._take(await self._reading.end(whole=not walk.unread))
        unread = f", which may be one of the {walk.unread} that could not be read" if walk.unread else ""
        async for group in grouped(self._candidates(), _GROUP):
            await self._replace(group, unread)
            on_commit()
        self._left += [LeftRow(number, reason) for number, reason in self._blocked.items()]
        return self._retried.report(self._ledger, self._left, dry_run=self._dry_run)

    def _take(self, judged: Iterable[JudgedRow]) -> None:
        """Note of each row whether all its payouts have failed, and else why it is left."""
        for each in judged:
            reason = retry_block(each.before, each.payouts)
            if reason is None:
                self._failed.add(each.row.number)
                if not each.shows_own:
                    self._unsent.add(each.row.number)
            elif self._is_candidate(each):
                self._blocked.setdefault(each.row.number, reason)

    def _is_candidate(self, judged: JudgedRow) -> bool:
        if self._wanted is not None:
            return judged.row.number in self._wanted
        return judged.before.outcome in NOT_ARRIVED or judged.row.outcome in NOT_ARRIVED

    async def _candidates(self) -> AsyncIterator[LedgerRow]:
        """Read the rows that are asked for, else all whose payouts have failed."""
        if self._wanted is None:
            async for row in self._ledger.failed():
                yield row
            return
        for row in (await self._ledger.numbered(self._wanted)).values():
            yield row

    async def _replace(self, rows: Sequence[LedgerRow], unread: str) -> None:
        """Make rows new, but for those that are blocked or of which the list does not show every payout."""
        replaced = []
        for row in rows:
            if (reason := self._blocked.get(row.number)) is not None:
                if reason == UNSEEN_EARLIER:
                    self._blocked[row.number] = f"{reason}{unread}"
                continue
            if self._wanted is None and row.outcome is Outcome.RETURNED:
                self._blocked[row.number] = _RETURNED.format(amount_text(row.currency, row.amount))
                continue
            if row.number not in self._failed:
                self._blocked[row.number] = f"{UNSEEN}{unread}"
                continue
            try:
                replaced.append((row, next_generation(row, self._ledger.header.binding)))
            except ValueError as error:
                self._blocked[row.number] = str(error)
        if replaced and not self._dry_run:
            unsent = {row.number for row, _ in replaced if row.number in self._unsent}
            await self._ledger.next_generation([new for _, new in replaced], unsent)
        for row, _ in replaced:
            self._retried.add(row)


async def retry_rejected(
    ledger: Ledger, rows: Collection[int] | None, on_commit: Callable[[], object], *, dry_run: bool
) -> RetryReport:
    """Make rejected rows new again: same reference, same body, a new idempotency key.

    Raises BulkError, before anything is changed, for rows that were not rejected.
    """
    wanted = None if rows is None else frozenset(rows)
    await _require(ledger, wanted, RowState.REJECTED, "only a rejected row can be sent as it is once more")
    retried = _Retried()

    async def chosen() -> AsyncIterator[LedgerRow]:
        async for row in ledger.rows(RowState.REJECTED):
            if wanted is None or row.number in wanted:
                yield row

    async for group in grouped(chosen(), _GROUP):
        for row in group:
            retried.add(row)
        if not dry_run:
            await ledger.correct([same_again(row, ledger.header.binding) for row in group])
            on_commit()
    return retried.report(ledger, dry_run=dry_run)
