# From payments_async/bulk/__init__.py; change that, then run: python payments_sync/_mirror.py
"""Many payouts, blocking: each row of a file paid at most once, none lost, every doubtful one shown.

    with Payments() as client, PayoutBatch.open("june.ledger", client) as batch:
        batch.load("june.csv")
        report = batch.run()

The same names as `payments_async.bulk`, whose `PayoutBatch` does the work on the client's loop; reports,
errors and sources are the same objects. Ctrl-C stops a run in order, a second one cuts it off; either way it
can be run again. `on_progress` is called on the loop's thread. Payouts that are no list are read in the
caller's thread. Public names are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from payments_async.bulk import Activity as Activity
    from payments_async.bulk import Audit as Audit
    from payments_async.bulk import BatchIdRequired as BatchIdRequired
    from payments_async.bulk import BatchReport as BatchReport
    from payments_async.bulk import BulkError as BulkError
    from payments_async.bulk import Certificate as Certificate
    from payments_async.bulk import CheckReport as CheckReport
    from payments_async.bulk import ExportReport as ExportReport
    from payments_async.bulk import ImportReport as ImportReport
    from payments_async.bulk import InputDifference as InputDifference
    from payments_async.bulk import InputPaidElsewhere as InputPaidElsewhere
    from payments_async.bulk import LedgerError as LedgerError
    from payments_async.bulk import LedgerOfAnotherInput as LedgerOfAnotherInput
    from payments_async.bulk import LeftRow as LeftRow
    from payments_async.bulk import LoadOptions as LoadOptions
    from payments_async.bulk import OutcomesUnrecorded as OutcomesUnrecorded
    from payments_async.bulk import Progress as Progress
    from payments_async.bulk import ReadingOptions as ReadingOptions
    from payments_async.bulk import RetryReport as RetryReport
    from payments_async.bulk import RowFate as RowFate
    from payments_async.bulk import RowState as RowState
    from payments_async.bulk import SourceErrors as SourceErrors
    from payments_async.bulk import SourceUnreadable as SourceUnreadable

    from .batch import PayoutBatch as PayoutBatch

_HOME = {
    "PayoutBatch": ".batch",
    "Activity": "payments_async.bulk",
    "Audit": "payments_async.bulk",
    "BatchIdRequired": "payments_async.bulk",
    "BatchReport": "payments_async.bulk",
    "BulkError": "payments_async.bulk",
    "Certificate": "payments_async.bulk",
    "CheckReport": "payments_async.bulk",
    "ExportReport": "payments_async.bulk",
    "ImportReport": "payments_async.bulk",
    "InputDifference": "payments_async.bulk",
    "InputPaidElsewhere": "payments_async.bulk",
    "LedgerError": "payments_async.bulk",
    "LedgerOfAnotherInput": "payments_async.bulk",
    "LeftRow": "payments_async.bulk",
    "LoadOptions": "payments_async.bulk",
    "OutcomesUnrecorded": "payments_async.bulk",
    "Progress": "payments_async.bulk",
    "ReadingOptions": "payments_async.bulk",
    "RetryReport": "payments_async.bulk",
    "RowFate": "payments_async.bulk",
    "RowState": "payments_async.bulk",
    "SourceErrors": "payments_async.bulk",
    "SourceUnreadable": "payments_async.bulk",
}

__all__ = [*_HOME]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
