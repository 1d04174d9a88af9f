"""Many payouts: each row of a file is paid at most once, none is lost, and every one in doubt is shown.

`PayoutBatch` (`batch`), and for many machines `SharedBatch`, are the public classes; `docs/bulk.md` is the
guide, and `docs/architecture.md` shows the trip of one row through the rooms. The protocol (`protocol/`) is
pure, and everything that acts asks it what to do.

Safety rests on one fact of the interface: a payout's `reference` is unique within the project, and a
duplicate returns 409 (`docs/interface.md`, Endpoints, POST /payouts). A row's reference never changes, so
sending the row again, from any ledger, with any key and clock, cannot pay it twice. The ledger, the
idempotency key and the waiting times make it fast and its results correct.

What the service says last of a payout counts, also after a final status: a bank may return money days later.
Such a turn is reported, and so is a payout whose status and timestamps contradict each other.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._activity import Activity as Activity
    from ._engine.recorder import OutcomesUnrecorded as OutcomesUnrecorded
    from ._export.archive import ArchiveReport as ArchiveReport
    from ._export.causes import Cause as Cause
    from ._export.export import ExportReport as ExportReport
    from ._export.row_view import RowView as RowView
    from ._ledger.archive.reading import check_archive as check_archive
    from ._ledger.opening import is_database as is_database
    from ._ledger.operators import ClosedBatch as ClosedBatch
    from ._ledger.operators import DatabaseReport as DatabaseReport
    from ._ledger.operators import ForgottenBatch as ForgottenBatch
    from ._ledger.operators import ListedWorker as ListedWorker
    from ._listing import ListedBatch as ListedBatch
    from ._options import LoadOptions as LoadOptions
    from ._options import ReadingOptions as ReadingOptions
    from ._protocol.attempts import RowAttempt as RowAttempt
    from ._protocol.attempts import RowAttempts as RowAttempts
    from ._protocol.machines import BatchState as BatchState
    from ._protocol.machines import OperatorCommand as OperatorCommand
    from ._protocol.machines import Standbys as Standbys
    from ._protocol.outcomes import Outcome as Outcome
    from ._protocol.records import Binding as Binding
    from ._protocol.records import CheckReport as CheckReport
    from ._protocol.records import Header as Header
    from ._protocol.records import InputDifference as InputDifference
    from ._protocol.records import StatusChange as StatusChange
    from ._protocol.row_state import RowState as RowState
    from ._protocol.run_figures import AnswerTimes as AnswerTimes
    from ._protocol.run_figures import RunSeries as RunSeries
    from ._protocol.run_figures import RunTime as RunTime
    from ._protocol.run_figures import SeriesBucket as SeriesBucket
    from ._protocol.run_figures import SpeedFigures as SpeedFigures
    from ._reconcile.audit import Audit as Audit
    from ._reconcile.certificate import Certificate as Certificate
    from ._reconcile.recover import RecoveryReport as RecoveryReport
    from ._reconcile.retry_failed import LeftRow as LeftRow
    from ._reconcile.retry_failed import RetryReport as RetryReport
    from ._report import BatchFigures as BatchFigures
    from ._report import BatchReport as BatchReport
    from ._report import ImportReport as ImportReport
    from ._report import Snapshot as Snapshot
    from .batch import AnyBatch as AnyBatch
    from .batch import PayoutBatch as PayoutBatch
    from .database import BatchDatabase as BatchDatabase
    from .errors import BatchIdRequired as BatchIdRequired
    from .errors import BulkError as BulkError
    from .errors import SourceErrors as SourceErrors
    from .errors import SourceUnreadable as SourceUnreadable
    from .ledger_errors import InputPaidElsewhere as InputPaidElsewhere
    from .ledger_errors import LedgerError as LedgerError
    from .ledger_errors import LedgerForgotten as LedgerForgotten
    from .ledger_errors import LedgerOfAnotherInput as LedgerOfAnotherInput
    from .shared_batch import SharedBatch as SharedBatch

_HOMES = {
    "_activity": ("Activity",),
    "_options": ("LoadOptions", "ReadingOptions"),
    "_reconcile.audit": ("Audit",),
    "_reconcile.certificate": ("Certificate",),
    "_export.export": ("ExportReport",),
    "_export.archive": ("ArchiveReport",),
    "_export.causes": ("Cause",),
    "_export.row_view": ("RowView",),
    "_protocol.outcomes": ("Outcome",),
    "_report": ("BatchFigures", "BatchReport", "ImportReport", "Snapshot"),
    "_engine.recorder": ("OutcomesUnrecorded",),
    "_protocol.records": ("Binding", "CheckReport", "Header", "InputDifference", "StatusChange"),
    "_protocol.machines": ("BatchState", "OperatorCommand", "Standbys"),
    "_reconcile.recover": ("RecoveryReport",),
    "_reconcile.retry_failed": ("LeftRow", "RetryReport"),
    "_protocol.row_state": ("RowState",),
    "_protocol.attempts": ("RowAttempt", "RowAttempts"),
    "_protocol.run_figures": ("AnswerTimes", "RunSeries", "RunTime", "SeriesBucket", "SpeedFigures"),
    "batch": ("AnyBatch", "PayoutBatch"),
    "shared_batch": ("SharedBatch",),
    "database": ("BatchDatabase",),
    "_listing": ("ListedBatch",),
    "_ledger.archive.reading": ("check_archive",),
    "_ledger.opening": ("is_database",),
    "_ledger.operators": ("ClosedBatch", "DatabaseReport", "ForgottenBatch", "ListedWorker"),
    "errors": ("BatchIdRequired", "BulkError", "SourceErrors", "SourceUnreadable"),
    "ledger_errors": ("InputPaidElsewhere", "LedgerError", "LedgerForgotten", "LedgerOfAnotherInput"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [*_HOME]  # pyright: ignore[reportUnsupportedDunderAll] # from a table


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
