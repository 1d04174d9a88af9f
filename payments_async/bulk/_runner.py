"""Runs the work on an open batch, one piece at a time: pay, follow, reconcile, retry."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING

import attrs

from ._activity import Activity, Doing, repeated
from ._engine.stopping import Stopping
from ._reconcile import same_account
from ._report import BatchReport, report_of
from ._session import BatchSession, OnProgress
from .errors import BulkError
from .ledger_errors import LedgerError

if TYPE_CHECKING:
    from .._polling.schedule import PollSchedule
    from ._engine.engine import Engine, Pace
    from ._reconcile.certificate import Certificate
    from ._reconcile.retry_failed import RetryReport
    from ._report import Snapshot
    from .workers._worker import WorkerRun


class BatchRunner:
    """Runs the work on one batch."""

    def __init__(self, session: BatchSession) -> None:
        self._session = session
        self._stopping: Stopping | None = None
        self._schedule: PollSchedule | None = None
        self._engine: Engine | WorkerRun | None = None
        self._doing: Doing = "paying"

    @property
    def under_way(self) -> bool:
        """True if a piece of work is running."""
        return self._stopping is not None

    def stop(self, reason: str) -> None:
        """End the running work early."""
        if self._stopping is not None:
            self._stopping.drain(reason)

    def report(self, ended: Stopping | None = None, *, followed: bool = False) -> BatchReport:
        """Make the batch's report. A follower that was not stopped has seen all that it waited for."""
        ledger = self._session.ledger
        if ended is None or ended.reason is None:
            found = report_of(ledger.header, ledger.totals, self._hold)
            return attrs.evolve(found, activity=self._session.activity())
        reason, kind = ended.reason, ended.kind
        return report_of(ledger.header, ledger.totals, reason, stop=kind, followed=followed)

    @property
    def _hold(self) -> str | None:
        """Why no process may send a row of the batch now; None when one may."""
        return None

    async def refreshed(self) -> BatchReport:
        """Read the figures anew, and make the batch's report."""
        await self._session.ledger.refresh()
        return self.report()

    async def snapshot(self) -> Snapshot:
        """Read what a reader shows."""
        from ._report import Snapshot

        ledger = self._session.ledger
        await ledger.refresh()
        at, header, report = ledger.now(), ledger.header, self.report()
        return Snapshot(at=at, header=header, report=report, series=await ledger.series())

    async def run(self, pace: Pace, wait_final: float | None, on_progress: OnProgress | None) -> BatchReport:
        """Pay, then follow for `wait_final` seconds unless the run was stopped."""
        session = self._session
        async with self._under_way("paying", on_progress) as stopping:
            await same_account.require_place(session.ledger, session.service)
            await self.note_guard()
            await self._pay(pace, stopping, self._on_commit(on_progress))
            stopping.on_drain = bool  # by now the engine has nothing left to drain
            session.ledger.require_there()
            if wait_final is not None and not stopping.draining:
                self._engine, self._doing = None, "following"
                session.report(on_progress)
                await self._follow(wait_final, stopping, on_progress)
        return self.report(stopping, followed=wait_final is not None)

    async def _pay(self, pace: Pace, stopping: Stopping, on_commit: Callable[[], object]) -> None:
        from ._engine.engine import Engine

        session = self._session
        self._engine = engine = Engine(session.ledger, session.service, pace, stopping, on_commit)
        await engine.run()

    async def note_guard(self) -> None:
        """Record the client's guard as the one that the batch is run under."""
        client = self._session.client
        assert client is not None  # without one nothing is loaded or paid
        await self._session.ledger.note_guard(client._internal.guard_digest)

    async def follow(self, seconds: float, on_progress: OnProgress | None) -> BatchReport:
        """Copy the payouts' statuses to the ledger for so many seconds."""
        session = self._session
        async with self._under_way("following", on_progress) as stopping:
            await same_account.require_place(session.ledger, session.service)
            await self._follow(seconds, stopping, on_progress)
        return self.report(stopping, followed=True)

    async def _follow(self, seconds: float, stopping: Stopping, on_progress: OnProgress | None) -> None:
        from .._polling.schedule import PollSchedule
        from ._reconcile.follow import Follower

        session = self._session
        schedule = self._schedule = self._schedule or PollSchedule()
        on_commit = self._on_commit(on_progress)
        follower = Follower(session.ledger, session.service, stopping, schedule, on_commit)
        await follower.follow(seconds)

    async def reconcile(self, on_progress: OnProgress | None) -> Certificate:
        """Update the ledger from the list, and compare the two."""
        from ._reconcile.reconcile import reconcile

        session = self._session
        async with self._under_way("reconciling", on_progress):
            await same_account.require_place(session.ledger, session.service)
            return await reconcile(session.ledger, session.service, self._on_commit(on_progress))

    async def retry_failed(
        self, rows: Collection[int] | None, *, rejected: bool, dry_run: bool
    ) -> RetryReport:
        """Make rows new whose payouts have failed, or those that were rejected."""
        from ._reconcile.retry_failed import Retrier, retry_rejected

        session = self._session
        async with self._under_way("reconciling"):
            await same_account.require_place(session.ledger, session.service)
            if rejected:
                return await retry_rejected(session.ledger, rows, self._on_commit(None), dry_run=dry_run)
            retrier = Retrier(session.ledger, session.service, rows, dry_run=dry_run)
            return await retrier.retry(self._on_commit(None))

    def _on_commit(self, on_progress: OnProgress | None) -> Callable[[], object]:
        def committed() -> None:
            self._session.committed(on_progress)
            gone = self._session.ledger.gone
            if gone and self._stopping is not None:
                self._stopping.drain(f"the ledger is lost: {gone}")

        return committed

    @contextmanager
    def _reported(self, on_progress: OnProgress | None) -> Iterator[None]:
        """Show the present activity in the status at once, and report it every five seconds."""
        session, before = self._session, self._session.activity
        listed = session.service.listed

        def activity() -> Activity:
            return self._activity(session.service.listed - listed)

        session.activity = activity
        try:
            session.write_status(running=True)
            with repeated(session.service.runtime, lambda: session.report(on_progress)):
                yield
        finally:
            session.activity = before

    def _activity(self, listed: int) -> Activity:
        engine, doing, until = (
            self._engine,
            self._doing,
            None if self._stopping is None else self._stopping.rests_until,
        )
        if engine is None or doing != "paying":
            return Activity(doing=doing, next_look=self._left(until), listed=listed)
        waits = engine.waits
        return Activity(
            doing=waits.doing,
            waiting=waits.again + waits.looked_for,
            why=waits.why,
            next_look=self._left(waits.next_post if until is None else until),
            listed=listed,
        )

    def _left(self, until: float | None) -> float | None:
        now = self._session.service.runtime.monotonic()
        return None if until is None else max(until - now, 0.0)

    @asynccontextmanager
    async def _under_way(
        self, doing: Doing, on_progress: OnProgress | None = None
    ) -> AsyncIterator[Stopping]:
        """Context of the one piece of work that may run.

        Raises BulkError while another is running, and LedgerGone when the ledger was lost meanwhile.
        """
        if self._stopping is not None:
            raise BulkError(
                "this batch is being run already, or worked on otherwise: wait for that, or stop it"
            )
        session, runtime = self._session, self._session.service.runtime
        self._stopping, self._doing = Stopping(runtime), doing
        try:
            session.share_limits()
            await session.ledger.refresh()
            with self._reported(on_progress):
                yield self._stopping
            session.ledger.require_there()
        finally:
            self._stopping = self._engine = None
            session.write_status(running=False)
            with suppress(LedgerError):  # why the work ended matters more
                await session.ledger.refresh()
