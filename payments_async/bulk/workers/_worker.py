"""The loop of a worker: asks which work is due, and makes a step of each piece."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ... import _files
from ...client import AsyncPayments
from .._activity import Doing, Waits
from .._engine.recorder import OutcomesUnrecorded
from .._engine.stopping import Stopping
from .._leasing.step_call import StepCall, StepKind
from .._leasing.step_context import StepContext
from .._leasing.step_ends import (
    Done,
    FailureCause,
    Held,
    HoldReason,
    Next,
    Now,
    StepEnd,
    StepFailed,
    Wait,
)
from .._ledger.chunks import Batch
from .._ledger.postgresql import batches
from .._ledger.postgresql.database import Database
from .._ledger.postgresql.leases import Work
from .._ledger.postgresql.work import DueWork, due_work, open_batches, seconds_until_due
from .._protocol.exit_codes import Exit, Stop
from ..ledger_errors import LedgerError, LedgerUnavailable
from ._reports import WorkerProgress, WorkerReport
from ._settings import WorkerSettings

if TYPE_CHECKING:
    from .._leasing.worker_session import WorkerSession

POLL: Final = 15.0
"""Seconds after which a worker without work asks for some, unless a notice wakes it before."""
AGAIN: Final = 1.0
"""Seconds between two questions that notices lead to, and until work that was not to be had is asked for."""
_LONGEST: Final = 60.0
_STEPS: Final[dict[Work, StepKind]] = {Work.SEND: "send", Work.LOOK: "look", Work.CLOSE: "close"}
_AHEAD: Final = 8
"""Pieces of work that are read for each one that can be begun, so that workers seldom ask for the same."""


class WorkerRun:
    """One run of a worker."""

    def __init__(
        self,
        client: AsyncPayments,
        address: str,
        settings: WorkerSettings,
        stopping: Stopping,
        *,
        on_commit: Callable[[], object] = bool,
    ) -> None:
        """`on_commit`: called after each commit of outcomes."""
        self._settings, self._stopping = settings, stopping
        self._context = StepContext(
            address,
            client,
            settings.pace,
            slots=settings.slots,
            insecure_database=settings.insecure_database,
            audits=settings.audits,
            on_commit=on_commit,
            on_renewal=self._renewed,
        )
        self._unrecorded = OutcomesFolder(None if settings.folder is None else Path(settings.folder))
        self._under_way: dict[asyncio.Task[StepEnd], tuple[DueWork, StepCall]] = {}
        self._resting: dict[DueWork, float] = {}
        """{work that was not to be had: until when it is left alone}, on the runtime's monotonic clock."""
        self._left_alone: dict[str, tuple[float, str | None]] = {}
        """{batch: (until when, why its rows wait for room)}; None for one that is under another guard."""
        self._no_room_since = (0.0, -1)
        """When rows began to wait for room, and how many were decided by then."""
        self._chunks = self._failures = 0
        self._rests_until = self._asked_at = self._asks_at = 0.0
        self._has_failed = False
        self._left_open: tuple[str, ...] = ()
        self._error: Exception | None = None
        """What a step has raised that is no end of one."""
        self._changed = asyncio.Event()

    # Facts

    @property
    def waits(self) -> Waits:
        """What it does now, and the rows in doubt that wait."""
        waits = [run.waits for run in self._context.active]
        kinds: set[Doing] = {each.doing for each in waits}
        is_idle = kinds and kinds <= {"waiting", "reading"}
        doing: Doing = "paying" if not is_idle else "reading" if "reading" in kinds else "waiting"
        posts = (each.next_post for each in waits if each.next_post is not None)
        again, looked_for = sum(each.again for each in waits), sum(each.looked_for for each in waits)
        doing = "waiting" if self._no_room is not None and not waits else doing
        return Waits(doing, again, looked_for, min(posts, default=None), self._no_room)

    @property
    def _no_room(self) -> str | None:
        """Why rows wait for room in the guard's sums; None while none does."""
        return next((why for _, why in self._left_alone.values() if why is not None), None)

    def is_set(self) -> bool:
        """Tell its steps to stop."""
        return self._stopping.draining

    # The run

    async def run(self) -> WorkerReport:
        """Work until there is nothing to do, or the worker is stopped. Raises LedgerError and BulkError."""
        self._stopping.on_drain = self._changed.set
        try:
            session, reader = await self._context.connected()
            try:
                await self._loop(session, reader)
            except LedgerUnavailable as error:
                self._fail(str(error))
            if self._under_way:
                await asyncio.wait(self._under_way)
            self._take_ended()
            if self._error is not None:
                raise self._error
        finally:
            await self._cut_off()
            try:
                await self._context.disconnect()
            finally:
                self._unrecorded.require_written()
        return self._report()

    async def _loop(self, session: WorkerSession, reader: Database) -> None:
        """Begin what is due, until the worker is to end. Raises LedgerError."""
        name = self._settings.batch_id
        only = None if name is None else (await batches.found(reader, name)).batch.batch
        await reader.listen(self._noticed)
        while not self._stopping.draining:
            self._changed.clear()
            begun = await self._begin(session, reader, only)
            if not begun and await self._is_over(session, reader, only):
                return
            if not begun:
                timer = self._context.runtime.call_later(max(self._rest(), 0.0), self._changed.set)
                await self._changed.wait()
                timer.cancel()
            self._take_ended()

    def _noticed(self) -> None:
        """Ask for work, which there may be; but not all the time while others are busy."""
        runtime = self._context.runtime
        runtime.call_later(max(self._asked_at + AGAIN - runtime.monotonic(), 0.0), self._changed.set)

    def _rest(self) -> float:
        """Seconds until this worker asks for work again."""
        at = min([self._asks_at, *self._resting.values(), *(until for until, _ in self._left_alone.values())])
        return max(at, self._rests_until) - self._context.runtime.monotonic()

    async def _begin(self, session: WorkerSession, reader: Database, only: int | None) -> bool:
        """Begin steps of the work that is due, as far as there are slots. Raises LedgerError."""
        runtime, slots = self._context.runtime, self._settings.slots
        now = runtime.monotonic()
        self._resting = {work: until for work, until in self._resting.items() if until > now}
        self._left_alone = {batch: left for batch, left in self._left_alone.items() if left[0] > now}
        kinds = [work.kind for work, _ in self._under_way.values()]
        free = slots - kinds.count(Work.SEND)
        # a slot of its own for the rest, so that rows in doubt that wait hold back no new ones
        rest = () if len(kinds) > kinds.count(Work.SEND) else (Work.LOOK, Work.CLOSE)
        asked = (*((Work.SEND,) if free else ()), *rest)
        self._asks_at = now + POLL
        if not asked or now < self._rests_until:
            return False
        self._asked_at = now
        open_now = [batch.batch for batch in await self._open(session, reader, only)]
        due = await due_work(reader, open_now, asked, _AHEAD * slots) if open_now else []
        busy = {*self._resting, *(work for work, _ in self._under_way.values())}
        chosen = [work for work in due if work not in busy]
        sends = [work for work in chosen if work.kind is Work.SEND][:free]
        others = [work for work in chosen if work.kind is not Work.SEND][:1]
        for work in (*sends, *others):
            call = StepCall(self._context, work.batch_id, work.chunk or None, _STEPS[work.kind], self)
            task = asyncio.ensure_future(call.to_its_end())
            self._under_way[task] = work, call
            task.add_done_callback(lambda _: self._changed.set())
        if open_now and not (sends or others):
            self._asks_at = now + min(POLL, await seconds_until_due(reader, open_now))
        return bool(sends or others)

    async def _open(
        self, session: WorkerSession, reader: Database, only: int | None, *, under_way: bool = False
    ) -> list[Batch]:
        """The open batches that this worker may pay, or may yet prove that it may. Raises LedgerError."""
        found = await open_batches(reader, session.worker, only, proven=False, under_way=under_way)
        refused, alone = session.prover.refused, self._left_alone
        return [batch for batch in found if batch.batch not in refused and batch.batch_id not in alone]

    async def _is_over(self, session: WorkerSession, reader: Database, only: int | None) -> bool:
        """True if nothing is left to do, not even for another worker, which may die. Raises LedgerError."""
        if not self._settings.until_idle or self._under_way or self._resting or self._no_room:
            return False
        if await self._open(session, reader, only, under_way=True):
            return False
        left = [batch.batch_id for batch in await self._open(session, reader, only)]
        self._left_open = (*left, *self._left_alone)
        return True

    def _take_ended(self) -> None:
        """Decide how to go on after the steps that have ended."""
        for task in [each for each in self._under_way if each.done()]:
            work, call = self._under_way.pop(task)
            self._chunks += call.has_worked
            try:
                end = task.result()
            except StepFailed as error:
                self._take_failure(work, error)
            except Exception as error:
                self._error = self._error or error
                self._stopping.drain("a part of the worker failed")
            else:
                self._failures = 0
                is_left = self._leaves_alone(work.batch_id, call.room_in, end.next)
                if not is_left and not isinstance(end.next, Done | Now):
                    self._resting[work] = self._context.runtime.monotonic() + AGAIN

    def _leaves_alone(self, batch_id: str, room_in: float | None, following: Next) -> bool:
        """Leave a batch alone for a while that is under another guard, or whose rows wait for room.

        With `until_idle`, the worker ends if there is no room in time.
        """
        now, rows = self._context.runtime.monotonic(), self._context.rows
        if isinstance(following, Held) and following.by is HoldReason.GUARD:
            self._left_alone[batch_id] = now + POLL, None
            return True
        if room_in is None or not isinstance(following, Wait):
            return False
        self._left_alone[batch_id] = now + min(room_in, POLL), following.reason
        if self._no_room_since[1] != rows:
            self._no_room_since = now, rows
        if self._settings.until_idle and now + room_in - self._no_room_since[0] > self._settings.patience:
            self._fail(following.reason)
        return True

    def _take_failure(self, work: DueWork, error: StepFailed) -> None:
        lost = error.__cause__
        if isinstance(lost, OutcomesUnrecorded):
            self._unrecorded.write(work.batch_id, self._context.worker, lost)
        if error.cause is FailureCause.KEY:
            self._stopping.drain(error.reason, Stop.NO_ACCESS)
        elif error.cause is FailureCause.DATABASE or self._settings.until_idle:
            is_another = error.cause is FailureCause.ADDRESS
            self._fail(error.reason, Stop.NOT_THE_SERVICE if is_another else Stop.TEMPORARY)
        else:
            self._failures += 1
            rest = (
                _LONGEST
                if error.cause is FailureCause.ADDRESS
                else AGAIN * 2.0 ** min(self._failures - 1, 10)
            )
            self._rests_until = self._context.runtime.monotonic() + min(rest, _LONGEST)

    async def _cut_off(self) -> None:
        """Cut off the steps that are still under way, because this worker is cancelled or has failed."""
        for _ in range(2):  # cancelled once, a step records its rows
            for task in self._under_way:
                task.cancel()
            await self._context.runtime.sleep(0.0)
        if self._under_way:
            await asyncio.wait(self._under_way)

    def _renewed(self) -> None:
        context = self._context
        if context.is_broken:
            self._stopping.drain("its leases can no longer be renewed")
        if context.is_drained:
            self._stopping.drain("drained by an operator")
        chunks = tuple(each for run in context.active for each in run.leased_chunks)
        progress = WorkerProgress(context.worker, context.rows, chunks, context.trouble)
        with suppress(Exception):  # a callback cannot break the work
            self._settings.on_progress(progress)

    def _report(self) -> WorkerReport:
        stopping, context = self._stopping, self._context
        is_refused = stopping.draining and stopping.kind is Stop.NO_ACCESS
        code = Exit.USAGE if is_refused else Exit.RESUMABLE if self._has_failed else Exit.DONE
        facts = (context.worker, context.rows, self._chunks, stopping.reason, code)
        return WorkerReport(*facts, tuple(self._unrecorded.written), self._left_open)

    def _fail(self, reason: str, kind: Stop = Stop.TEMPORARY) -> None:
        """End because the database or the service is lost."""
        self._has_failed = True
        self._stopping.drain(reason, kind)


class OutcomesFolder:
    """The folder for the outcomes that one worker could not record."""

    def __init__(self, folder: Path | None) -> None:
        """`folder`: None to write nothing, and raise them at the end."""
        self._folder = folder
        self.written: list[str] = []
        """The paths of the files."""
        self._lost: OutcomesUnrecorded | None = None

    def write(self, batch_id: str, worker: str, error: OutcomesUnrecorded) -> None:
        """Write outcomes of a batch to a file of their own, readable by this user only."""
        name = f"{_files.file_name(batch_id)}-{worker[:8]}-{len(self.written) + 1}.unrecorded.json"
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
