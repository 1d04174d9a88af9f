"""Makes rows ready to be paid again: those whose payouts failed for good, and those that were refused."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Decimal
from typing import Final

import attrs

from ...models import Payout
from ..engine.mirror import Bits, ListedRow, Mirror
from ..engine.payout_list import PayoutList
from ..engine.service import Service
from ..errors import BulkError
from ..ledger.ledger import Ledger
from ..protocol.generations import next_generation, same_again
from ..protocol.payout_status import has_failed, hindrance_to_retry
from ..protocol.records import LedgerRow, NewRow
from ..protocol.row_state import RowState
from ..protocol.totals import EXACT, as_text, brief

_REASONS: Final = 100


@attrs.frozen
class LeftRow:
    """A row that is not paid anew."""

    number: int
    reason: str
    """Why, without account data."""


@attrs.frozen
class RetryReport:
    """Which rows will be paid anew by the next `run`."""

    batch_id: str
    rows: tuple[int, ...]
    """Their numbers, in rising order."""
    totals: Mapping[str, Decimal] = attrs.field(repr=brief)
    """{currency: the sum of their amounts, major units}."""
    left: tuple[LeftRow, ...]
    """Rows that were asked for, or taken to have failed, and are left as they are."""
    dry_run: bool = False
    """Whether this is only what would have been done."""
    reasons: Mapping[int, str] = attrs.field(factory=dict)
    """{number: why it is paid anew} of the first hundred `rows` that were met: key, amount, failure code."""


async def require(ledger: Ledger, wanted: Collection[int] | None, state: RowState, reason: str) -> None:
    """See that all rows that were asked for are in that state. Raises BulkError."""
    found = await ledger.numbered(wanted or ())
    for number in sorted(wanted or ()):
        row = found.get(number)
        if row is None:
            raise BulkError(f"row {number} is not in the batch; nothing was changed")
        if row.state is not state:
            raise BulkError(f"row {number} is {row.state}, and {reason}; nothing was changed")


def add_to(totals: dict[str, Decimal], row: LedgerRow) -> None:
    """Count a row's amount in."""
    totals[row.currency] = EXACT.add(totals.get(row.currency, Decimal(0)), row.amount)


def note_reason(reasons: dict[int, str], row: LedgerRow) -> None:
    """Keep why a row is paid anew, of the first ones, without account data."""
    if len(reasons) < _REASONS:
        key = f"{row.row_key}, " if row.row_key else ""
        why = row.failure_code or "no failure code"
        reasons[row.number] = f"{key}{row.currency} {as_text(row.amount)}: {why}"


class Retrier:
    """Reads each failed payout again at the service, page by page, and begins its row anew at once."""

    def __init__(
        self, ledger: Ledger, service: Service, rows: Collection[int] | None, *, dry_run: bool = False
    ) -> None:
        self._ledger, self._service, self._dry_run = ledger, service, dry_run
        self._wanted = None if rows is None else frozenset(rows)
        self._mirror = Mirror(ledger)
        self._judged = Bits()
        self._retried: list[int] = []
        self._left: list[LeftRow] = []
        self._totals: dict[str, Decimal] = {}
        self._reasons: dict[int, str] = {}

    async def retry(self, on_commit: Callable[[], object]) -> RetryReport:
        """Walk the list once. Raises BulkError for rows that can never be asked for, and PaymentsError."""
        await require(
            self._ledger, self._wanted, RowState.CREATED, "only a created row's payout can have failed"
        )
        walk = PayoutList(self._service)
        while not walk.is_over:
            await self._take(await walk.page())
            on_commit()
        await self._note_unseen(walk.unread)
        return RetryReport(
            self._ledger.header.binding.batch_id,
            tuple(sorted(self._retried)),
            self._totals,
            tuple(sorted(self._left, key=lambda left: left.number)),
            self._dry_run,
            self._reasons,
        )

    async def _take(self, page: Sequence[Payout]) -> None:
        anew = []
        for shown in await self._mirror.take(page):
            if self._is_candidate(shown) and self._judged.add(shown.row.number):
                new = self._judged_row(shown)
                if new is not None:
                    anew.append((shown.row, new))
        if anew and not self._dry_run:
            await self._ledger.next_generation(new for _, new in anew)
        for row, _ in anew:
            self._retried.append(row.number)
            add_to(self._totals, row)
            note_reason(self._reasons, row)

    def _is_candidate(self, shown: ListedRow) -> bool:
        if self._wanted is not None:
            return shown.row.number in self._wanted
        return has_failed(shown.before) or has_failed(shown.row)

    def _judged_row(self, shown: ListedRow) -> NewRow | None:
        """What replaces a row, given what the service says of its payout now; None when it is left."""
        reason = hindrance_to_retry(shown.row, shown.payout)
        if reason is None:
            try:
                return next_generation(shown.row, self._ledger.header.binding)
            except ValueError as error:
                reason = str(error)
        self._left.append(LeftRow(shown.row.number, reason))
        return None

    async def _note_unseen(self, unread: int) -> None:
        """Leave the rows that the list does not show: their payouts could not be read again."""
        reason = _UNSEEN + (f", which may be one of the {unread} that could not be read" if unread else "")
        if self._wanted is not None:
            missing = [number for number in self._wanted if number not in self._judged]
            self._left.extend(LeftRow(number, reason) for number in missing)
            return
        async for row in self._ledger.failed():
            if row.number not in self._judged:
                self._left.append(LeftRow(row.number, reason))


_UNSEEN = "the list does not show its payout"


_GROUP: Final = 500


async def begin_anew(
    ledger: Ledger, rows: Collection[int] | None, on_commit: Callable[[], object], *, dry_run: bool
) -> RetryReport:
    """Make rejected rows new again: same reference, same body, a key that they never had.

    Raises BulkError, before anything is changed, for rows that were not rejected.
    """
    reasons = dict[int, str]()
    wanted = None if rows is None else frozenset(rows)
    await require(ledger, wanted, RowState.REJECTED, "only a rejected row can be sent as it is once more")
    numbers, totals, group = list[int](), dict[str, Decimal](), list[LedgerRow]()
    async for row in ledger.rows(RowState.REJECTED):
        if wanted is not None and row.number not in wanted:
            continue
        numbers.append(row.number)
        add_to(totals, row)
        note_reason(reasons, row)
        group.append(row)
        if len(group) == _GROUP:
            await _correct(ledger, group, on_commit, dry_run=dry_run)
            group = []
    await _correct(ledger, group, on_commit, dry_run=dry_run)
    return RetryReport(ledger.header.binding.batch_id, tuple(numbers), totals, (), dry_run, reasons)


async def _correct(
    ledger: Ledger, rows: list[LedgerRow], on_commit: Callable[[], object], *, dry_run: bool
) -> None:
    if rows and not dry_run:
        binding = ledger.header.binding
        await ledger.correct(same_again(row, binding) for row in rows)
        on_commit()
