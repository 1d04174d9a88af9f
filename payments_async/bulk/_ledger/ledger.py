"""The interface of a ledger: everything known of each row of a batch, stored before anything is sent.

    claim = await ledger.claim(200)             # stored: these may be sent
    ...
    await ledger.record(outcomes)

An intent is committed before anything is sent, so that a run that dies leaves every row it may have sent
IN_FLIGHT. Outcomes only add knowledge. Every commit adds an entry to a hash chain and updates the totals.
Rows come out in pages: a million of them take the memory of a few hundred.

A backend stores it: `sqlite/` in a file, for one process; `postgresql/` in a database, for many. `opening`
chooses by the address. Code that works with both uses this interface, and imports neither.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterable, Awaitable, Callable, Collection, Iterable, Mapping
from typing import Any, BinaryIO

import attrs

from .._protocol import transitions
from .._protocol.outcomes import ExtraTotals, Outcome
from .._protocol.records import Binding, CheckReport, Claim, Header, LedgerRow, NewRow, Resend, RowOutcome
from .._protocol.row_state import RowState
from .._protocol.run_figures import RunFigures
from ..ledger_errors import InputPaidElsewhere, LedgerRefused
from .chunks import BATCH_CHUNK, is_stored
from .commits import Commit, Committer
from .edits import Edits as Edits
from .reader import LedgerReader
from .stored_rows import undamaged
from .transactions import Purpose, Transaction


class Ledger(LedgerReader):
    """One batch's ledger, open. Every method may raise a LedgerError; see `ledger_errors`."""

    @property
    @abstractmethod
    def _committer(self) -> Committer:
        """What makes its commits."""

    def _took(self, commit: Commit) -> None:
        """Keep what a commit has changed, even when its caller is gone."""
        self._keep(commit.figures)
        for stored in (row for each in commit.writes for row in each.rows):
            if stored.row.known.state is RowState.IN_FLIGHT:
                self._in_flight[stored.row.number] = stored
            else:
                self._in_flight.pop(stored.row.number, None)
        if commit.facts is not None:
            header, described_in = commit.facts.header, commit.facts.described_in
            self._facts = attrs.evolve(self.facts, header=header, described_in=described_in)

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

    async def rebind(self, binding: Binding) -> None:
        """Record that the ledger now belongs to another key or input. The batch stays the same."""
        self.require(binding, other_key=True, other_input=True)
        await self.edit(lambda edits: edits.rebind(binding))

    async def note_extra(self, extra: ExtraTotals) -> None:
        """Record the extra payouts that a whole reading of the list has shown: `header.extra`."""
        await self._committer.describe(extra=extra)

    async def note_guard(self, digest: str) -> None:
        """Record the guard that the batch is run under from now on: `header.guard`."""
        if digest != self.header.guard:
            await self._committer.describe(guard=digest)

    async def edit(self, work: Callable[[Edits], Awaitable[None]], *, dry: bool = False) -> None:
        """Carry out edits as one transaction: all of them, or none. `dry`: `work` only reads.

        Raises whatever `work` raises; nothing is changed then, nor when the edit is cancelled before its
        commit. `work` runs once.
        """
        chunks, purpose = ([], Purpose.READ) if dry else ([BATCH_CHUNK, *self._figures], Purpose.IMPORT)
        made: list[Edits] = []
        committer, facts = self._committer, self.facts

        async def edited(transaction: Transaction) -> None:
            edits = await Edits.begun(transaction, committer, facts, chunks)
            made.append(edits)
            await work(edits)
            edits.end()

        async def committed(transaction: Transaction) -> bool:
            return await is_stored(transaction, facts.batch.batch, made[0].writes.values())

        with undamaged(self.path):
            await committer.judged(
                lambda: self._db.once(edited, committed, may_repeat=lambda: not made, purpose=purpose)
            )
        if made[0].writes:
            self._took(made[0].commit)

    async def keep_certificate(self, text: str) -> None:
        """Keep the batch's latest certificate, as JSON text, where it has no file of its own."""
        return

    async def kept_certificate(self) -> str | None:
        """Read the certificate that `keep_certificate` has kept, as JSON text; None for none."""
        return None

    @abstractmethod
    async def discard(self) -> None:
        """Remove the batch, at the latest when the ledger is closed.

        Raises LedgerRefused when a row was ever claimed or cancelled: the ledger is the record of that.
        """

    async def archive(
        self, file: BinaryIO, *, accounts: bool, certificate: Mapping[str, Any] | None = None
    ) -> bool:
        """Write all of the batch to a Parquet file (`archive/form.py`). Returns whether it has a certificate.

        That is `certificate`, or else the one that the ledger keeps, if it is of the batch as it is. Raises
        LedgerRefused for a batch that is not closed, BulkError for a `certificate` of another state, and
        ImportError without the extra.
        """
        from .archive.writing import write

        await self.refresh()
        if reason := self.unclosed:
            raise LedgerRefused(self.path, None, f"an archive is made of a closed batch, and {reason}")
        with undamaged(self.path):
            kept = None if certificate is not None else await self.kept_certificate()
            return await write(
                self._db, self.facts, file, accounts=accounts, certificate=certificate, kept=kept
            )

    @abstractmethod
    async def check(self) -> CheckReport:
        """Check all of the ledger: its structure, chain, rows and sums. What is wrong is in `.findings`."""

    # Rows that are sent

    async def claimable(self, limit: int) -> list[LedgerRow]:
        """Read the rows that `claim` takes next, unless another process changes them."""
        for chunk, after in self._claiming():
            if self._figures[chunk].count(Outcome.NOT_STARTED):
                rows, from_the_start = (self._committer.claimable(chunk, at, limit) for at in (after, 0))
                found = await self._rows(rows) or await self._rows(from_the_start)
                if found:  # pragma: no branch - none only if another process took them just now
                    return found
        return []

    def _claiming(self) -> Iterable[tuple[int, int]]:
        """The chunks whose rows are claimed here, each with the last row that was."""
        return ()

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

    async def record(self, outcomes: Iterable[RowOutcome]) -> tuple[LedgerRow, ...]:
        """Record outcomes, all in one commit. Returns the changed rows.

        An outcome that knows less than the ledger changes nothing. LedgerFull means that these outcomes are
        not recorded and must be kept elsewhere.
        """
        commit = await self._committer.record(outcomes)
        await self._store(self.recorder.due(self.now()))
        return commit.rows

    async def correct(self, replacements: Iterable[NewRow]) -> tuple[LedgerRow, ...]:
        """Give rejected rows (or new ones) another body: same reference, new key; they are NEW again.

        Raises LedgerRefused, and changes nothing, when a row is in another state or the reference differs.
        """
        return (await self._committer.replace("correct", replacements, transitions.corrected)).rows

    async def next_generation(
        self, replacements: Iterable[NewRow], unsent: Collection[int] = ()
    ) -> tuple[LedgerRow, ...]:
        """Make rows new whose payout has finally failed (that is recorded): new references.

        The caller has just confirmed with the service that each has failed. `unsent`: the numbers of those
        whose present generation was never sent. Raises LedgerRefused, and changes nothing, when a row is in
        another state or its reference is not a new one.
        """

        def change(row: LedgerRow, new: NewRow, entry: int) -> LedgerRow:
            return transitions.retried(row, new, entry, unsent=row.number in unsent)

        return (await self._committer.replace("retry", replacements, change)).rows

    async def adopt(self, payouts: Iterable[tuple[LedgerRow, NewRow, RowOutcome]]) -> tuple[LedgerRow, ...]:
        """Give rows the generation of a later payout that the list shows, and its outcome, in one commit.

        Each row as it was judged, what is sent at that generation, and the outcome. Of a row that another
        process has changed meanwhile, the outcome alone is recorded, where it still fits. Returns the changed
        rows.
        """
        found = {new.number: (row, new, outcome) for row, new, outcome in payouts}

        def change(row: LedgerRow, new: NewRow, entry: int) -> LedgerRow:
            judged, _, outcome = found[new.number]
            if (row.known.state, row.body_hash) == (judged.known.state, judged.body_hash):
                row = transitions.adopted(row, new, entry)
            return transitions.recorded(row, outcome, entry) or row

        new = [new for _, new, _ in found.values()]
        return (await self._committer.replace("recover", new, change, recovers=True)).rows

    async def save_figures(self, at: float = 0.0) -> None:
        """Store the figures of this run until now that are not stored yet, those that can be stored."""
        await self._store(self.recorder.take(at))

    async def _store(self, figures: RunFigures | None) -> None:
        if figures is not None:
            with self.recorder.storing(figures):
                await self._store_figures(figures)

    async def _store_figures(self, figures: RunFigures) -> None:
        """Store figures in a transaction of their own."""
        await self._committer.save(figures)
