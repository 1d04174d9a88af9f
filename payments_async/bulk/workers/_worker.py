"""Runs of a worker, which takes leases of chunks, works under them, and takes the next; and of one chunk."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from ... import _files
from ...client import AsyncPayments
from .._activity import Doing, Waits
from .._engine.recorder import OutcomesUnrecorded
from .._engine.stopping import Stopping
from .._ledger.postgresql import batches, granting
from .._ledger.postgresql.database import Database
from .._ledger.postgresql.granting import open_batches
from .._ledger.postgresql.leases import Lease, Work
from .._ledger.postgresql.renewing import Renewal
from .._protocol.exit_codes import Stop
from ..errors import BulkError
from ..ledger_errors import LedgerError, LedgerMissing, LedgerUnavailable, RightsMissing
from . import _planning
from ._chunk_run import ChunkRun, LeaseHolder
from ._closing import BatchClosing
from ._key_proof import KeyProver
from ._planning import rest_after, worker_code
from ._reports import ChunkReport, RunEnd, WorkerProgress, WorkerReport
from ._settings import WorkerSettings
from ._worker_session import WorkerSession

_SEND: Final = (Work.SEND,)
_REST: Final = (Work.LOOK, Work.CLOSE)
"""Work that has a slot of its own, so that rows in doubt that wait hold back no new ones."""
_ROUNDS: Final = 2


class WorkerRun:
    """One run of a worker."""

    def __init__(
        self,
        client: AsyncPayments,
        session: WorkerSession,
        settings: WorkerSettings,
        stopping: Stopping,
        *,
        on_commit: Callable[[], object] = bool,
    ) -> None:
        """`on_commit`: called after each commit of outcomes."""
        self._session, self._settings, self._stopping = session, settings, stopping
        self._on_commit = on_commit
        self._id = session.worker.id.hex()
        self._active: list[ChunkRun | BatchClosing] = []
        self._rows = self._chunks = self._failures = 0
        self._asking = {_SEND: asyncio.Lock(), _REST: asyncio.Lock()}
        """{kinds of work: held by the slot that asks for them, for all that have nothing to do}."""
        self._idle = Counter[tuple[Work, ...]]()
        """{kinds of work: how often in a row there was none}, since a piece of work ended."""
        self._is_over = False
        self._rests_until = 0.0
        self._has_failed = False
        self._left_open: tuple[str, ...] = ()
        folder = None if settings.folder is None else Path(settings.folder)
        self._unrecorded = OutcomesFolder(folder, self._id[:8])
        self._prover = KeyProver(client, session.worker.account)

    # Facts

    @property
    def waits(self) -> Waits:
        """What it does now, and the rows in doubt that wait."""
        waits = [run.waits for run in self._active]
        doing: Doing = "waiting" if {each.doing for each in waits} == {"waiting"} else "paying"
        posts = (each.next_post for each in waits if each.next_post is not None)
        again, looked_for = sum(each.again for each in waits), sum(each.looked_for for each in waits)
        return Waits(doing, again, looked_for, min(posts, default=None))

    @property
    def rows(self) -> int:
        """Rows decided so far."""
        return self._rows + sum(run.rows for run in self._active)

    # The run

    async def run(self) -> WorkerReport:
        """Work until there is nothing to do, or the worker is stopped. Raises LedgerError and BulkError."""
        session = self._session
        session.rows = lambda: self.rows
        self._stopping.on_drain = self._drain
        try:
            async with session.opened(self._renewed, self._renewals_ended) as database:
                batch = await self._scope(database)
                kinds = [_SEND] * self._settings.slots + [_REST]
                await _all([self._slot(batch, each) for each in kinds])
        except Exception:
            self._unrecorded.require_written()  # they are nowhere else
            raise
        self._unrecorded.require_written()
        return self._report()

    async def _scope(self, database: Database) -> int | None:
        """The number of the only batch to work on; None for all. Raises LedgerMissing."""
        name = self._settings.batch_id
        return None if name is None else (await batches.found(database, name)).batch.batch

    def _drain(self) -> None:
        for run in self._active:
            run.stopping.drain(str(self._stopping.reason))

    def _renewed(self, renewal: Renewal) -> None:
        if renewal.drain:
            self._stopping.drain("drained by an operator")
        chunks = tuple(each for run in self._active for each in run.leased_chunks)
        with suppress(Exception):  # a callback cannot break the work
            self._settings.on_progress(WorkerProgress(self._id, self.rows, chunks, self._session.trouble))

    def _renewals_ended(self) -> None:
        self._stopping.drain("its leases can no longer be renewed")

    def _report(self) -> WorkerReport:
        stopping = self._stopping
        code = worker_code(stopping.kind if stopping.draining else None, failed=self._has_failed)
        unrecorded = tuple(self._unrecorded.written)
        place = (self._id, self._rows, self._chunks)
        return WorkerReport(*place, stopping.reason, code, unrecorded, self._left_open)

    # A slot

    async def _slot(self, batch: int | None, kinds: tuple[Work, ...]) -> None:
        """Do one piece of work after the other, on a connection of its own."""
        try:
            async with self._session.holder() as holder:
                while leases := await self._leases(holder.database, batch, kinds):
                    await self._do(holder, leases)
        except LedgerUnavailable as error:
            self._fail(str(error))
        except BaseException:
            self._stopping.drain("a part of the worker failed")
            raise

    async def _leases(self, database: Database, batch: int | None, kinds: tuple[Work, ...]) -> list[Lease]:
        """Wait for leases of the next piece of work; none when there will be none."""
        async with self._asking[kinds]:
            while not (self._stopping.draining or self._is_over):
                if database.runtime.monotonic() >= self._rests_until:
                    leases = await granting.grant(database, self._session.worker, kinds=kinds, batch=batch)
                    if leases:
                        return leases
                    if await self._prover.prove(database, batch):
                        continue
                self._idle[kinds] += 1
                if await self._is_idle(database, batch):
                    self._is_over = True
                    self._stopping.wake()
                else:
                    await self._stopping.rest(_planning.POLL, deep=True)
        return []

    async def _is_idle(self, database: Database, batch: int | None) -> bool:
        """True if nothing is left to do, not even for another worker, which may die.

        A chunk that another process has locked for a moment looks like none: all is asked for twice.
        """
        if not self._settings.until_idle or self._active:
            return False
        if min(self._idle[kinds] for kinds in self._asking) < _ROUNDS:
            return False
        account = self._session.worker.account
        if await open_batches(database, account, batch, under_way=True):
            return False
        self._left_open = tuple(each.batch_id for each, _ in await open_batches(database, account, batch))
        return True

    async def _do(self, holder: LeaseHolder, leases: Sequence[Lease]) -> None:
        """Work under leases, and act on how that ended."""
        run = self._run_of(holder, leases)
        if self._stopping.draining:
            run.stopping.drain(str(self._stopping.reason))
        self._active.append(run)
        self._session.trouble = None  # it tries again
        try:
            report = await run.run()
        except OutcomesUnrecorded as error:
            self._unrecorded.write(leases[0].batch.batch_id, error)
            self._fail(str(error))
        except LedgerUnavailable as error:
            self._fail(str(error))
        except RightsMissing as error:  # of this worker's user
            self._stopping.drain(str(error), Stop.NO_ACCESS)
        except LedgerError as error:
            await self._pause(holder, leases[0], str(error))
        else:
            await self._take(holder, leases[0], report)
        finally:
            self._rows += run.rows
            self._active.remove(run)
            self._idle.clear()
            self._stopping.wake()  # what another slot waits for may have come with it

    def _run_of(self, holder: LeaseHolder, leases: Sequence[Lease]) -> ChunkRun | BatchClosing:
        stopping = Stopping(holder.database.runtime)
        if leases[0].kind is Work.CLOSE:
            return BatchClosing(holder, leases[0], stopping, audits=self._settings.audits)
        return ChunkRun(holder, leases, stopping, self._settings, self._on_commit)

    async def _take(self, holder: LeaseHolder, lease: Lease, report: ChunkReport) -> None:
        """Decide how to go on after a piece of work."""
        self._chunks += 1
        reason = str(report.reason)
        if report.end is not RunEnd.STOPPED or self._stopping.draining:
            self._failures = 0
        elif report.stop is Stop.RULE:
            await self._pause(holder, lease, reason)
        elif report.stop is Stop.NO_ACCESS:
            self._stopping.drain(reason, Stop.NO_ACCESS)
        elif self._settings.until_idle:
            self._fail(reason, report.stop)
        else:
            self._failures, self._session.trouble = self._failures + 1, reason
            rest = rest_after(self._failures, report.stop)
            self._rests_until = holder.database.runtime.monotonic() + rest

    async def _pause(self, holder: LeaseHolder, lease: Lease, reason: str) -> None:
        """Pause a batch that cannot be worked on, for an operator to see to; other batches go on."""
        clock = self._session.worker.clock(holder.database)
        with suppress(LedgerMissing):  # discarded meanwhile
            await batches.pause(holder.database, lease.batch, clock, reason)

    def _fail(self, reason: str, kind: Stop = Stop.TEMPORARY) -> None:
        """End because the database or the service is lost."""
        self._has_failed = True
        self._stopping.drain(reason, kind)


async def _all(slots: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Run all to their ends; then raise what one of them raised. Cancelled, it cancels them."""
    for ended in await asyncio.gather(*slots, return_exceptions=True):
        if ended is not None:
            raise ended


class OutcomesFolder:
    """The folder for the outcomes that one worker could not record."""

    def __init__(self, folder: Path | None, worker: str) -> None:
        """`folder`: None to write nothing, and raise them at the end."""
        self._folder, self._worker = folder, worker
        self.written: list[str] = []
        """The paths of the files."""
        self._lost: OutcomesUnrecorded | None = None

    def write(self, batch_id: str, error: OutcomesUnrecorded) -> None:
        """Write outcomes of a batch to a file of their own, readable by this user only."""
        name = f"{_files.file_name(batch_id)}-{self._worker}-{len(self.written) + 1}.unrecorded.json"
        try:
            if self._folder is None:
                raise OSError
            _files.write_text(self._folder / name, error.to_json())
        except OSError:
            self._lose(error)
        else:
            self.written.append(str(self._folder / name))

    def _lose(self, error: OutcomesUnrecorded) -> None:
        cause, before = error.__cause__, () if self._lost is None else self._lost.outcomes
        assert isinstance(cause, LedgerError)
        self._lost = OutcomesUnrecorded(cause, [*before, *error.outcomes])

    def require_written(self) -> None:
        """Raise OutcomesUnrecorded with all that were not written."""
        if self._lost is not None:
            raise self._lost


async def run_single(
    client: AsyncPayments, session: WorkerSession, settings: WorkerSettings, chunk: int
) -> ChunkReport:
    """Work on one chunk of a batch, unless another process does.

    Raises LedgerError, OutcomesUnrecorded, and BulkError for a chunk that the batch does not have.
    """
    stopping, batch_id = Stopping(session.runtime), settings.batch_id
    assert batch_id is not None  # `run_chunk` wants a name

    def renewed(renewal: Renewal) -> None:
        if renewal.drain:
            stopping.drain("drained by an operator")

    async with session.opened(renewed) as database, session.holder() as holder:
        facts = await batches.found(database, batch_id)
        if chunk > facts.chunks:
            raise BulkError(f"batch {batch_id} has {facts.chunks} chunks, and no chunk {chunk}")
        number = facts.batch.batch
        await KeyProver(client, session.worker.account).prove(database, number)
        leases = await granting.grant(holder.database, session.worker, batch=number, chunk=chunk)
        if not leases:
            return await _without_lease(database, batch_id, chunk)
        run = ChunkRun(holder, leases, stopping, settings, bool)
        session.rows = lambda: run.rows
        return await run.run()


async def _without_lease(database: Database, batch_id: str, chunk: int) -> ChunkReport:
    """Report on a chunk whose lease was not to be had: it is done, another worker's, or held back."""
    facts = await batches.found(database, batch_id)
    if await granting.has_rows_to_send(database, facts.batch.batch, chunk):
        return ChunkReport(batch_id, (chunk,), RunEnd.UNAVAILABLE, facts.hold_reason or facts.stopped)
    return ChunkReport(batch_id, (chunk,), RunEnd.DONE)
