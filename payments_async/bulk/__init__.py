"""Many payouts: each row of a file is paid at most once, none is lost, and every one in doubt is shown.

`PayoutBatch` (`batch`) and `Outbox` (`outbox`) are the public classes; `docs/bulk.md` is the guide, and
`docs/architecture.md` shows the trip of one row through the rooms. The protocol (`_protocol`) is pure, and
everything that acts asks it what to do.

The reference is the only guard: a payout's `reference` is unique within the project, and a duplicate returns
409 (`docs/interface.md`, Endpoints, POST /payouts). A row's reference is made of the batch's name and the
row's key, so that sending it again, from any ledger, with any clock, cannot pay it twice. The ledger is
evidence, and never a lock on money. What the service's list says counts last.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._export.causes import Cause as Cause
    from ._export.export import ExportReport as ExportReport
    from ._export.row_view import RowView as RowView
    from ._ledger.tables import metadata as metadata
    from ._outbox import OutboxRow as OutboxRow
    from ._protocol.audit import Audit as Audit
    from ._protocol.outcomes import Outcome as Outcome
    from ._protocol.outcomes import RowState as RowState
    from ._protocol.records import Batch as Batch
    from ._protocol.records import Binding as Binding
    from ._protocol.records import InputDifference as InputDifference
    from ._protocol.records import StatusChange as StatusChange
    from ._run.retry import LeftRow as LeftRow
    from ._run.retry import RetryReport as RetryReport
    from .batch import PayoutBatch as PayoutBatch
    from .errors import BatchIdRequired as BatchIdRequired
    from .errors import BulkError as BulkError
    from .errors import InputPaidElsewhere as InputPaidElsewhere
    from .errors import LedgerError as LedgerError
    from .errors import LedgerMismatch as LedgerMismatch
    from .errors import LedgerMissing as LedgerMissing
    from .errors import LedgerOfAnotherInput as LedgerOfAnotherInput
    from .errors import LedgerUnavailable as LedgerUnavailable
    from .errors import OutboxConflict as OutboxConflict
    from .errors import SourceErrors as SourceErrors
    from .errors import SourceUnreadable as SourceUnreadable
    from .outbox import Outbox as Outbox
    from .report import Activity as Activity
    from .report import BatchFigures as BatchFigures
    from .report import BatchReport as BatchReport
    from .report import Certificate as Certificate
    from .report import ImportReport as ImportReport

_HOMES = {
    "_export.causes": ("Cause",),
    "_export.export": ("ExportReport",),
    "_export.row_view": ("RowView",),
    "_ledger.tables": ("metadata",),
    "_outbox": ("OutboxRow",),
    "_protocol.audit": ("Audit",),
    "_protocol.outcomes": ("Outcome", "RowState"),
    "_protocol.records": ("Batch", "Binding", "InputDifference", "StatusChange"),
    "_run.retry": ("LeftRow", "RetryReport"),
    "batch": ("PayoutBatch",),
    "errors": (
        "BatchIdRequired",
        "BulkError",
        "InputPaidElsewhere",
        "LedgerError",
        "LedgerMismatch",
        "LedgerMissing",
        "LedgerOfAnotherInput",
        "LedgerUnavailable",
        "OutboxConflict",
        "SourceErrors",
        "SourceUnreadable",
    ),
    "outbox": ("Outbox",),
    "report": ("Activity", "BatchFigures", "BatchReport", "Certificate", "ImportReport"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [*_HOME]  # pyright: ignore[reportUnsupportedDunderAll] # from a table


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    except ModuleNotFoundError as missing:
        from .._extras import EXTRAS, needs

        if str(missing.name).partition(".")[0] not in EXTRAS["bulk"]:
            raise
        raise ImportError(needs("a ledger needs", "bulk")) from missing
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
