"""Four uneven processes under full load share one limit: no minute holds more, and how much of it is used.

    python -m tests.campaigns.shared_limit simulated             in simulated time
    python -m tests.campaigns.shared_limit postgresql            real processes and a real store: 200 s
    python -m tests.campaigns.shared_limit valkey 6000

They have 128, 64, 16 and 8 callers, who create payouts without pause. The service counts each request at any
moment between its sending and its answer. After a minute the busiest process stands still for half a minute,
with a block in hand. Later nobody reaches the store for half a minute; when it is back it is empty.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, Literal

import attrs

from payments_async import AsyncPayments, RateLimits
from payments_async._http.types import HTTPRequest, HTTPResponse
from payments_async._rate_limit import store_client
from payments_async._rate_limit.store import BlockRequest, Reservation
from tests.campaigns.pacing import ARGUMENTS, Service, fullest_sliding
from tests.support.counting_service import CountingService
from tests.support.limit_stores import ADDRESS, Fleet, MemoryStore, StoreServer
from tests.support.sending_process import Sending, SendingProcess
from tests.support.servers import CutProxy, postgres_server, valkey_server
from tests.support.simulated import run_simulated

Outage = Literal["cut", "refused"]
CALLERS: Final = (128, 64, 16, 8)
"""Of each process."""
STOPS, GOES_ON = 60.0, 90.0
LOST, BACK = 110.0, 140.0
END: Final = 200.0
SPANS: Final = {
    "before": (30.0, STOPS),
    "stopped": (STOPS, GOES_ON),
    "lost": (LOST, BACK),
    "after": (BACK, END),
}
"""In which the share of the limit that is used is measured."""


@attrs.frozen
class Outcome:
    limit: int
    fullest: int
    """The most that any sixty seconds held, and so any minute of a clock."""
    used: dict[str, float]
    """The share of the limit, by span."""

    @property
    def breaches(self) -> list[str]:
        """What must not be. The busiest process stopped: the others may not have enough callers."""
        found = [f"{self.fullest - self.limit} refused"] if self.fullest > self.limit else []
        few = [f"only {used:.1%} {span}" for span, used in self.used.items() if used < 0.85]
        return found + few


def outcome_of(moments: Sequence[float], limit: int) -> Outcome:
    """Judge the moments, in order, at which requests were counted."""

    def used(begin: float, end: float) -> float:
        return sum(begin <= moment < end for moment in moments) / (limit * (end - begin) / 60.0)

    return Outcome(limit, fullest_sliding(moments), {name: used(*span) for name, span in SPANS.items()})


# In simulated time


class Stopped:
    """What stands still with a process: what it was about to send or to hear waits."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.runs = asyncio.Event()
        self.runs.set()

    async def send(self, request: HTTPRequest) -> HTTPResponse:
        await self.runs.wait()
        answer = await self._service.send(request)
        await self.runs.wait()
        return answer

    async def aclose(self) -> None:
        """Nothing is open."""


class StoppedStore(MemoryStore):
    """The connection of such a process."""

    def __init__(self, server: StoreServer, runs: asyncio.Event) -> None:
        super().__init__(server)
        self._runs = runs

    async def reserve(self, row: str, request: BlockRequest) -> Reservation:
        await self._runs.wait()
        answer = await super().reserve(row, request)
        await self._runs.wait()
        return answer


async def call_without_pause(client: AsyncPayments, callers: int, runs: asyncio.Event) -> None:
    async def call() -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(END):
                while True:
                    await client.payouts.create(**ARGUMENTS)
                    await runs.wait()

    async with asyncio.TaskGroup() as group:
        for _ in range(callers):
            group.create_task(call())


def simulate(limit: int, outage: Outage, seed: int, callers: Sequence[int] = CALLERS) -> Outcome:
    service = Service(seed)

    async def disturb(world: Fleet, busiest: asyncio.Event) -> None:
        await world.runtime.sleep(STOPS)
        busiest.clear()
        await world.runtime.sleep(GOES_ON - STOPS)
        busiest.set()
        await world.runtime.sleep(LOST - GOES_ON)
        world.server.down = outage
        await world.runtime.sleep(BACK - LOST)
        world.server.down = None
        world.server.empty()

    async def main() -> None:
        processes = {f"{ADDRESS}{number}": Stopped(service) for number in range(len(callers))}
        options: dict[str, Any] = {"limits": RateLimits(writes=limit), "expected_workers": len(callers)}
        async with Fleet(service, processes=0, seed=seed, **options) as world:
            world.patch.setattr(
                store_client,
                "open_store",
                lambda address, **_: StoppedStore(world.server, processes[address].runs),
            )
            for address, transport in processes.items():
                world.clients.append(world.client(limit_store=address, transport=transport))
            runs = [process.runs for process in processes.values()]
            await asyncio.gather(
                disturb(world, runs[0]), *map(call_without_pause, world.clients, callers, runs)
            )

    run_simulated(main())
    return outcome_of(sorted(service.counted), limit)


# With real processes


@contextlib.contextmanager
def store_server(kind: str) -> Iterator[tuple[Any, str, CutProxy]]:
    """A server of one kind, its address through a proxy, and the proxy."""
    with contextlib.ExitStack() as stack:
        server: Any = stack.enter_context(postgres_server() if kind == "postgresql" else valkey_server())
        proxy = stack.enter_context(CutProxy(server.address))
        database = [server.make_database()] if kind == "postgresql" else []
        yield server, server.url(*database, port=proxy.port), proxy


def on_sockets(kind: str, limit: int) -> Outcome:
    with CountingService() as service, store_server(kind) as (server, url, proxy):
        processes = [
            SendingProcess(Sending(service.base_url, url, limit, tasks, len(CALLERS))) for tasks in CALLERS
        ]
        for process in processes:
            process.wait()
        began = time.monotonic()

        def wait_until(moment: float) -> None:
            time.sleep(max(began + moment - time.monotonic(), 0.0))

        wait_until(STOPS)
        processes[0].stop()
        wait_until(GOES_ON)
        processes[0].go_on()
        wait_until(LOST)
        proxy.cut()
        server.stop()
        server.start()
        wait_until(BACK)
        proxy.heal()
        wait_until(END)
        moments = sorted(service.counted())
        for process in processes:
            process.finish()
        for process in processes:
            print(process.result())
    return outcome_of([moment - began for moment in moments], limit)


def main(store: str, limit: str = "60000", seed: str = "1") -> int:
    logging.getLogger("payments").setLevel(logging.ERROR)
    if store == "simulated":
        found = simulate(int(limit), "cut", int(seed))
    else:
        found = on_sockets(store, int(limit))
    print(found, found.breaches)
    return 1 if found.breaches else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
