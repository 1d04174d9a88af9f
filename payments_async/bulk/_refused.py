"""Rows that the service refused, made ready to be sent again as they are."""

from __future__ import annotations

from collections.abc import Callable, Collection
from decimal import Decimal
from typing import Final

from .ledger.ledger import Ledger
from .protocol.generations import same_again
from .protocol.records import LedgerRow
from .protocol.row_state import RowState
from .reconcile.retry_failed import RetryReport, add_to, note_reason, require

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
