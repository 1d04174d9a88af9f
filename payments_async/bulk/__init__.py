"""Many payouts: each row of a file paid at most once, none lost, every doubtful one shown.

`PayoutBatch` (`batch`) is the face; `docs/bulk.md` is the guide. The protocol is pure, and everything that
moves asks it what to do:

    _safeguards    one switch for each rule; production never turns one off
    _identifiers   batch, reference, idempotency key, proof of ownership
    _states        what is known of a row, which transitions exist, how two accounts of a row merge
    _attempts      what one attempt proves, and what to do after it
    _ages          how old something is when clocks cannot be trusted
    _witness       whether a payout found under a row's reference is the row's
    _rules         what to do with a row at start-up, before sending, after a walk of the list
    _learning      what a listed payout teaches of its row
    _generations   a row asked for anew, after its payout failed or after it was refused
    _closing       counts, completeness, exit codes, stop rules

Around it:

    sources _reading _survey _loading _edits _siblings _preview      an input into the ledger
    ledger and what it stands on                             what is known, on the disk before it counts
    _engine _claims _window _sending _backoff _outcomes _resolver    rows to the service, what became of them
    _activity                                                what is being done, told every five seconds
    _walk _mirror _later _follow _reconciling _retrying _refused    the service's list into the ledger
    _audit _certificate _report _export _fates                    what may be said at the end

Safety rests on one fact of the interface: a payout's `reference` is unique within the project, and a
duplicate returns 409 (`docs/interface.md`, Endpoints, POST /payouts). A row's reference never changes, so
whoever sends the row again, from whatever ledger, with whatever key and clock, cannot pay it twice. The
ledger, the idempotency key and the waiting times make it fast and its verdicts true.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._activity import Activity as Activity
    from ._options import LoadOptions as LoadOptions
    from ._options import ReadingOptions as ReadingOptions
    from ._report import BatchReport as BatchReport
    from ._report import ImportReport as ImportReport
    from ._report import Progress as Progress
    from .batch import PayoutBatch as PayoutBatch
    from .engine.recorder import OutcomesUnrecorded as OutcomesUnrecorded
    from .errors import BatchIdRequired as BatchIdRequired
    from .errors import BulkError as BulkError
    from .errors import SourceErrors as SourceErrors
    from .errors import SourceUnreadable as SourceUnreadable
    from .export.export import ExportReport as ExportReport
    from .ledger_errors import InputPaidElsewhere as InputPaidElsewhere
    from .ledger_errors import LedgerError as LedgerError
    from .ledger_errors import LedgerOfAnotherInput as LedgerOfAnotherInput
    from .loading.differences import InputDifference as InputDifference
    from .protocol.payout_status import RowFate as RowFate
    from .protocol.records import CheckReport as CheckReport
    from .protocol.row_state import RowState as RowState
    from .reconcile.certificate import Audit as Audit
    from .reconcile.certificate import Certificate as Certificate
    from .reconcile.retry_failed import LeftRow as LeftRow
    from .reconcile.retry_failed import RetryReport as RetryReport

_HOMES = {
    "_activity": ("Activity",),
    "_options": (
        "LoadOptions",
        "ReadingOptions",
    ),
    "reconcile.certificate": (
        "Audit",
        "Certificate",
    ),
    "loading.differences": ("InputDifference",),
    "export.export": ("ExportReport",),
    "protocol.payout_status": ("RowFate",),
    "_report": (
        "BatchReport",
        "ImportReport",
        "Progress",
    ),
    "engine.recorder": ("OutcomesUnrecorded",),
    "protocol.records": ("CheckReport",),
    "reconcile.retry_failed": (
        "LeftRow",
        "RetryReport",
    ),
    "protocol.row_state": ("RowState",),
    "batch": ("PayoutBatch",),
    "errors": (
        "BatchIdRequired",
        "BulkError",
        "SourceErrors",
        "SourceUnreadable",
    ),
    "ledger_errors": (
        "InputPaidElsewhere",
        "LedgerError",
        "LedgerOfAnotherInput",
    ),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [*_HOME]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
