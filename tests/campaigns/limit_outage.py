"""A web fleet under full load whose limit store is gone for thirty seconds, and back: nothing is refused.

    python -m tests.campaigns.limit_outage                 simulated, each kind of outage, at 60,000 a minute
    python -m tests.campaigns.limit_outage --real          real processes, a real Valkey, in three minutes
    python -m tests.campaigns.limit_outage --real --limit 6000

Each process has 256 callers who create payouts without pause, and knows how many processes there are. An
answer takes 20 to 200 ms and more (`pacing`). After seventy seconds the store can not be reached, and after a
hundred it can. It is cut off (nothing passes, nothing is refused), refuses connections, or restarts empty.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from typing import Final

import attrs

from payments_async import AsyncPayments, RateLimits
from tests.campaigns.pacing import ARGUMENTS, Service, fullest_aligned, fullest_sliding
from tests.support.limit_stores import Fleet
from tests.support.motion import payout_answer
from tests.support.servers import CutProxy, valkey_server
from tests.support.simulated import run_simulated

KINDS: Final = ("cut", "refused", "emptied")
PROCESSES: Final = 4
GONE: Final = 70.0
BACK: Final = 100.0
END: Final = 170.0
PLACE: Final = {"api_key": "sk_sandbox_campaign"}


@attrs.frozen
class Outcome:
    """What the service counted."""

    limit: int
    fullest: int
    """The most that any minute held, sliding or aligned."""
    before: float
    """Part of the limit that was used in the last half of a minute before the outage."""
    during: float
    after: float
    least: float = 1.0
    """Requests during the outage of the process with the fewest, as a part of the average."""

    @property
    def breaches(self) -> list[str]:
        """What must not be."""
        found = [f"{self.fullest - self.limit} refused"] if self.fullest > self.limit else []
        for name in ("before", "during", "after"):
            if getattr(self, name) < 0.90:
                found.append(f"only {getattr(self, name):.1%} {name}")
        return found

    def __str__(self) -> str:
        return (
            f"fullest minute {self.fullest} of {self.limit}; used {self.before:.1%} before, "
            f"{self.during:.1%} during (least process {self.least:.0%} of the average), "
            f"{self.after:.1%} after; {', '.join(self.breaches) or 'no breach'}"
        )


def outcome_of(moments: Sequence[float], limit: int) -> Outcome:
    """Judge the moments, in order, at which requests were counted."""

    def used(begin: float, end: float) -> float:
        return sum(begin <= moment < end for moment in moments) / (limit * (end - begin) / 60.0)

    fullest = max(fullest_sliding(moments), fullest_aligned(moments))
    return Outcome(limit, fullest, used(GONE - 30.0, GONE), used(GONE, BACK), used(BACK, END))


async def call_without_pause(client: AsyncPayments, seconds: float, callers: int) -> None:
    """So many callers, for so long."""

    async def call() -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while True:
                    await client.payouts.create(**ARGUMENTS)

    async with asyncio.TaskGroup() as group:
        for _ in range(callers):
            group.create_task(call())


def simulate(limit: int, kind: str, seed: int, callers: int = 256) -> Outcome:
    """One outage in simulated time."""
    service = Service(seed)

    async def outage(world: Fleet) -> None:
        await world.runtime.sleep(GONE)
        world.server.down = "refused" if kind == "emptied" else kind
        await world.runtime.sleep(BACK - GONE)
        world.server.down = None
        if kind == "emptied":
            world.server.empty()

    async def main() -> None:
        limits = RateLimits(writes=limit)
        async with Fleet(
            service, processes=PROCESSES, seed=seed, limits=limits, expected_workers=PROCESSES
        ) as world:
            await asyncio.gather(
                outage(world), *(call_without_pause(client, END, callers) for client in world.clients)
            )

    run_simulated(main())
    return outcome_of(sorted(service.counted), limit)


class SocketService:
    """A service over sockets that answers every request alike, and counts it when it has arrived."""

    def __init__(self, seed: int) -> None:
        self._answers = Service(seed)
        body = payout_answer(reference=None).body
        head = (
            f"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self._answer = head.encode() + body
        self.came: list[tuple[float, bytes]] = []
        """When, and from which process."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        with suppress(OSError, asyncio.IncompleteReadError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
                await reader.readexactly(int(length))
                name = head.lower().partition(b"process/")[2].split(maxsplit=1)[0]
                self.came.append((time.monotonic(), name))
                await asyncio.sleep(self._answers.latency())
                writer.write(self._answer)
        writer.transport.abort()


async def on_sockets(limit: int, seed: int) -> Outcome:
    """One outage of a real store, in real time, of processes of their own."""
    service = SocketService(seed)
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(
            await asyncio.start_server(service.serve, "127.0.0.1", 0, backlog=2_000)
        )
        valkey = stack.enter_context(valkey_server())
        proxy = stack.enter_context(CutProxy(valkey.address))
        port = server.sockets[0].getsockname()[1]
        given = [f"http://127.0.0.1:{port}/v1", valkey.url(port=proxy.port), str(limit)]
        command = [sys.executable, "-m", "tests.campaigns.limit_outage", "--process", *given]
        processes = [
            await asyncio.create_subprocess_exec(*command, str(number)) for number in range(PROCESSES)
        ]
        while not service.came:  # noqa: ASYNC110 - real time
            await asyncio.sleep(0.01)
        began = service.came[0][0]
        await asyncio.sleep(GONE)
        proxy.cut()
        await asyncio.sleep(BACK - GONE)
        proxy.heal()
        ends = await asyncio.gather(*(process.wait() for process in processes))
        assert not any(ends), f"processes ended with {ends}"
    sent = Counter(name for moment, name in service.came if GONE <= moment - began < BACK)
    least = min(sent[b"%d" % number] for number in range(PROCESSES)) * PROCESSES / max(sent.total(), 1)
    found = outcome_of([moment - began for moment, _ in service.came], limit)
    return attrs.evolve(found, least=least)


async def process(base_url: str, store: str, limit: str, number: str) -> None:
    """One process of the fleet."""
    async with AsyncPayments(
        **PLACE,
        base_url=base_url,
        limits=RateLimits(writes=int(limit)),
        limit_store=store,
        expected_workers=PROCESSES,
        app_info=f"process/{number}",
    ) as client:
        await call_without_pause(client, END + 1.0, 256)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.limit_outage")
    parser.add_argument("--limit", type=int, default=60_000, help="requests a minute")
    parser.add_argument("--seeds", type=int, default=1, help="simulated runs of each kind")
    parser.add_argument("--real", action="store_true", help="a real store, in real time: three minutes")
    parser.add_argument("--process", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    logging.getLogger("payments").setLevel(logging.ERROR)
    if options.process:
        asyncio.run(process(*options.process))
        return
    breaches = 0
    runs = (
        [("real", 1)] if options.real else [(kind, seed) for kind in KINDS for seed in range(options.seeds)]
    )
    for kind, seed in runs:
        found = (
            asyncio.run(on_sockets(options.limit, seed))
            if options.real
            else simulate(options.limit, kind, seed)
        )
        breaches += len(found.breaches)
        print(f"{kind}, seed {seed}: {found}", flush=True)
    raise SystemExit(1 if breaches else 0)


if __name__ == "__main__":
    main()
