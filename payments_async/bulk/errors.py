"""Errors of a batch of payouts. Each says what to do about it.

PaymentsError
└─ BulkError                       effect "none": raising it moved no money
   ├─ SourceUnreadable             the input cannot be read, or not any further; .source .line .reason
   ├─ SourceErrors                 rows of the input are at fault; .faults .total .rows .source
   ├─ BatchIdRequired              a live key, and neither the batch nor all of its rows have a name; .source
   ├─ OutboxConflict               the reference stands already, for other content; .reference
   └─ LedgerError                  the ledger cannot be used as asked; .ledger .problem
      ├─ LedgerMissing                 there is none, or it has no such batch
      ├─ LedgerUnavailable             the database is away, busy or full: run it again
      ├─ LedgerMismatch                it is another account's, environment's or address's; .recorded .given
      ├─ LedgerOfAnotherInput          the input was edited since, or is another; .differences .total
      └─ InputPaidElsewhere            the same input is another batch, in this or another ledger; .batch_id
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

import attrs

from ..errors import Effect, PaymentsError
from ..models._masking import clean
from ._protocol.records import InputDifference

_TOLD = 20
_BRIEF: Final = 12
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


class OutboxConflict(BulkError):
    """The outbox has this reference already, for another payout. Nothing was added."""

    remedy = "give the other payout a reference of its own, such as that of its order"

    def __init__(self, reference: str, fields: Sequence[str]) -> None:
        super().__init__(
            f"the outbox has a payout with this reference already, which differs in {', '.join(fields)}; "
            "nothing was added"
        )
        self.reference = reference
        """The reference. It may be personal: no message shows it."""
        self.fields: tuple[str, ...] = tuple(fields)
        """The names of the fields that differ."""


class LedgerError(BulkError):
    """The ledger cannot be used as asked. Says which, what is wrong and what to do."""

    remedy: str = "do what the message says; what was sent before is in the ledger"

    def __init__(self, ledger: str, problem: str, *, remedy: str = "") -> None:
        self.remedy = remedy or type(self).remedy
        super().__init__(f"{ledger}: {problem}; {self.remedy}")
        self.ledger = ledger
        """The file, or the database without its password."""
        self.problem = problem
        """What is wrong, without account data."""


class LedgerMissing(LedgerError):
    """There is no ledger here, or it holds no such batch."""

    remedy = "`payments payouts batches` lists those there are, and the first `run` makes one"


class LedgerUnavailable(LedgerError):
    """The database cannot be reached, is busy or full, for a minute by now. Earlier records are kept."""

    remedy = "see to the database, or its disk, and run again: every row is as it was recorded last"

    def _may_pass(self) -> bool:
        return True


class LedgerMismatch(LedgerError):
    """The ledger belongs to another account: `.recorded` there, `.given` here. Nothing was sent."""

    remedy = "use what the batch was begun with; only rows that no batch has paid get a batch of their own"

    def __init__(self, ledger: str, subject: str, *, recorded: str, given: str, remedy: str = "") -> None:
        problem = f"its {subject} is {recorded}, and this run's is {given}"
        super().__init__(ledger, problem, remedy=remedy)
        self.subject = subject
        """What differs: `environment`, `base URL`, `key fingerprint`, `batch id`."""
        self.recorded = recorded
        self.given = given


class LedgerOfAnotherInput(LedgerError):
    """The input was edited since it was loaded: `.differences`, `.total`. Nothing was changed.

    The message shows the places and differing fields of rows, never a value.
    """

    remedy = (
        "give the input as it was, accept the edits (accept_edits=True), which may change rows whose every "
        "send is proven to have made nothing, or give what is new a batch of its own"
    )

    def __init__(
        self,
        ledger: str,
        *,
        recorded: str,
        given: str,
        differences: Sequence[InputDifference] = (),
        total: int = 0,
    ) -> None:
        rest = [f"and {total - len(differences)} more"] if total > len(differences) else []
        hashes = f"its input is {recorded[:_BRIEF]}…, and this run's is {given[:_BRIEF]}…"
        super().__init__(ledger, "; ".join([hashes, *map(str, differences), *rest]))
        self.differences: tuple[InputDifference, ...] = tuple(differences)
        """The first rows that differ; with `accept_edits`, the first whose edits cannot be accepted."""
        self.total = total
        """The number of all differing rows."""


class InputPaidElsewhere(LedgerError):
    """The same input is another batch: `.batch_id`, in this ledger or one beside it. Nothing was imported.

    Its rows have other references there, so the service would take them for other payouts.
    """

    remedy = (
        "go on with that batch by its batch id, or, to pay the same rows a second time on purpose, "
        "pay_again=True"
    )

    def __init__(self, ledger: str, *, batch_id: str, other: str | None = None) -> None:
        where = "it" if other is None else f"{other}, beside it,"
        super().__init__(
            ledger,
            f"{where} has the same input as batch {batch_id}; under another batch id the references differ, "
            "and rows could be paid again",
        )
        self.batch_id = batch_id
        """The other batch."""
        self.other = other
        """The name of the other ledger's file, in the same folder; None for a batch of the same ledger."""


def access_problem(error: PaymentsError) -> str | None:
    """Say why the service refuses all requests of a run, and what corrects that; None for another error."""
    from ._protocol.answers import refuses_access, why

    return why(error) if refuses_access(error) else None


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
