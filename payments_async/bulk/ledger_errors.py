"""Errors of a ledger, each with its remedy.

BulkError
└─ LedgerError                     .path .problem .remedy
   ├─ LedgerMissing                no ledger at this path
   │  └─ LedgerForgotten               a database's batch was forgotten; .batch_id .forgotten_at
   ├─ LedgerForeign                the file is something else
   ├─ LedgerExposed                others can read it
   ├─ LedgerOnNetwork              not on a local disk
   ├─ LedgerReadOnly               the file or its folder cannot be written
   ├─ LedgerLocked                 another run works on it; .pid .since
   ├─ LedgerNewer                  written by a newer version; .found .known
   ├─ LedgerOlder                  a database's tables are of an older version; .found .known
   ├─ DatabaseUnfit                the database cannot hold a ledger, or not safely
   ├─ RightsMissing                the database's user lacks rights; .grants
   ├─ LedgerMismatch               begun for something else; .recorded .given
   │  ├─ LedgerOfAnotherBatch          LedgerOfAnotherEnvironment
   │  ├─ LedgerOfAnotherAddress        LedgerOfAnotherKey
   │  └─ LedgerOfAnotherInput          .differences .total .only_form
   ├─ InputPaidElsewhere           the input is another batch, beside it or in its database; .batch_id .ledger
   ├─ LedgerDuplicates             two rows of the input with one key or reference; .duplicates
   ├─ LedgerRefused                a row's state does not allow the change; .number .reason
   │  └─ BatchExists                   it holds a batch, and was asked to import one
   ├─ LedgerClosed                 the batch was left, or its ledger discarded
   ├─ LedgerFull                   the disk is full, nothing was recorded
   ├─ LedgerGone                   the file was deleted or replaced while in use
   ├─ LedgerUnavailable            the database cannot be reached, or takes no changes now
   ├─ LeaseLost                    another worker has the rows, or nobody may send any now
   ├─ LedgerBroken                 the disk failed: open again and check
   └─ LedgerDamaged                not as it was written; .findings
      └─ ArchiveDamaged                an archive that is not as it was written, or was cut short
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar, Final

from .errors import BulkError

if TYPE_CHECKING:
    from ._protocol.records import Duplicate, InputDifference

_MOST = 5
_BRIEF = 12
_RESTORED: Final = "after any restore `payments payouts recover --by-hand`, as an old copy lacks commits"


class LedgerError(BulkError):
    """The ledger cannot be used as asked. Says which file, what is wrong and what to do."""

    remedy: str = "see what it says with `payments payouts status` and `check`, then run it again"
    database_remedy: ClassVar[str] = ""
    """The remedy for a ledger in a database, where that for a file would harm."""

    def __init__(self, path: str, problem: str, *, remedy: str = "") -> None:
        if self.database_remedy and path.startswith("postgresql://"):
            self.remedy = self.database_remedy
        if remedy:
            self.remedy = remedy
        super().__init__(f"{path}: {problem}; {self.remedy}")
        self.path = path
        """The ledger's file, or its database and batch."""
        self.problem = problem
        """What is wrong, without account data."""


class LedgerMissing(LedgerError):
    """There is no ledger at this path."""

    remedy = "give the path of an existing ledger, or start the run first: it makes its ledger"
    database_remedy = "`payments payouts batches` lists those there are, and the first `run` makes one"


class LedgerForgotten(LedgerMissing):
    """The batch was forgotten, and its rows are gone: `.batch_id`, `.forgotten_at`."""

    remedy = (
        "do not pay again what has arrived: `payments payouts status` shows its counts and sums, and an "
        "archive its rows. Rows that were not paid get a file and a batch of their own"
    )
    database_remedy = remedy

    def __init__(self, path: str, *, batch_id: str, forgotten_at: datetime, known: str) -> None:
        super().__init__(path, f"was forgotten on {forgotten_at:%Y-%m-%d %H:%M:%S} UTC; {known}")
        self.batch_id = batch_id
        """The batch's name."""
        self.forgotten_at = forgotten_at
        """When it was forgotten, in UTC."""


class LedgerForeign(LedgerError):
    """The file is not a ledger of this package. It was not touched."""

    remedy = "choose another path; this file was not touched"


class LedgerExposed(LedgerError):
    """The file can be read or written by others, and it holds account data."""

    remedy = "make it the owner's alone: chmod 600"


class LedgerOnNetwork(LedgerError):
    """The path lies on a network file system, where locks and synced writes cannot be relied on."""

    remedy = "put the ledger on a local disk"


class LedgerReadOnly(LedgerError):
    """The file, or the folder it lies in, cannot be written."""

    remedy = "make both writable for this user"


class LedgerLocked(LedgerError):
    """Another run works on the ledger: `.pid`, `.since`."""

    remedy = "wait for that run to end, or stop it; it can be resumed"

    def __init__(
        self, path: str, *, pid: int | None, since: datetime | None, read_only: bool = False
    ) -> None:
        holder = "another process" if pid is None else f"process {pid}"
        super().__init__(
            path, f"in use by {holder}" + (f" since {since:%Y-%m-%d %H:%M:%S} UTC" if since else "")
        )
        self.pid = pid
        """The id of the process that holds the lock; None when unknown."""
        self.since = since
        """The time since when, in UTC; None when unknown."""
        self.read_only = read_only
        """True if that process only reads the ledger, for longer than others wait."""


class LedgerNewer(LedgerError):
    """A newer version of this package wrote the ledger: `.found`, `.known`."""

    remedy = "use the version that wrote it, or a later one"

    def __init__(self, path: str, *, found: int, known: int) -> None:
        super().__init__(path, f"its form is number {found}, and this version knows up to {known}")
        self.found = found
        """The schema version of the ledger."""
        self.known = known
        """The highest schema version that this package can read."""


class LedgerOlder(LedgerError):
    """An older version of this package wrote the ledger, or a database's tables: `.found`, `.known`."""

    remedy = "use the version that wrote it"
    database_remedy = "let the owner of the tables run `payments payouts ledger upgrade`"

    def __init__(self, path: str, *, found: int, known: int) -> None:
        what = "tables are" if path.startswith("postgresql://") else "form is"
        super().__init__(path, f"its {what} number {found}, and this version works with {known}")
        self.found = found
        """The version of the tables, or of the form."""
        self.known = known
        """The version that this package works with."""


class DatabaseUnfit(LedgerError):
    """The database cannot hold a ledger, or not safely: its version, a standby, a pooler, no encryption."""

    remedy = "nothing was written; `payments payouts ledger check` says more"


class RightsMissing(LedgerError):
    """The database's user lacks rights that this needs: `.grants`."""

    remedy = "let an owner of the tables grant them; `payments payouts ledger check` shows the statements"

    def __init__(self, path: str, grants: Sequence[str]) -> None:
        text = "; ".join(grants)
        super().__init__(path, "the database's user lacks rights" + (f": {text}" if text else ""))
        self.grants: tuple[str, ...] = tuple(grants)
        """The SQL statements that give them; empty when it is not known which."""


class LedgerMismatch(LedgerError):
    """The ledger belongs to another batch, account or input: `.recorded` there, `.given` here."""

    subject: ClassVar[str] = "batch"

    def __init__(self, path: str, *, recorded: str, given: str, details: Sequence[str] = ()) -> None:
        super().__init__(path, "; ".join([self._problem(recorded, given), *details]))
        self.recorded = recorded
        """The value that the ledger was begun with."""
        self.given = given
        """The value that this run was given."""

    def _problem(self, recorded: str, given: str) -> str:
        return f"its {self.subject} is {recorded}, and this run's is {given}"


class LedgerOfAnotherBatch(LedgerMismatch):
    """The ledger holds another batch, or the same rows were given another batch id."""

    remedy: str = (
        "give the ledger's batch id, or none, to go on with its batch; only rows that no batch has paid get "
        "a ledger of their own, as under another batch id the same rows are paid again"
    )

    def __init__(self, path: str, *, recorded: str, given: str, only_opened: bool = False) -> None:
        self.only_opened: bool = only_opened
        """True if no input was to be loaded: the batch was named to be read, or followed to its end."""
        if only_opened:
            self.remedy = "give that batch id, or none"
        super().__init__(path, recorded=recorded, given=given)

    def _problem(self, recorded: str, given: str) -> str:
        return (
            f"holds batch {recorded}, not {given}" if self.only_opened else super()._problem(recorded, given)
        )


class LedgerOfAnotherEnvironment(LedgerMismatch):
    """The batch was begun in `live` and run in `sandbox`, or the other way round."""

    subject = "environment"
    remedy = "use a key of the ledger's environment, or another ledger"


class LedgerOfAnotherAddress(LedgerMismatch):
    """The batch was begun against another base URL."""

    subject = "base URL"
    remedy = "use the ledger's base URL, or another ledger"


class LedgerOfAnotherKey(LedgerMismatch):
    """The batch was begun with another API key, perhaps of another project. Fingerprints are shown."""

    subject = "key fingerprint"
    remedy = (
        "use the ledger's key, or one of the same project: it is taken as soon as the list shows it a payout "
        "of this ledger (up to 15 minutes after it was made: try again then). Where no payout ever arrived "
        "and the key is surely of the same project, move the ledger and its .lock away, and load the file "
        "again under the same batch id"
    )


class LedgerOfAnotherInput(LedgerMismatch):
    """The input was edited since it was read into the ledger: `.differences`, `.total`. Nothing was changed.

    The message shows hashes, and the places and differing fields of rows, never a value.
    """

    subject = "input"
    remedy = (
        "give the input as it was, accept the edits (accept_edits=True), which may change rows that are new "
        "or rejected and call off new ones, or give what is new a batch of its own"
    )

    def __init__(
        self,
        path: str,
        *,
        recorded: str,
        given: str,
        differences: Sequence[InputDifference] = (),
        total: int = 0,
        only_form: bool = False,
    ) -> None:
        shown = [str(difference) for difference in differences]
        rest = [f"and {total - len(shown)} more"] if total > len(shown) else []
        super().__init__(path, recorded=recorded, given=given, details=[*shown, *rest])
        self.differences: tuple[InputDifference, ...] = tuple(differences)
        """The first rows that differ; with `accept_edits`, the first whose edits cannot be accepted."""
        self.total = total
        """The number of all differing rows."""
        self.only_form = only_form
        """True if by its size and ends the file is the same, and has another mapping or sheet."""

    def _problem(self, recorded: str, given: str) -> str:
        """Shorten the hashes in the message: the differing rows matter more."""
        return super()._problem(f"{recorded[:_BRIEF]}…", f"{given[:_BRIEF]}…")


class InputPaidElsewhere(LedgerError):
    """A ledger beside this one, or its database, has the same input as another batch: `.batch_id`, `.ledger`.

    Its rows have other references there, so the service would take them for other payouts.
    """

    remedy: str = (
        "go on with that ledger or give its batch id, or, to pay the same rows a second time on purpose, "
        "pay_again=True"
    )

    def __init__(
        self, path: str, *, batch_id: str, ledger: str | None = None, is_forgotten: bool = False
    ) -> None:
        where = "the database" if ledger is None else f"{ledger}, beside it,"
        if is_forgotten:
            self.remedy = (
                f"{LedgerForgotten.remedy}. To pay all rows a second time on purpose: pay_again=True, or "
                "`--pay-again`"
            )
        which = f"{batch_id}, which was forgotten" if is_forgotten else batch_id
        super().__init__(
            path,
            f"{where} has the same input as batch {which}; under another batch id the references differ, "
            "and rows could be paid again",
        )
        self.batch_id = batch_id
        """The other batch."""
        self.ledger = ledger
        """The name of the other ledger's file, in the same folder; None for a batch in the same database."""
        self.is_forgotten = is_forgotten
        """True if the rows of the other batch are gone: it cannot be gone on with."""


class LedgerDuplicates(LedgerError):
    """A row key or a reference occurs more than once in the input: `.duplicates`. Nothing was imported."""

    remedy = "make each unique; nothing was imported"

    def __init__(self, path: str, duplicates: Sequence[Duplicate], *, total: int) -> None:
        shown = [str(duplicate) for duplicate in duplicates[:_MOST]]
        rest = [f"and {total - len(shown)} more"] if total > len(shown) else []
        super().__init__(path, "; ".join([*shown, *rest]))
        self.duplicates: tuple[Duplicate, ...] = tuple(duplicates)
        """The first duplicates."""
        self.total = total
        """The number of all duplicates."""


class LedgerRefused(LedgerError):
    """A row cannot be changed like this, or is not there: `.number`, `.reason`. Nothing was changed."""

    remedy = "look at the row's state with `payments payouts status`; nothing was changed"

    def __init__(self, path: str, number: int | None, reason: str) -> None:
        if number is None:
            super().__init__(path, reason, remedy="nothing was changed")
        else:
            super().__init__(path, f"row {number}: {reason}")
        self.number = number
        """The row's number; None when no known row is concerned."""
        self.reason = reason
        """The reason for the refusal."""


class BatchExists(LedgerRefused):
    """The ledger holds a batch already, and a ledger holds one: perhaps another process has imported it."""

    def __init__(self, path: str) -> None:
        super().__init__(path, None, "it holds a batch already, and a ledger holds one")


class LedgerClosed(LedgerError):
    """The ledger was closed when its batch was left, or is discarded. Earlier records are kept."""

    remedy = (
        "open it again: `PayoutBatch.open(path, client)`, and work with the batch inside its `with` block"
    )
    database_remedy = (
        "open it again: `SharedBatch.open(address, client)`, and work with the batch inside its `with` block"
    )


class LedgerFull(LedgerError):
    """The disk is full. The change was not recorded: an unrecorded intent must not be sent."""

    remedy = "make room and run again; every row is as it was recorded last"


class LedgerGone(LedgerError):
    """The ledger's file was deleted, moved or replaced while in use. No new row was begun since."""

    remedy = (
        "put the file back and run again; without it a new ledger finds what is paid, as long as batch id "
        "and row keys stay the same"
    )


class LedgerUnavailable(LedgerError):
    """The database cannot be reached or takes no changes, for a minute by now. Earlier records are kept."""

    remedy = "see to the database and run again; every row is as it was recorded last"


class LeaseLost(LedgerError):
    """The rows are another worker's by now, or nobody may send any of the batch. Nothing was sent."""

    remedy = "nothing was changed; whoever holds the rows goes on with them"


NO_INTENT: Final = (LedgerFull, LedgerGone, LedgerUnavailable, LeaseLost)
"""Errors of an intent that was not recorded: no new row is begun, and those being sent are finished."""


class LedgerBroken(LedgerError):
    """The disk failed under the ledger. Nothing it returns in this run can be relied on any more."""

    remedy = "see to the disk, then open the ledger again and check it: payments payouts check"
    database_remedy = f"see to the database's server, then `payments payouts check`; {_RESTORED}"


class LedgerDamaged(LedgerError):
    """The ledger is not as it was written: damaged, truncated or changed by another program: `.findings`."""

    remedy = (
        "put back the newest whole copy; without one move it and its .lock away, and load the same input "
        "under the same batch id: a row sent again under its reference is not paid twice"
    )
    database_remedy = f"pause the batch, and see what `payments payouts check` finds; {_RESTORED}"

    def __init__(self, path: str, findings: Sequence[str]) -> None:
        text = "; ".join(findings[:_MOST])
        more = f"; and {len(findings) - _MOST} more" if len(findings) > _MOST else ""
        super().__init__(path, text + more)
        self.findings: tuple[str, ...] = tuple(findings)
        """Everything that is wrong."""


class ArchiveDamaged(LedgerDamaged):
    """The archive is not as it was written: damaged, cut short or changed by another program: `.findings`."""

    remedy = "take another copy of it, or make it again from the ledger: `payments payouts archive`"
