"""One run over a ledger: sends rows of earlier runs and new ones, then resolves those in doubt."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing, suppress
from typing import Final

import attrs

from ..._runtime import Timer
from ...errors import PaymentsError
from .._activity import Waits
from .._ledger.ledger import Ledger
from .._protocol.records import Claim
from .._protocol.responses import FATAL, stop_of, why
from .._protocol.stop_rules import StopRules
from ..ledger_errors import NO_INTENT, LedgerError
from .claims import RowClaims
from .doubt_queue import BackOff
from .recorder import Recorder
from .resolver import Resolver
from .sender import Sender
from .service import Service
from .stopping import Stopping
from .task_feed import Claiming, run_workers

_AHEAD: Final = 2
"""Intents on the disk for each row that can be sent at a time."""


@attrs.frozen(kw_only=True)
class Pace:
    """The speed and the time limits of a run."""

    concurrency: int
    """Rows sent at a time."""
    rules: StopRules
    patience: float
    """Seconds, once all else is done, in which rows in doubt are posted again and searched for; and in which
    a guard has to have room for the next row."""
    drain: float
    """Seconds in which rows being sent may finish after a stop."""


class Engine:
    """Runs a batch once."""

    def __init__(
        self,
        ledger: Ledger,
        service: Service,
        pace: Pace,
        stopping: Stopping,
        on_commit: Callable[[], object],
    ) -> None:
        self._ledger, self._service, self._pace, self._stopping = ledger, service, pace, stopping
        self._recorder = Recorder(ledger, service.runtime)
        self._resolver = Resolver(ledger, service, self._recorder, stopping)
        self._backoff = BackOff(service.runtime, self._resolver.add)
        self._sender = Sender(ledger, service, self._recorder, stopping, self._resolver, self._backoff)
        self._claims = RowClaims(
            *(ledger, service, self._recorder, stopping, self._resolver, self._backoff),
            rules=pace.rules,
            size=_AHEAD * pace.concurrency,
            patience=pace.patience,
        )
        self._recorder.on_commit = on_commit
        self._recorder.on_failure = lambda error: stopping.halt(str(error))
        self._working: asyncio.Task[None] | None = None
        self._cutting: Timer | None = None
        self._is_cut = False
        self._has_sent_all = False

    @property
    def waits(self) -> Waits:
        """What it does now, and the rows in doubt that wait."""
        room = self._claims.waits_for
        waits = Waits("paying", len(self._backoff), self._resolver.waiting, self._backoff.due, room)
        if room is None and not (self._has_sent_all and waits.why):
            return waits
        return attrs.evolve(waits, doing="reading" if self._resolver.is_reading else "waiting")

    async def run(self) -> None:
        """Run until nothing is left to do, or the run is stopped; `stopping.reason` then says why.

        Raises OutcomesUnrecorded or another LedgerError when the ledger fails.
        """
        self._stopping.on_drain = self._begin_drain
        try:
            await self.check_access()
            async with aclosing(self._claims):
                await self._work(self._claims.next)
                await self._resolve()
        finally:
            if self._cutting is not None:
                self._cutting.cancel()
            await self._recorder.close()
        with suppress(LedgerError):  # figures decide nothing
            await self._ledger.save_figures(self._service.now())

    async def check_access(self) -> None:
        try:
            await self._service.check_access()
        except PaymentsError as error:
            self._stopping.halt(why(error), stop_of(error))

    def _begin_drain(self) -> None:
        self._cutting = self._service.runtime.call_later(self._pace.drain, self._cut)

    def _cut(self) -> None:
        """End the drain: rows being sent stay in flight, for the next run to resolve."""
        self._is_cut = True
        self._stopping.halt("the time to drain was over")
        if self._working is not None:
            self._working.cancel()

    async def _work(self, claim: Claiming) -> None:
        if self._stopping.halted:
            return
        self._working = asyncio.ensure_future(run_workers(claim, self._sender.send, self._pace.concurrency))
        try:
            await self._working
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not self._is_cut or (task is not None and task.cancelling()):
                raise

    # Rows in doubt

    async def _resolve(self) -> None:
        """Post rows again and search the list, whenever rows are due, until none waits or time is up."""
        runtime, self._has_sent_all = self._service.runtime, True
        until = self._sender.until = runtime.monotonic() + self._pace.patience
        while (due := self._due) is not None and not self._stopping.draining:
            if due <= until:
                await self._stopping.rest(due - runtime.monotonic(), deep=False)
                if self._is_now(self._backoff.due):
                    await self._work(self._claims.waiting)
                if self._is_now(self._resolver.due):
                    await self._look()
            elif self._backoff:
                self._backoff.end()  # there is only time to search the list
            else:
                await self._resolver.surface()
                return

    @property
    def _due(self) -> float | None:
        dues = [due for due in (self._backoff.due, self._resolver.due) if due is not None]
        return min(dues, default=None)

    def _is_now(self, due: float | None) -> bool:
        is_due = due is not None and due <= self._service.runtime.monotonic()
        return is_due and not self._stopping.draining

    async def _look(self) -> None:
        """Search the list once for the rows that are due, and send the next requests that follow."""
        try:
            looked = await self._resolver.look()
        except FATAL as error:
            self._stopping.halt(why(error), stop_of(error))
            return
        except NO_INTENT as error:
            self._stopping.drain(str(error))
            return
        async with aclosing(looked) as claims:

            async def claim() -> Claim | None:
                try:
                    return None if self._stopping.draining else await anext(claims, None)
                except NO_INTENT as error:
                    self._stopping.drain(str(error))
                    return None

            await self._work(claim)
