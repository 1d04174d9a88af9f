"""The model engine over one leased chunk: it stops when the lease does."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from payments_async.bulk._protocol import machines
from payments_async.bulk._protocol.attempts import AttemptReply
from payments_async.bulk._protocol.row_state import RowState

from ..ledger import Entry
from ..loop import settle
from ..plan import HOME
from ..service import Request, Service, Waiter
from ..worker import Clock, Worker, World
from .leased import LeasedRows
from .plan import Fleet
from .watch import Lease, Watch

_TIMEOUT = 30.0
_OPEN = (RowState.IN_FLIGHT, RowState.IN_DOUBT)


class Reader(Worker):
    """Only reads the list."""

    def __init__(self, world: World, service: Service, clock: Clock, seed: object) -> None:
        super().__init__(world, "reader", None, service, HOME, clock, 1, seed)  # type: ignore[arg-type] # no rows


class ChunkRun(Worker):
    """One run of it."""

    def __init__(
        self,
        world: World,
        watch: Watch,
        host: str,
        ledger: LeasedRows,
        service: Service,
        clock: Clock,
        seed: object,
        fleet: Fleet,
    ) -> None:
        super().__init__(world, host, ledger, service, HOME, clock, 1, seed)  # type: ignore[arg-type] # as one
        self._watch, self._rows, self._fleet = watch, ledger, fleet
        self.is_patient = ledger.lease.kind == "look"

    async def run(self) -> None:
        """Until each row is decided or in doubt, or somebody stops it."""
        rows = self._rows.rows
        doubtful = [row for row, entry in rows.items() if entry.known.state in _OPEN]
        fresh = [row for row, entry in rows.items() if entry.known.state is RowState.NEW]
        queue = deque(doubtful + fresh)
        await asyncio.gather(*(self._lane(queue) for _ in range(self.world.plan.concurrency)))
        await self._rows.flush()

    def post(self, request: Request, entry: Entry, depart: Callable[[], None], seconds: float) -> Waiter:
        """Send it once the limiter and a connection allow that, if the lease still does then."""
        waiter: Waiter = self.world.loop.create_future()
        delay = self._queueing()
        if delay >= seconds:
            self.world.loop.call_later(seconds, settle, waiter, AttemptReply(verdict="not_sent"))
        elif delay:
            self.world.note("waited before the first byte")
            self.world.loop.call_later(delay, self._begin, request, entry, depart, waiter)
        else:
            self._begin(request, entry, depart, waiter)
        return waiter

    def _queueing(self) -> float:
        is_long = not self.service.healthy and self.random() < self._fleet.queueing
        return 40.0 * self.random() ** 2 if is_long else 0.0

    def _leave(self, request: Request, waiter: Waiter) -> None:
        if self.service.healthy or self.random() > self._fleet.abandons:
            super()._leave(request, waiter)
            return
        self.world.note("abandoned request carried out later")
        self.service.later(30 + 750 * self.random() ** 0.5, self.service.arrive, request, waiter)
        self.world.loop.call_later(_TIMEOUT, settle, waiter, AttemptReply())

    def _begin(self, request: Request, entry: Entry, depart: Callable[[], None], waiter: Waiter) -> None:
        if may_send(self._rows.lease, self.world.loop.time()):
            self._watch.departing(self._rows.lease, entry)
            depart()
            self._leave(request, waiter)
        else:
            settle(waiter, AttemptReply(verdict="not_sent", withheld=True))


def may_send(lease: Lease, boottime: float) -> bool:
    """The last check, right before the first byte."""
    return not lease.is_lost and machines.may_send(lease.ends, boottime)
