"""Payouts of a batch that stand for no row of it, and may move money all the same. Pure (States)."""

from __future__ import annotations

from ...models import Payout
from ...models.statuses import PayoutEnd
from .identifiers import Proof
from .matching import expected
from .outcomes import ExtraPayout
from .payout_status import end_of
from .records import LedgerRow
from .row_state import UNFINISHED, RowState


def extra_of(row: LedgerRow | None, payout: Payout) -> ExtraPayout | None:
    """What a payout is beside its row, or without a row; None if it has failed, or is a stranger's.

    The present payout of a row under way or in doubt may still settle the row.
    """
    if end_of(payout) is PayoutEnd.FAILED:
        return None
    if row is None:
        return ExtraPayout.IN_EXCESS
    if row.state in UNFINISHED and payout.reference == row.reference:
        return None
    if row.state is not RowState.CONFLICT:
        return ExtraPayout.IN_EXCESS
    return ExtraPayout.MOVED_IN_CONFLICT if _is_of_batch(row, payout) else None


def _is_of_batch(row: LedgerRow, payout: Payout) -> bool:
    asked = expected(row).proof
    shown = Proof.of(payout.metadata)
    return asked is None or (shown is not None and shown.batch == asked.batch)
