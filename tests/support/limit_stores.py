"""A limit store in memory, on simulated time: the pure rule, a network that takes a while, and outages."""

from __future__ import annotations

import asyncio
import math
from typing import Any, Self

import attrs
import pytest

from payments_async import AsyncPayments
from payments_async._rate_limit import store_client
from payments_async._rate_limit.store import AHEAD as AHEAD
from payments_async._rate_limit.store import AHEAD_IN_BULK as AHEAD_IN_BULK
from payments_async._rate_limit.store import VALID as VALID
from payments_async._rate_limit.store import BlockRequest, Reservation, StoreUnavailable
from payments_async._rate_limit.store import BlockStore as BlockStore
from payments_async._rate_limit.store import Terms as Terms
from payments_async._rate_limit.store_client import LimitStoreClient
from payments_async._rate_limit.store_client import open_store as open_store
from payments_async._runtime import Runtime
from tests.support.canary import CANARY_KEY
from tests.support.simulated import SimulatedRuntime

ADDRESS = "redis://127.0.0.1:9/0"


@attrs.define
class Row:
    """A row, and what the statements of the real stores do with it."""

    arrival: float

    def reserve(self, request: BlockRequest, now: float) -> Reservation:
        lead = max(self.arrival - now if self.arrival <= now + 60.0 else 0.0, request.pause)
        room = math.floor((request.saved + request.ahead - lead) / request.step)
        granted = max(min(room, request.wanted), 0)
        self.arrival = now + min(lead + granted * request.step, 60.0)
        return Reservation.of(request, granted, lead)


class StoreServer:
    """What the processes of a fleet share. `wall` is its clock, ahead of everybody's by half an hour."""

    def __init__(self, runtime: Runtime, *, delay: float = 0.001) -> None:
        self.runtime = runtime
        self.delay = delay
        """Seconds for each direction."""
        self.rows: dict[str, Row] = {}
        self.asked: list[tuple[str, BlockRequest]] = []
        self.answers: list[Reservation] = []
        self.down: str | None = None
        """`cut`: nothing passes; `refused`: no connection; None: it works."""
        self.fault: Exception | None = None
        """Raised in place of the next answers."""
        self.open = 0
        """Connections that are open."""
        self.tried = 0
        """Messages that were sent to it."""
        self.fails_to_close = False

    @property
    def wall(self) -> float:
        return self.runtime.monotonic() + 1_800.0

    def empty(self) -> None:
        self.rows.clear()


class MemoryStore:
    def __init__(self, server: StoreServer) -> None:
        self._server = server
        self._is_open = False

    async def reserve(self, row: str, request: BlockRequest) -> Reservation:
        server = self._server
        await self._pass()
        server.asked.append((row, request))
        kept = server.rows.setdefault(row, Row(server.wall + request.saved))
        server.answers.append(kept.reserve(request, server.wall))
        answer = server.answers[-1]
        await server.runtime.sleep(server.delay)
        return answer

    async def aclose(self) -> None:
        await self._server.runtime.sleep(self._server.delay)
        self._server.open -= self._is_open
        self._is_open = False
        if self._server.fails_to_close:
            raise StoreUnavailable("the limit store at 127.0.0.1:9 is gone")

    async def _pass(self) -> None:
        server = self._server
        if not self._is_open:
            self._is_open = True
            server.open += 1
        server.tried += 1
        await server.runtime.sleep(server.delay if server.down != "cut" else 1.0)
        if server.down is not None:
            raise StoreUnavailable(f"the limit store at 127.0.0.1:9 cannot be reached ({server.down})")
        if server.fault is not None:
            raise server.fault


def share_on_one_loop(patch: pytest.MonkeyPatch, server: StoreServer) -> set[asyncio.Task[None]]:
    """Have store clients run as tasks of the running loop, and use this store. Returns the tasks that run."""
    tasks: set[asyncio.Task[None]] = set()

    def start(client: LimitStoreClient) -> None:
        task = asyncio.get_running_loop().create_task(client.serve())
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    patch.setattr(store_client, "start", start)
    patch.setattr(store_client, "open_store", lambda address, **_: MemoryStore(server))
    return tasks


class Fleet:
    """Clients of one key, each as in a process of its own, on one simulated loop."""

    def __init__(
        self, transport: Any, *, processes: int = 1, delay: float = 0.001, seed: int = 1, **options: Any
    ) -> None:
        self.runtime = SimulatedRuntime(seed)
        self.server = StoreServer(self.runtime, delay=delay)
        self.patch = pytest.MonkeyPatch()
        self._options = {"limit_store": ADDRESS, "runtime": self.runtime, "transport": transport, **options}
        self.clients = [self.client() for _ in range(processes)]

    def client(self, **options: Any) -> AsyncPayments:
        return AsyncPayments(CANARY_KEY, base_url="http://127.0.0.1:9/v1", **{**self._options, **options})

    async def __aenter__(self) -> Self:
        self.tasks = share_on_one_loop(self.patch, self.server)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close all; their threads have ended then, and closed its connections."""
        for client in self.clients:
            await client.aclose()
        await self.runtime.sleep(2.0)
        self.patch.undo()
        assert self.server.open == 0
