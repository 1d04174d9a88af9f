"""Makes rows new again: those whose payouts have finally failed, and those that were rejected."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Final

import attrs

from ...models.common import amount_text
from .._ledger import loading, views
from .._ledger.ledger import Ledger
from .._ledger.readings import ReadingLost
from .._protocol.identifiers import body_at, shown_key
from .._protocol.listed_payouts import UNSEEN, UNSEEN_EARLIER, next_generation
from .._protocol.matching import RowPayout
from .._protocol.outcomes import NOT_ARRIVED, Outcome, RowState, add_amount, brief
from .._protocol.records import HIDDEN, LedgerRow
from ..errors import BulkError
from .listing import read_list
from .service import Service

_REASONS: Final = 100
_GROUP: Final = 500
_WAIT: Final = 1.0
_RETURNED: Final = "its payout had arrived and was returned: name the row to pay its {} once more"
_TURNED: Final = "its payout had arrived, and this reading alone says that it has failed: read the list again"


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
    left: dict[int, str] = attrs.field(factory=dict)

    def add(self, row: LedgerRow, found: int | str) -> None:
        """Count a row that has its next generation, or say why it is left; no account data."""
        if isinstance(found, str):
            self.left[row.number] = found
            return
        self.left.pop(row.number, None)  # by a reading before
        self.rows.append(row.number)
        add_amount(self.totals, row.currency, row.amount)
        if len(self.reasons) < _REASONS:
            name = shown_key(row.row_key, row.number)
            key = "" if name in ("", HIDDEN) else f"{name}, "
            why = row.failure_code or "no failure code"
            self.reasons[row.number] = f"{key}{amount_text(row.currency, row.amount)}: {why}"

    def report(self, ledger: Ledger, *, dry_run: bool) -> RetryReport:
        left = tuple(LeftRow(number, self.left[number]) for number in sorted(self.left))
        rows = tuple(sorted(self.rows))
        return RetryReport(ledger.batch_id, rows, self.totals, left, dry_run, self.reasons)


async def _require(ledger: Ledger, wanted: Collection[int], state: RowState, reason: str) -> None:
    """Check that all requested rows are in that state. Raises BulkError."""
    found = await views.numbered(ledger, wanted)
    for number in sorted(wanted):
        row = found.get(number)
        if row is None:
            raise BulkError(f"row {number} is not in the batch; nothing was changed")
        if row.state is not state:
            outcome = row.outcome.replace("_", " ")
            raise BulkError(f"row {number}: {outcome}, and {reason}; nothing was changed")


async def retry_failed(
    ledger: Ledger, service: Service, rows: Collection[int] | None, *, dry_run: bool
) -> RetryReport:
    """Read the list, then make rows new whose payouts it shows as failed, each of every generation.

    One whose payout had arrived and was returned is made new only by its number. Raises BulkError for rows
    that cannot be retried, PaymentsError when the list cannot be read to its end, and LedgerError.
    """
    wanted = None if rows is None else frozenset(rows)
    if wanted is not None:
        await _require(ledger, wanted, RowState.CREATED, "only a created row's payout can have failed")
    retried = _Retried()
    while True:
        if dry_run:  # nothing was changed: each reading judges all
            retried = _Retried()
        believed = {row.id: row.outcome async for row in views.all_rows(ledger, NOT_ARRIVED)}
        try:
            store = await read_list(ledger, service, keeps=True)
            if wanted is None:  # those that an earlier reading made new are in neither
                failed = {row.id async for row in views.all_rows(ledger, NOT_ARRIVED)}
                ids = sorted(failed | believed.keys())
            else:
                named = await views.numbered(ledger, wanted.difference(retried.rows))
                ids = sorted(row.id for row in named.values())
            decide = partial(_generation, ledger, store.auditor.unread, believed, wanted is not None)
            for start in range(0, len(ids), _GROUP):
                group = ids[start : start + _GROUP]
                for row, found in await store.make_new(group, decide, dry_run=dry_run):
                    retried.add(row, found)
            await store.give_up()
            return retried.report(ledger, dry_run=dry_run)
        except ReadingLost:
            await service.runtime.sleep(_WAIT)


def _generation(
    ledger: Ledger,
    unread: int,
    believed: Mapping[int, Outcome],
    is_named: bool,
    row: LedgerRow,
    shown: Sequence[RowPayout],
) -> int | str:
    """The row's next generation, or why it is left. `unread`: payouts of the list that could not be read."""
    found: int | str = next_generation(row, shown) if shown else UNSEEN
    if isinstance(found, str):
        may_be = unread and found in (UNSEEN, UNSEEN_EARLIER)
        return f"{found}, which may be one of the {unread} that could not be read" if may_be else found
    if row.outcome is Outcome.RETURNED and not is_named:
        return _RETURNED.format(amount_text(row.currency, row.amount))
    if row.outcome is Outcome.RETURNED and believed.get(row.id) is not Outcome.RETURNED:
        return _TURNED
    try:
        body_at(row, ledger.known.binding, found)
    except ValueError as error:
        return str(error)
    return found


async def retry_rejected(
    ledger: Ledger, rows: Collection[int] | None, *, environment: str, dry_run: bool
) -> RetryReport:
    """Make rejected rows new again: same reference, same body, a new idempotency key.

    `environment`: of an outbox, whose rows count; empty for a file's batch.
    Raises BulkError, before anything is changed, for rows that were not rejected.
    """
    wanted = None if rows is None else frozenset(rows)
    if wanted is not None:
        await _require(
            ledger, wanted, RowState.REJECTED, "only a rejected row can be sent as it is once more"
        )
    retried, ids = _Retried(), list[int]()
    async for row in views.all_rows(ledger, [Outcome.REJECTED]):
        if (wanted is None or row.number in wanted) and environment in ("", row.environment):
            retried.add(row, row.generation)
            ids.append(row.id)
    for start in range(0, len(ids) if not dry_run else 0, _GROUP):
        await loading.same_again(ledger, ids[start : start + _GROUP])
    return retried.report(ledger, dry_run=dry_run)
