# From payments_async/bulk/__init__.py; change that, then run: python -m tools.mirror
"""Many payouts, blocking: each row of a file paid at most once, none lost, every doubtful one shown.

    with Payments() as client, PayoutBatch.open("june.ledger", client) as batch:
        batch.load("june.csv")
        report = batch.run()

The same names as `payments_async.bulk`, whose batches do the work on the client's loop; reports, errors and
sources are the same objects. Ctrl-C stops a run in order, a second one cuts it off; either way it
can be run again. `on_progress` is called on the loop's thread. Payouts from code of yours, such as a
generator, are read in your thread. Public names are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import payments_async.bulk

if TYPE_CHECKING:
    from payments_async.bulk import Activity as Activity
    from payments_async.bulk import Audit as Audit
    from payments_async.bulk import Batch as Batch
    from payments_async.bulk import BatchFigures as BatchFigures
    from payments_async.bulk import BatchIdRequired as BatchIdRequired
    from payments_async.bulk import BatchReport as BatchReport
    from payments_async.bulk import Binding as Binding
    from payments_async.bulk import BulkError as BulkError
    from payments_async.bulk import Cause as Cause
    from payments_async.bulk import Certificate as Certificate
    from payments_async.bulk import ExportReport as ExportReport
    from payments_async.bulk import ImportReport as ImportReport
    from payments_async.bulk import InputDifference as InputDifference
    from payments_async.bulk import InputPaidElsewhere as InputPaidElsewhere
    from payments_async.bulk import LedgerError as LedgerError
    from payments_async.bulk import LedgerMismatch as LedgerMismatch
    from payments_async.bulk import LedgerMissing as LedgerMissing
    from payments_async.bulk import LedgerOfAnotherInput as LedgerOfAnotherInput
    from payments_async.bulk import LedgerUnavailable as LedgerUnavailable
    from payments_async.bulk import LeftRow as LeftRow
    from payments_async.bulk import OutboxConflict as OutboxConflict
    from payments_async.bulk import OutboxRow as OutboxRow
    from payments_async.bulk import Outcome as Outcome
    from payments_async.bulk import RetryReport as RetryReport
    from payments_async.bulk import RowState as RowState
    from payments_async.bulk import RowView as RowView
    from payments_async.bulk import SourceErrors as SourceErrors
    from payments_async.bulk import SourceUnreadable as SourceUnreadable
    from payments_async.bulk import StatusChange as StatusChange
    from payments_async.bulk import metadata as metadata

    from .batch import PayoutBatch as PayoutBatch
    from .outbox import Outbox as Outbox

_OURS = {
    "PayoutBatch": ".batch",
    "Outbox": ".outbox",
}

__all__ = payments_async.bulk.__all__  # pyright: ignore[reportUnsupportedDunderAll] # from a table


def __getattr__(name: str) -> Any:
    if name in _OURS:
        getattr(payments_async.bulk, name)  # says what is not installed
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_OURS.get(name, "payments_async.bulk"), __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
