"""What a ledger asks of its database: statements, transactions that end even when their caller is cancelled.

    rows, more = await database.read((SQL, values), (SQL, values))
    found = await database.commit(work, committed)

`sqlite/connection.py` and `postgresql/database.py` do it. Both take the statements of `statements`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Sequence
from enum import Enum, auto
from typing import Any, TypeVar

from .statements import Copying, Rows, Statement, Statements

T = TypeVar("T")


class Purpose(Enum):
    """The purpose of a transaction: it decides the checks before, and what is done when the disk is full."""

    READ = auto()
    INTENT = auto()
    """Something will be sent after it: not begun unless there is room to record the outcome too."""
    IMPORT = auto()
    """All or nothing: rolled back when the caller is cancelled."""
    FIGURES = auto()
    """What may be lost: nothing is freed for it on a full disk, and no other work ends with it."""
    OUTCOME = auto()
    """Something has already happened: the disk reserve is freed for it when needed."""


class ReadOnly(ABC):
    """Statements that read."""

    sql: Statements

    @abstractmethod
    async def read(self, *statements: Statement) -> list[Rows]:
        """Send all statements, in one round trip where there is one, and return what each finds."""


class Transaction(ReadOnly):
    """Statements of one transaction. Writes wait, to be sent with the next read or the commit."""

    @abstractmethod
    def lock(self, name: str) -> None:
        """Let one transaction at a time go on from the next read, of those that lock this name."""

    @abstractmethod
    def write(self, *statements: Statement) -> None:
        """Send statements with the next read or the commit."""

    @abstractmethod
    def write_rows(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Send a statement that changes one table row for each of these, with the next read or the commit."""

    @abstractmethod
    async def copy(self, into: Copying, rows: Iterable[Sequence[Any]]) -> None:
        """Insert rows: their values are in no statement that could be logged."""

    @abstractmethod
    async def are_unique(self, indexes: Iterable[str]) -> bool:
        """Make unique indexes. Returns False, and undoes that alone, when rows share what is to be unique."""


Work = Callable[[Transaction], Awaitable[T]]
"""The work of a transaction. It may run again, so it must keep nothing of a run that failed."""


class Snapshots(ABC):
    """What has a ledger that can be checked: a database, or an archive."""

    sql: Statements

    @abstractmethod
    async def read(self, *statements: Statement, purpose: Purpose = Purpose.READ) -> list[Rows]:
        """Read with all statements, in one round trip where there is one."""

    @abstractmethod
    async def snapshot(self, work: Callable[[ReadOnly], Awaitable[T]]) -> T:
        """Run `work`, which reads, on one unchanging view."""


class LedgerDatabase(Snapshots):
    """A database with a ledger. Every method may raise a LedgerError."""

    @abstractmethod
    async def snapshot(self, work: Work[T]) -> T:
        """Run `work`, which reads, on one unchanging view of the database."""

    @abstractmethod
    async def commit(
        self,
        work: Work[T],
        committed: Work[bool] | None = None,
        *,
        purpose: Purpose = Purpose.OUTCOME,
        done: Callable[[T], object] = bool,
    ) -> T:
        """Run `work` in a transaction and commit it, to its end even when the caller is cancelled.

        Args:
            work: it may run several times.
            committed: finds out, at the beginning of a new transaction, whether the last run of `work` was
                committed, when that is not known. Without it `work` is simply repeated.
            purpose: what it is for.
            done: called with the result once that is committed, even when the caller is gone.
        """

    @abstractmethod
    async def once(
        self,
        work: Work[T],
        committed: Work[bool] | None = None,
        *,
        may_repeat: Callable[[], bool] = bool,
        purpose: Purpose = Purpose.IMPORT,
    ) -> T:
        """Run `work` in a transaction, once, for as long as it takes. A cancelled caller rolls it back.

        Args:
            work: it runs again only when it was broken off for another's sake and `may_repeat`.
            committed: finds out, at the beginning of a new transaction, whether `work` was committed.
            may_repeat: whether it has read nothing yet that it cannot read again.
            purpose: `IMPORT`, or `READ` when it changes nothing.
        """

    @abstractmethod
    async def close(self) -> None:
        """Wait for a running transaction and disconnect. A second call does nothing."""
