"""Errors of a batch of payouts. Each says what to do about it.

PaymentsError
└─ BulkError                       effect "none": raising it moved no money
   ├─ SourceUnreadable             the input cannot be read, or not any further; .source .line .reason
   ├─ SourceErrors                 rows of the input are at fault; .faults .total .rows .source
   ├─ BatchIdRequired              a live key, and neither the batch nor all of its rows have a name; .source
   └─ LedgerError                  the ledger cannot be used as asked: a tree of its own (`ledger_errors`)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

import attrs

from ..errors import Effect, PaymentsError
from ..models._masking import clean

_TOLD = 20
_UNNAMED: Final = (
    "has neither a batch id nor a reference in each row, which a live key needs; nothing was sent. The rows' "
    "references would be made of the whole input: once its ledger is lost, the input with one row edited is "
    "another batch, and every row would be paid again"
)
_BARE: Final[dict[str, Any]] = {"original": (), "row_key": None, "reference": None}


class BulkError(PaymentsError):
    """An error of a batch, raised on purpose. Base class of all others."""

    effects: ClassVar[tuple[Effect, ...]] = ("none",)
    remedy = "do what the message says; what was sent before is in the ledger"


class SourceUnreadable(BulkError):
    """The input cannot be read, or not any further: what follows cannot be told apart from rows."""

    remedy = "correct the input as `.reason` says"

    def __init__(self, source: str, reason: str, *, line: int | None = None) -> None:
        where = source if line is None else f"{source}, line {line}"
        super().__init__(f"{where}: {reason}")
        self.source = source
        """The file's path, or the name of the rows."""
        self.reason = reason
        """What is wrong and what to do, without any of the input's values."""
        self.line = line
        """The line of the file, from 1, where reading ended; None when it never began."""


@attrs.frozen
class RowFault:
    """One rule that one row breaks. A row with several faults gives several, one after the other."""

    line: int | None
    """The line of the file where the row begins, or the sheet's row, from 1; None where there are none."""
    number: int | None
    """The row's number among the rows of data, from 1; None for the header."""
    column: str | None
    """The column at fault; None for a fault of the whole row."""
    reason: str
    """The rule, and the kind of the value, never the value: it may be an account."""
    original: Sequence[str] = attrs.field(default=(), eq=False, repr=False)
    """The row as it was read, under the source's `columns`."""
    row_key: str | None = attrs.field(default=None, eq=False, repr=False)
    """The row's name in the batch, as it was read; None when it cannot be read."""
    reference: str | None = attrs.field(default=None, eq=False, repr=False)
    """The operator's own reference, as it was read."""
    hides_key: bool = attrs.field(default=False, eq=False, repr=False)
    """True if the `row_key` is unreadable, and may be that of another row."""
    cell: str | None = attrs.field(default=None, kw_only=True)
    """Where it is in a workbook, such as `Sheet "June", cell C7`; None in other inputs."""

    def __str__(self) -> str:
        """`line 7, amount: must be at least 1, in major units`."""
        row = "header" if self.number is None else f"row {self.number}"
        where = self.cell or (row if self.line is None else f"line {self.line}")
        return clean(f"{where}, {self.column}: {self.reason}" if self.column else f"{where}: {self.reason}")


class SourceErrors(BulkError):
    """Rows of the input break the rules. None of them was sent; correct them, or skip them on purpose."""

    remedy = "correct the rows in `.faults`, or skip them on purpose where `.can_skip` is true"

    def __init__(
        self, source: str, faults: Sequence[RowFault], *, total: int, rows: int, can_skip: bool = True
    ) -> None:
        self.source = source
        """The file's path, or the name of the rows."""
        self.faults: tuple[RowFault, ...] = tuple(attrs.evolve(fault, **_BARE) for fault in faults)
        """The first faults, without the rows themselves, which may hold account data."""
        self.total = total
        """The number of all faults."""
        self.rows = rows
        """How many rows have faults; 0 when the header is at fault."""
        self.can_skip: bool = can_skip and rows > 0
        """True if `skip_invalid` pays the other rows. False when the header is at fault, or when two rows
        share a name or may share one: the `row_key` of a row that cannot be taken apart is unknown."""
        super().__init__(self._told())

    def _told(self) -> str:
        where = f" in {_counted(self.rows, 'row')}" if self.rows else ""
        lines = [f"{self.source}: {_counted(self.total, 'fault')}{where}, nothing was sent"]
        lines += [f"  {fault}" for fault in self.faults[:_TOLD]]
        rest = self.total - len(self.faults[:_TOLD])
        return "\n".join([*lines, f"  and {rest} more"] if rest else lines)


class BatchIdRequired(BulkError):
    """A live key was used, and neither the batch nor all of its rows have a name. Nothing was sent.

    References would be made of the whole input: with its ledger lost, the input with one row edited
    would be another batch, and every row would be paid again (Endpoints, POST /payouts: reference).
    """

    remedy = "give `load` a `batch_id`, or every row a reference of its own"

    def __init__(self, source: str) -> None:
        self.source = source
        """The file's path, or the name of the rows."""
        self.problem: str = f"{source}: {_UNNAMED}"
        """The missing name, and why it matters."""
        super().__init__(f"{self.problem}. Give load a batch_id, or every row a reference of its own")


def access_problem(error: PaymentsError) -> str | None:
    """Say why the service refuses all requests of a run, and what corrects that; None for another error."""
    from ._protocol.responses import refuses_access, why

    return why(error) if refuses_access(error) else None


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
