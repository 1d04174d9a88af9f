"""The interface of a ledger: everything known of each row of a batch, stored before anything is sent.

    claim = await ledger.claim(200)             # stored: these may be sent
    ...
    await ledger.record(outcomes)

An intent is committed before anything is sent, so that a run that dies leaves every row it may have sent
IN_FLIGHT. Outcomes only add knowledge. Every commit adds to a hash chain (`hash_chain`) and keeps the totals.
Rows come out in pages: a million of them take the memory of a few hundred.

A backend stores it: `sqlite/` in a file, for one process; `postgresql/` in a database, for many. `opening`
chooses by the address. What needs a ledger takes this interface, and imports no backend.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from typing import Any, Final, Self
from unicodedata import normalize

from ..._http.addresses import same_service
from ..ledger_errors import (
    InputPaidElsewhere,
    LedgerGone,
    LedgerMismatch,
    LedgerOfAnotherAddress,
    LedgerOfAnotherBatch,
    LedgerOfAnotherEnvironment,
    LedgerOfAnotherInput,
    LedgerOfAnotherKey,
)
from ..protocol.attempts import RowAttempts
from ..protocol.records import (
    Awaited,
    Binding,
    CheckReport,
    Claim,
    ExtraTotals,
    Header,
    IntentTimes,
    LedgerRow,
    NewRow,
    Resend,
    RowOutcome,
    RowTotals,
)
from ..protocol.recovery import LossState
from ..protocol.row_state import RowState
from ..protocol.run_figures import RunFigures, RunSeries, RunTime
from ..protocol.stop_rules import StopRules
from .operators import ListedWorker
from .run_recorder import RunRecorder

_NUMBER: Final = re.compile(r"[0-9]{1,9}")
_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")
"""What no key and no reference has: neither a file nor a database can hold it."""
_MISMATCHES: Final[tuple[tuple[str, type[LedgerMismatch]], ...]] = (
    ("environment", LedgerOfAnotherEnvironment),
    ("base_url", LedgerOfAnotherAddress),
    ("batch_id", LedgerOfAnotherBatch),
    ("key_fingerprint", LedgerOfAnotherKey),
    ("input_hash", LedgerOfAnotherInput),
)


class Edits(ABC):
    """Edits of a batch in one transaction: committed together, or not at all. Valid within `Ledger.edit`.

    What a method reads holds what this transaction has changed.
    """

    @abstractmethod
    async def by_keys(self, keys: Collection[str]) -> list[LedgerRow]:
        """Read the rows with one of these keys, at most a thousand keys."""

    @abstractmethod
    def rows(self) -> AsyncIterator[LedgerRow]:
        """Read all rows in the order of their numbers, a page at a time."""

    @abstractmethod
    async def correct(self, replacements: Collection[NewRow]) -> None:
        """Give rows another body, as `Ledger.correct` does. Raises LedgerRefused."""

    @abstractmethod
    async def cancel(self, numbers: Collection[int]) -> None:
        """Cancel rows that were never sent. Raises LedgerRefused for another state."""

    @abstractmethod
    async def rebind(self, binding: Binding) -> None:
        """Record that the ledger now belongs to another key or input; its totals are summed anew."""


class Ledger(ABC):
    """One batch's ledger, open. Every method may raise a LedgerError; see `ledger_errors`."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @abstractmethod
    async def close(self) -> None:
        """Wait for a running commit and close. A second call does nothing."""

    # Facts, as of the last commit that is known here

    @property
    @abstractmethod
    def path(self) -> str:
        """Where the ledger is, for messages: a file's absolute path, or an address without its password."""

    @property
    @abstractmethod
    def is_empty(self) -> bool:
        """True if nothing was imported yet."""

    @property
    @abstractmethod
    def header(self) -> Header:
        """The ledger's facts about its batch. Raises LedgerMissing before the import."""

    @property
    @abstractmethod
    def totals(self) -> RowTotals:
        """Rows and sums by outcome and currency. Raises LedgerMissing before the import."""

    @property
    def gone(self) -> str | None:
        """Describe what happened to the ledger when it is no longer the one that was opened; else None."""
        return None

    @property
    def unproven(self) -> str | None:
        """Say that commits were lost, and that no reading of the list has proven yet what; else None."""
        return None

    def require_there(self) -> None:
        """Raise LedgerGone when the ledger is no longer the one that was opened: commits would be lost."""
        if gone := self.gone:
            raise LedgerGone(self.path, gone)

    def require(self, binding: Binding, *, other_key: bool = False, other_input: bool = False) -> None:
        """Check that this run fits the ledger's batch, environment, base URL, key and input.

        `other_key` and `other_input` allow these to differ, once that was proven safe. Raises the
        LedgerMismatch that fits.
        """
        allowed, recorded = {"key_fingerprint": other_key, "input_hash": other_input}, self.header.binding
        for name, error in _MISMATCHES:
            before, now = getattr(recorded, name), getattr(binding, name)
            same = same_service(before, now) if name == "base_url" else before == now
            if not same and not allowed.get(name):
                raise error(self.path, recorded=before, given=now)

    @abstractmethod
    async def refresh(self) -> None:
        """Read `header` and `totals` anew, as other processes may have changed them."""

    def publish(self, activity: Mapping[str, Any] | None, *, running: bool) -> None:
        """Show the figures and the present activity to processes that cannot read the ledger meanwhile."""
        return

    # The batch as a whole

    @abstractmethod
    async def import_rows(self, binding: Binding, rows: AsyncIterable[NewRow]) -> Header:
        """Import all rows in one transaction, in rising order of their numbers; then the batch can begin.

        Raises BatchExists when there is a batch already, LedgerDuplicates naming rows that share a key or a
        reference, and whatever `rows` raises. Nothing is imported then, nor when the import is cancelled
        before its commit.
        """

    @abstractmethod
    async def paid_elsewhere(self, binding: Binding) -> InputPaidElsewhere | None:
        """Find the same input as another batch, in the other ledgers of the folder or of the database.

        The same batch id gives the same references, which the service pays once; another environment moves
        other money (`""`: any environment).
        """

    @abstractmethod
    async def rebind(self, binding: Binding) -> None:
        """Record that the ledger now belongs to another key or input. The batch stays the same."""

    @abstractmethod
    async def note_extra(self, extra: ExtraTotals) -> None:
        """Record the extra payouts that a whole reading of the list has shown: `header.extra`."""

    @abstractmethod
    async def edit(self, work: Callable[[Edits], Awaitable[None]], *, dry: bool = False) -> None:
        """Carry out edits as one transaction: all of them, or none. `dry`: `work` only reads.

        Raises whatever `work` raises; nothing is changed then, nor when the edit is cancelled before its
        commit. `work` runs once.
        """

    @abstractmethod
    async def discard(self) -> None:
        """Remove the batch, at the latest when the ledger is closed.

        Raises LedgerRefused when a row was ever claimed or cancelled: the ledger is the record of that.
        """

    @abstractmethod
    async def check(self) -> CheckReport:
        """Check all of the ledger: its structure, chain, rows and sums. What is wrong is in `.findings`."""

    # Rows that are sent

    @abstractmethod
    async def claim(self, limit: int) -> Claim:
        """Mark up to `limit` NEW rows IN_FLIGHT. Returned only once the intent is stored.

        Raises one of `ledger_errors.NO_INTENT` when the intent, or later its outcome, cannot be recorded.
        """

    @abstractmethod
    async def resend(self, resends: Iterable[Resend]) -> Claim:
        """Record intents to post unfinished rows again. Returned only once they are stored.

        Rows that were decided meanwhile, as by a `reconcile` of another process, are left out. Raises one of
        `ledger_errors.NO_INTENT`, as `claim` does.
        """

    def may_send(self, row: LedgerRow) -> Callable[[], bool] | None:
        """The question to ask right before the first byte of a claimed row is sent; None: always yes."""
        return None

    @abstractmethod
    async def record(self, outcomes: Iterable[RowOutcome]) -> tuple[LedgerRow, ...]:
        """Record outcomes, all in one commit. Returns the changed rows.

        An outcome that knows less than the ledger changes nothing. LedgerFull means that these outcomes are
        not recorded and must be kept elsewhere.
        """

    @abstractmethod
    async def correct(self, replacements: Iterable[NewRow]) -> tuple[LedgerRow, ...]:
        """Give rejected rows (or new ones) another body: same reference, new key; they are NEW again.

        Raises LedgerRefused, and changes nothing, when a row is in another state or the reference differs.
        """

    @abstractmethod
    async def next_generation(self, replacements: Iterable[NewRow]) -> tuple[LedgerRow, ...]:
        """Make rows new whose payout has finally failed (that is recorded): new references.

        The caller has just confirmed with the service that each has failed. Raises LedgerRefused,
        and changes nothing, when a row is in another state or its reference is not a new one.
        """

    @abstractmethod
    async def adopt(self, payouts: Iterable[tuple[NewRow, RowOutcome]]) -> tuple[LedgerRow, ...]:
        """Make good lost retries: each row's later generation, and its outcome. Raises LedgerRefused."""

    # Reading

    @abstractmethod
    async def first(self) -> LedgerRow:
        """Read the row with the lowest number. Raises LedgerMissing before the import."""

    @abstractmethod
    async def last(self, state: RowState) -> LedgerRow | None:
        """Read the row with the highest number in a state."""

    @abstractmethod
    async def numbered(self, numbers: Iterable[int]) -> dict[int, LedgerRow]:
        """Read rows by number: {number: row}, without those that do not exist."""

    @abstractmethod
    async def by_keys(self, keys: Collection[str]) -> list[LedgerRow]:
        """Read the rows with one of these keys, at most a thousand keys."""

    async def find(self, name: str | int) -> LedgerRow | None:
        """Read the row with this key; else with this reference, or number. An int is a number alone."""
        if isinstance(name, int):
            return (await self.numbered([name])).get(name)
        if _UNSTORABLE.search(name):
            return None
        composed = normalize("NFC", name)
        found = await self.by_keys([composed]) or await self.by_references([composed])
        if not found and _NUMBER.fullmatch(name):
            found = list((await self.numbered([int(name)])).values())
        return found[0] if found else None

    @abstractmethod
    async def by_references(self, references: Iterable[str]) -> list[LedgerRow]:
        """Read the rows with one of these references, at most as many as a page of the list has."""

    @abstractmethod
    async def intent_times(self, rows: Iterable[LedgerRow]) -> Mapping[int, IntentTimes]:
        """{row number: times of its intents}, without rows that have none under their present key."""

    @abstractmethod
    def rows(self, state: RowState | None = None) -> AsyncIterator[LedgerRow]:
        """Read all rows, or those in a state, in the order of their numbers, a page at a time."""

    @abstractmethod
    def unfinished(self) -> AsyncIterator[LedgerRow]:
        """Read rows as an earlier run left them, IN_FLIGHT ones first, then IN_DOUBT; none changed since."""

    @abstractmethod
    def failed(self) -> AsyncIterator[LedgerRow]:
        """Read the CREATED rows whose payouts have failed, as far as the ledger knows."""

    @abstractmethod
    async def awaited(self) -> Awaited:
        """Count the CREATED rows whose payouts are not final, and find when the first was begun."""

    @abstractmethod
    async def latest_generation(self) -> int:
        """The highest generation of all rows."""

    @abstractmethod
    async def latest_command(self) -> int:
        """The number of the last entry that made rows new again: it grows with each retry and edit."""

    # How runs went: figures that decide nothing

    async def run_times(self) -> tuple[RunTime, ...]:
        """When each run was at work that sent a row, the last one at the end; none where it is not known."""
        return ()

    recorder: RunRecorder
    """The figures of this run. They are stored after outcomes, about once a second."""

    async def save_figures(self, at: float = 0.0) -> None:
        """Store the figures of this run until now that are not stored yet, those that can be stored."""
        await self._store(self.recorder.take(at))

    async def _store(self, figures: RunFigures | None) -> None:
        if figures is not None:
            with self.recorder.storing(figures):
                await self._store_figures(figures)

    @abstractmethod
    async def _store_figures(self, figures: RunFigures) -> None:
        """Store figures in a transaction of their own."""

    @abstractmethod
    async def series(self) -> RunSeries:
        """The answers of all runs so far, second by second: of this one until now, of others as stored."""

    @abstractmethod
    async def attempts(self, numbers: Collection[int]) -> Mapping[int, RowAttempts]:
        """{row number: its attempts}, at most a thousand, without rows that were created at once."""


class SharedLedger(Ledger):
    """A ledger in a database, which any number of processes use at the same time.

    `header` and `totals` are as of the last commit here, or the last `refresh`.
    """

    @property
    @abstractmethod
    def hold_reason(self) -> str | None:
        """Why no process may send a row now, in words: not planned, paused, suspect. None when they may."""

    @property
    @abstractmethod
    def stopped(self) -> str | None:
        """Why the stop rules let no further new row be taken; None while they do."""

    @property
    @abstractmethod
    def chunks(self) -> int:
        """How many chunks the batch has. Raises LedgerMissing before the import."""

    @abstractmethod
    async def check(self, on_line: Callable[[str], object] = bool) -> CheckReport:
        """Check all of the batch, chunk by chunk. What is wrong is in `.findings`.

        `on_line` gets a line of JSON for each chunk; the report's head is the SHA-256 of all lines.
        """

    @abstractmethod
    async def workers(self) -> tuple[ListedWorker, ...]:
        """Read the workers that hold rows of the batch now."""

    @abstractmethod
    def now(self) -> float:
        """Seconds since 1970 on the database's clock, which decides."""

    @abstractmethod
    async def plan(self, rules: StopRules, *, lossy_standby: bool = False) -> None:
        """Set the stop rules of the whole batch. Before the first time no process takes one of its rows.

        `lossy_standby`: accept, once for the batch, a standby that may lose the last commits. Raises
        LedgerRefused when there is such a standby and it was not accepted.
        """

    @abstractmethod
    async def pause(self, reason: str) -> None:
        """Let no process begin to send a row, effective within 5 seconds. A paused batch stays so.

        A suspect one is paused after its recovery; for a closed one this does nothing.
        """

    @abstractmethod
    async def resume(self) -> None:
        """End a pause. Does nothing without one. Raises LedgerRefused for a suspect batch."""

    @abstractmethod
    async def cancel_rest(self) -> None:
        """Cancel every row that is still new, while other processes may be sending others.

        Raises LedgerRefused while it is not known which commits were lost.
        """

    @abstractmethod
    async def begin_recovery(self, *, by_hand: bool) -> LossState | None:
        """Begin or go on with a recovery; None when no commits were lost.

        `by_hand`: commits were lost, even though nothing shows it.
        """

    @abstractmethod
    async def end_recovery(self, state: LossState, *, confirmed: bool, proven: bool) -> None:
        """Record what a recovery has found.

        Args:
            state: what `begin_recovery` returned.
            confirmed: the operator says that no command is missing: rows may be sent again.
            proven: a whole reading of the list has shown what was lost, and that no more can be.

        Raises LedgerUnavailable when more commits were lost meanwhile.
        """
