"""One call of a step: looks at the batch, works under leases if there is work, and looks again."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import attrs

from ..._runtime import Timer
from ...errors import PaymentsError
from .._engine.recorder import OutcomesUnrecorded
from .._engine.stopping import Stopping
from .._protocol.exit_codes import Stop
from .._protocol.responses import stop_of, why
from .._report import BatchFigures, batch_figures_of
from ..errors import BulkError
from ..ledger_errors import (
    LedgerDamaged,
    LedgerError,
    LedgerForgotten,
    LedgerFull,
    LedgerMismatch,
    LedgerMissing,
    LedgerNewer,
    LedgerOlder,
    LedgerUnavailable,
    RightsMissing,
)
from .decisions import BUSY, before_close, before_pay, before_settle, failure, other_guard
from .step_context import StepContext
from .step_ends import Done, FailureCause, Held, HoldReason, Never, Next, Now, StepEnd, Wait, failed

if TYPE_CHECKING:
    from .._ledger.postgresql.database import Database
    from .._ledger.postgresql.leases import Lease
    from .._ledger.postgresql.work import BatchView
    from .._reconcile.certificate import Certificate
    from .batch_closing import BatchClosing
    from .chunk_run import ChunkRun, LeaseHolder
    from .worker_session import WorkerSession

OnProgress = Callable[[int, int], object]
"""Gets how many rows of the chunk, or of the batch, are decided, and how many there are."""
StepKind = Literal["send", "look", "close", "follow"]
"""`pay`, `settle`, `close`, and `close` with `follow`."""
_DECIDE: Final[dict[StepKind, Callable[[Any], Next | None]]] = {
    "send": before_pay,
    "look": before_settle,
    "close": before_close,
    "follow": before_close,
}
_BEAT: Final = 3.0
"""Seconds between two reports of progress, also while nothing is recorded."""
_LOOK: Final = 0.25
"""Seconds between two looks whether a step is to stop."""
_NO_LOOK: Final = -math.inf
"""The patience of a run that leaves every row in doubt to `settle`."""
_DRAINED: Final = "an operator drains this process"
_WORK: Final = {"follow": "close"}
_DAY: Final = 86_400.0
_LONGEST: Final = 3_600.0
"""Seconds after which a step is called again at the latest that waits for room in the guard's sums."""
_UNTIL_GONE: Final = 15.0
"""Seconds until a step of a drained process is called again, by which time the process should have ended."""
_HOPELESS: Final = (LedgerMissing, LedgerMismatch, LedgerNewer, LedgerOlder)
_PASSING: Final = (LedgerUnavailable, LedgerFull, OutcomesUnrecorded)


class StopSignal(Protocol):
    """What a step asks whether it is to stop: `asyncio.Event` and `threading.Event` are such."""

    def is_set(self) -> bool:
        """Return whether to stop."""
        ...


@contextmanager
def explained() -> Iterator[None]:
    """Raise StepFailed in place of the errors of a database or a service that is away."""
    try:
        yield
    except RightsMissing as error:
        raise failed(FailureCause.KEY, str(error)) from error
    except (LedgerError, OutcomesUnrecorded) as error:
        raise failed(FailureCause.DATABASE, str(error), effect=error.effect) from error
    except BulkError:
        raise
    except PaymentsError as error:
        raise failure(stop_of(error), why(error)) from error


@attrs.define(eq=False)
class StepCall:
    """One call of `pay`, `settle` or `close`."""

    context: StepContext
    batch_id: str
    chunk: int | None
    kind: StepKind
    stop: StopSignal | None = None
    on_progress: OnProgress | None = None
    has_worked: bool = attrs.field(default=False, init=False)
    """True if it was granted leases."""
    _stopping: Stopping = attrs.field(init=False)
    _view: BatchView | None = attrs.field(default=None, init=False)
    _before: BatchFigures | None = attrs.field(default=None, init=False)
    """What the first look has found, to which progress adds; at the end what the last has."""
    _run: ChunkRun | BatchClosing | None = attrs.field(default=None, init=False)
    _certificate: Certificate | None = attrs.field(default=None, init=False)
    _is_asked: bool = attrs.field(default=False, init=False)
    """True if the caller or the operator ended it, and nothing else did before."""

    def __attrs_post_init__(self) -> None:
        self._stopping = Stopping(self.context.runtime)

    async def to_its_end(self) -> StepEnd:
        """Make the call. A caller that is cancelled waits until rows under way are recorded."""
        running = asyncio.ensure_future(self._ended())
        # of a call that is cancelled nobody asks for the error any more
        running.add_done_callback(lambda task: task.cancelled() or task.exception())
        with self._watched():
            try:
                return await asyncio.shield(running)
            except asyncio.CancelledError:
                self._end("cancelled")
                try:
                    await asyncio.wait([running])
                finally:
                    running.cancel()  # it has ended, or the caller is cancelled twice
                    await asyncio.wait([running])
                raise

    async def _ended(self) -> StepEnd:
        with explained():
            session, reader = await self.context.connected()
            try:
                then = await self._look(session, reader)
                self._before = self._figures
                if then is None:
                    then = await self._work(session, reader)
                if self.kind == "follow" and isinstance(then, Done):
                    then = await self._follow(session, reader)
            except _HOPELESS as error:
                then = Never(str(error))
                if self.kind == "follow" and isinstance(error, LedgerForgotten):
                    then = Done()  # the payouts of a forgotten batch are followed no longer
        self._before, self._run = self._figures, None
        self._report()
        chunks = None if self._view is None else self._view.facts.chunks
        place = (self.batch_id, self.chunk, then, self._figures)
        return StepEnd(*place, self._is_clean, self._certificate, chunks)

    @property
    def _is_clean(self) -> bool | None:
        if self._certificate is not None:
            return self._certificate.is_clean
        return None if self._view is None else self._view.is_clean

    @property
    def _figures(self) -> BatchFigures | None:
        """The figures that the last look has found."""
        view = self._view
        if view is None:
            return None
        return batch_figures_of(view.figures.totals, view.facts.header.extra if self.chunk is None else None)

    async def _look(self, session: WorkerSession, reader: Database) -> Next | None:
        """Look at the batch, and decide what follows; None when there is work. Raises LedgerError."""
        from .._ledger.postgresql.failover import judge
        from .._ledger.postgresql.work import batch_view

        self._view = None
        try:
            view = await batch_view(reader, self.batch_id, self.chunk)
            if not view.is_here:
                await judge(reader, view.facts.batch, session.worker.clock(reader))
                view = await batch_view(reader, self.batch_id, self.chunk)
            self._view = view
        except LedgerDamaged as error:
            await self._pause_unreadable(session, reader, str(error))
            return Held(HoldReason.PAUSED, str(error))
        if self.chunk is not None and not view.chunks:
            return Never(f"batch {self.batch_id} has no chunk {self.chunk}: its last is {view.facts.chunks}")
        following = _DECIDE[self.kind](view)
        if self.kind not in ("send", "look") or isinstance(following, Done | Held):
            return following
        return self._under_another_guard(session, view) or following

    def _under_another_guard(self, session: WorkerSession, view: BatchView) -> Held | None:
        """The hold of rows that are sent under another guard than this process has."""
        held = other_guard(view.facts.header, self.context.client._internal.guard_digest)
        if held is not None:
            session.trouble = held.reason
        return held

    async def _work(self, session: WorkerSession, reader: Database) -> Next:
        """Do the work that there is, and decide what follows. Raises LedgerError and PaymentsError."""
        from .._ledger.postgresql.granting import grant
        from .._ledger.postgresql.leases import Work

        assert self._view is not None  # `_look` was there
        batch = self._view.facts.batch
        if self.context.is_drained:
            return Wait(_UNTIL_GONE, _DRAINED)
        if self._stopping.draining:
            return Now()
        if (why := await session.prover.mismatch(reader, self._view.facts)) is not None:
            return Never(why)
        try:
            async with session.holder() as holder:
                place = (holder.database, session.worker, batch)
                leases = await grant(*place, kind=Work(_WORK.get(self.kind, self.kind)), chunk=self.chunk)
                if leases:
                    session.trouble = None  # it tries again
                    await self._under(holder, leases)
        except (*_PASSING, *_HOPELESS, RightsMissing):
            raise
        except LedgerError as error:
            await self._pause(session, reader, str(error))
        else:
            if not leases:
                return await self._look(session, reader) or Wait(
                    BUSY, "another process has just locked the chunk"
                )
            await self._take(session, reader)
        then, room_in = await self._look(session, reader) or Now(), self.room_in
        if room_in is None or not isinstance(then, Now):
            return then
        return Wait(min(room_in, _LONGEST), self._stopping.reason or "")

    @property
    def room_in(self) -> float | None:
        """Seconds after which the guard's sums may have room, where it ended for want of that."""
        return self._stopping.room_in

    async def _under(self, holder: LeaseHolder, leases: list[Lease]) -> None:
        """Work under leases. Raises LedgerError and OutcomesUnrecorded."""
        run = self._run = self._run_of(holder, leases)
        self.has_worked = True
        self.context.active.append(run)
        try:
            await run.run()
        finally:
            self.context.active.remove(run)
            self.context.decided += run.rows

    def _run_of(self, holder: LeaseHolder, leases: list[Lease]) -> ChunkRun | BatchClosing:
        from .batch_closing import BatchClosing
        from .chunk_run import ChunkRun

        context = self.context
        if self.kind in ("close", "follow"):
            return BatchClosing(holder, leases[0], self._stopping, audits=context.audits)
        pace = context.pace if self.kind == "look" else attrs.evolve(context.pace, patience=_NO_LOOK)
        return ChunkRun(holder, leases, self._stopping, pace, context.on_commit)

    async def _take(self, session: WorkerSession, reader: Database) -> None:
        """Act on how the work ended. Raises StepFailed."""
        run, stopping = self._run, self._stopping
        assert run is not None  # there were leases
        self._certificate = run.certificate
        if run.failure is not None:
            raise failed(FailureCause.DATABASE, str(run.failure)) from run.failure
        if stopping.reason is None or self._is_asked or run.is_lost:
            return
        if stopping.room_in is not None:
            session.trouble = stopping.reason
            return
        if stopping.kind is Stop.RULE:  # every run would end like this one
            await self._pause(session, reader, stopping.reason)
            return
        session.trouble = stopping.reason
        raise failure(stopping.kind, stopping.reason)

    async def _pause(self, session: WorkerSession, reader: Database, reason: str) -> None:
        """Pause a batch that cannot be worked on, for an operator to see to. Raises LedgerError."""
        from .._ledger.postgresql import batches

        assert self._view is not None  # `_look` was there
        with suppress(LedgerMissing):  # discarded meanwhile
            await batches.pause(reader, self._view.facts.batch, session.worker.clock(reader), reason)

    async def _follow(self, session: WorkerSession, reader: Database) -> Next:
        """Read the list once, if payouts of a closed batch are not final. Raises PaymentsError."""
        from .._engine.service import Service
        from .._ledger.postgresql.ledger import PostgresLedger
        from .._reconcile.reconcile import reconcile

        if self._not_final and self._certificate is None:
            async with session.holder() as holder:
                service = Service(holder.client, holder.database.clock.now)
                ledger = await PostgresLedger.open(holder.database, self.batch_id, clock=service.moment)
                self._certificate = await reconcile(ledger, service)
            await self._look(session, reader)
        left = self._not_final
        return Wait(_DAY, f"{left} payouts are not final") if left else Done()

    @property
    def _not_final(self) -> int:
        return 0 if self._figures is None else self._figures.counts["not_final"]

    async def _pause_unreadable(self, session: WorkerSession, reader: Database, reason: str) -> None:
        """Pause a batch whose own facts cannot be read. Raises LedgerError."""
        from .._ledger.postgresql import batches
        from .._ledger.postgresql.work import open_batches

        for batch in await open_batches(reader, session.worker, None, proven=False):
            if batch.batch_id == self.batch_id:
                await batches.pause(reader, batch, session.worker.clock(reader), reason)

    # Stop, and progress

    def _end(self, reason: str) -> None:
        """Begin no further row, because the caller or the operator says so."""
        self._is_asked = self._is_asked or self._stopping.reason is None
        self._stopping.drain(reason)

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Context in which `stop` is asked and progress is reported."""
        runtime, next_beat = self.context.runtime, self.context.runtime.monotonic() + _BEAT
        timer: Timer

        def look() -> None:
            nonlocal timer, next_beat
            timer = runtime.call_later(_LOOK, look, background=True)
            if self.stop is not None and self.stop.is_set():
                self._end("stopped")
            elif self.context.is_drained:
                self._end(_DRAINED)
            if runtime.monotonic() >= next_beat:
                next_beat = runtime.monotonic() + _BEAT
                self._report()

        look()
        try:
            yield
        finally:
            timer.cancel()

    def _report(self) -> None:
        figures = self._before
        if self.on_progress is not None and figures is not None:
            rows = 0 if self._run is None else self._run.rows
            with suppress(Exception):  # a callback cannot break the work
                self.on_progress(figures.done + rows, figures.rows)
