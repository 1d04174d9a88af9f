"""A web fleet under full load whose limit store is gone for thirty seconds, and back: nothing is refused.

    python -m tests.campaigns.limit_outage                 simulated, each kind of outage, at 60,000 a minute
    python -m tests.campaigns.limit_outage --real          real processes, a real Valkey, in three minutes
    python -m tests.campaigns.limit_outage --real --limit 6000

Each process has 256 callers who create payouts without pause, and knows how many processes there are. An
answer takes 20 to 200 ms and more. After seventy seconds the store can not be reached, and after a
hundred it can. It is cut off (nothing passes, nothing is refused), refuses connections, or restarts empty.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import attrs

from payments_async import AsyncPayments, RateLimits
from tests.campaigns.pacing import ARGUMENTS, Service, fullest_aligned, fullest_sliding
from tests.campaigns.shared_limit import Processes
from tests.support.counting_service import CountingService
from tests.support.limit_stores import Fleet
from tests.support.sending_process import Sending
from tests.support.servers import CutProxy, valkey_server
from tests.support.simulated import run_simulated

KINDS: Final = ("cut", "refused", "emptied")
PROCESSES: Final = 4
GONE: Final = 70.0
BACK: Final = 100.0
END: Final = 170.0


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
    """Requests of the process with the fewest, as a part of the average."""

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
            f"{self.during:.1%} during, {self.after:.1%} after; least process {self.least:.0%} of the "
            f"average; {', '.join(self.breaches) or 'no breach'}"
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


def on_sockets(limit: int) -> Outcome:
    """One outage of a real store, in real time, of processes of their own."""
    with CountingService() as service, valkey_server() as valkey, CutProxy(valkey.address) as proxy:
        sending = Sending(service.base_url, valkey.url(port=proxy.port), limit, 256, PROCESSES)
        fleet = Processes(sending, PROCESSES)
        began = time.monotonic()
        time.sleep(GONE)
        proxy.cut()
        time.sleep(BACK - GONE)
        proxy.heal()
        time.sleep(END - BACK)
        moments = sorted(service.counted())
        sent = [each.sent for each in fleet.end()]
    found = outcome_of([moment - began for moment in moments], limit)
    return attrs.evolve(found, least=min(sent) * PROCESSES / max(sum(sent), 1))


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.limit_outage")
    parser.add_argument("--limit", type=int, default=60_000, help="requests a minute")
    parser.add_argument("--seeds", type=int, default=1, help="simulated runs of each kind")
    parser.add_argument("--real", action="store_true", help="a real store, in real time: three minutes")
    options = parser.parse_args()
    logging.getLogger("payments").setLevel(logging.ERROR)
    breaches = 0
    runs = (
        [("real", 1)] if options.real else [(kind, seed) for kind in KINDS for seed in range(options.seeds)]
    )
    for kind, seed in runs:
        found = on_sockets(options.limit) if options.real else simulate(options.limit, kind, seed)
        breaches += len(found.breaches)
        print(f"{kind}, seed {seed}: {found}", flush=True)
    raise SystemExit(1 if breaches else 0)


if __name__ == "__main__":
    main()
