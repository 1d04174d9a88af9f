"""One worker process: it asks for leases, keeps them, and runs the engine over each."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import attrs

from payments_async.bulk._protocol.clocks import Timestamps
from payments_async.bulk._protocol.machines import RENEW_EVERY, own_end
from payments_async.bulk._protocol.row_state import RowState

from ..ledger import Entry
from ..loop import SimulatedLoop, host_context
from ..service import EPOCH, Service
from ..worker import World
from .chunk_run import ChunkRun, Reader, may_send
from .database import Chunk, Database
from .leased import LeasedRows
from .line import Line, Unreachable
from .plan import Fleet
from .watch import Lease, Watch

_LONGEST_REST = 900.0
_LOOK_AGAIN = 1_800.0
_AFTER_SERVICE_FAILED = 30.0


@attrs.frozen(eq=False)
class Site:
    """What all processes of a world share."""

    world: World
    loop: SimulatedLoop
    fleet: Fleet
    service: Service
    database: Database
    watch: Watch
    on_suspect: Callable[[], object]
    seed: object


class ProcessClock:
    """A process's clocks: the time of day is the database's, carried on by one that counts suspension."""

    def __init__(self, loop: SimulatedLoop, session: str) -> None:
        self._loop, self._session = loop, session
        self._started = loop.time()
        self._read = EPOCH, 0.0
        self._server_lags: float | None = None
        """By how much the service's time is behind, as it is carried on by the monotonic clock."""

    @property
    def knows_server(self) -> bool:
        """Whether the service has said what time it is."""
        return self._server_lags is not None

    @knows_server.setter
    def knows_server(self, says: bool) -> None:
        self._server_lags = 0.0 if says else None

    def note(self, seconds: float) -> None:
        """What time the database says it is."""
        self._read = seconds, self._loop.time()

    def suspend(self, seconds: float) -> None:
        """So long a suspension is over, which the monotonic clock has not counted."""
        self._started += seconds
        if self._server_lags is not None:
            self._server_lags += seconds

    def moment(self) -> Timestamps:
        """Now."""
        now, (seconds, read) = self._loop.time(), self._read
        server = None if self._server_lags is None else EPOCH + now - self._server_lags
        return Timestamps(seconds + now - read, now - self._started, self._session, server)


@attrs.frozen
class _Grant:
    lease: Lease
    rows: dict[str, Entry]


class Process:
    """One worker."""

    def __init__(self, site: Site, host: str) -> None:
        self._site, self.host = site, host
        self._chance = random.Random(f"{site.seed}:{host}").random
        self.clock = ProcessClock(site.loop, host)
        self.line = Line(
            site.database, site.fleet, self._chance, self.clock, site.world.note, site.on_suspect
        )
        self._runs: dict[Lease, ChunkRun] = {}
        self._keeps = False
        self.calm = False
        """Whether no answer of the database is slow or lost any more."""

    @property
    def works(self) -> bool:
        """Whether it holds a lease."""
        return bool(self._runs)

    def start(self) -> None:
        """Begin to work."""
        for _ in range(self._site.fleet.slots):
            task = self._site.loop.start(self.host, self._work())
            task.add_done_callback(lambda done: done.result())  # a breach ends the world

    async def _work(self) -> None:
        await self._greet()
        while True:
            grant = await self._ask()
            if isinstance(grant, _Grant):
                await self._run(grant)
            else:
                late = 1.0 if self._chance() < 0.5 else 120.0
                await asyncio.sleep(min(grant, _LONGEST_REST) + late * self._chance())

    async def _greet(self) -> None:
        """Reach the service, and learn its time."""
        site = self._site
        reader = Reader(site.world, site.service, self.clock, f"{site.seed}:{self.host}")
        while await reader.page(None, None, None) is None:  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(_AFTER_SERVICE_FAILED)

    async def _ask(self) -> _Grant | float:
        """A lease, or the seconds until there may be one. A real worker asks each second, mostly in vain."""
        loop, database = self._site.loop, self._site.database
        if self.line.is_connected and not database.grantable():
            return database.next_grant()
        asked = loop.time()
        try:
            return await self.line.run(loop, lambda: self._granted(asked))
        except Unreachable:
            return 1.0

    def _granted(self, asked: float) -> _Grant | float:
        """In the database."""
        site, database = self._site, self._site.database
        free = database.grantable()
        if not free:
            return database.next_grant()
        number, kind = free[int(self._chance() * len(free))]
        chunk = database.state.chunks[number]
        if chunk.lease is not None:
            site.world.note("expired lease granted to another")
        serial, lease_id = site.watch.next_serial(number), new_lease_id(chunk, self._chance)
        lease = Lease(lease_id, number, kind, own_end(asked), serial, database.history)
        database.grant(number, lease_id)
        state = database.state
        rows = {row: attrs.evolve(state.rows[row], known=state.known(row)) for row in chunk.rows}
        return _Grant(lease, rows)

    async def _run(self, grant: _Grant) -> None:
        site, lease = self._site, grant.lease
        ledger = LeasedRows(site.loop, site.database, self.line, lease, site.watch, site.world.note)
        ledger.rows = grant.rows
        seed = f"{site.seed}:{lease.serial}"
        run = ChunkRun(site.world, site.watch, self.host, ledger, site.service, self.clock, seed, site.fleet)
        site.world.note(lease.kind)
        self._runs[lease] = run
        self._keep_on()
        await run.run()
        del self._runs[lease]
        await self._give_back(lease, ledger)
        if run.ended and not lease.is_lost:
            site.world.note("a run was stopped")
            await asyncio.sleep(_AFTER_SERVICE_FAILED)

    async def _give_back(self, lease: Lease, ledger: LeasedRows) -> None:
        was_lost, lease.is_lost = lease.is_lost, True
        doubtful = any(entry.known.state is RowState.IN_DOUBT for entry in ledger.rows.values())
        later = _LOOK_AGAIN if doubtful and lease.kind == "look" else 0.0
        database = self._site.database
        try:
            await self.line.run(self._site.loop, lambda: database.give_back(lease.chunk, lease.id, later))
        except Unreachable:
            self._site.world.note("lease not given back")
        lease.is_lost = was_lost

    # The keeper

    def _keep_on(self) -> None:
        if not self._keeps:
            self._keeps = True
            self._site.loop.call_later(RENEW_EVERY, self._keep, context=host_context(self.host))

    def _keep(self) -> None:
        for lease, run in list(self._runs.items()):
            if may_renew(lease, self._site.loop.time()):
                self._renew(lease)
            else:
                self._site.world.note("lease ended before its renewal")
                lease.is_lost = True
            if lease.is_lost:
                run.stop("lease")
        self._keeps = False
        if self._runs:
            self._keep_on()

    def _renew(self, lease: Lease) -> None:
        """One renewal, asked for a moment ago."""
        database, draw = self._site.database, self._chance()
        asked = self._site.loop.time() - (2.5 if draw < 0.05 and not self.calm else 0.02)
        try:
            is_renewed = self.line.reach(lambda: database.renew(lease.chunk, lease.id))
        except Unreachable:
            return
        if not is_renewed:
            self._site.world.note("lease lost")
            lease.is_lost = True
        elif draw < 0.95 or self.calm:  # else the answer was lost
            lease.ends = own_end(asked)


def may_renew(lease: Lease, boottime: float) -> bool:
    """Not once it has ended: a request that waits since before would leave under an intent of long ago."""
    return may_send(lease, boottime)


def new_lease_id(_chunk: Chunk, chance: Callable[[], float]) -> bytes:
    """A random id, so that none is given twice, whatever a ledger has lost."""
    return b"%x%x" % (int(chance() * 2**53), int(chance() * 2**53))
