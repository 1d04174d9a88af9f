"""Ours: more callers than the limit lets through, in virtual time and over TCP.

In virtual time, the whole client runs on a loop that jumps to its next timer; its transport takes 30 to
120 ms, plus 50 ms exponentially, plus up to a second for two in a thousand, and the service counts a request
at any moment between its sending and its answer. Over TCP, what is measured is CPU.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from typing import Any

from benchmarks import inside
from benchmarks.bodies import ARGUMENTS, KEY
from benchmarks.windows import refused_fixed, refused_sliding, share_used
from benchmarks.worker import serve
from payments_async import AsyncPayments, RateLimits
from payments_async._http.types import HTTPRequest, HTTPResponse
from tests.support.simulated import SimulatedRuntime, run_simulated

LIMIT = 60_000


class Distant:
    """A transport over a network that is not there."""

    def __init__(self, runtime: SimulatedRuntime) -> None:
        self._runtime, self._chance = runtime, random.Random(1)
        self.counted: list[float] = []
        """When the service counted each request."""

    async def send(self, request: HTTPRequest) -> HTTPResponse:
        """The answer, some time later."""
        request.sent = True
        chance, sent = self._chance, self._runtime.monotonic()
        spike = chance.uniform(0.2, 1.0) if chance.random() < 0.002 else 0.0
        took = chance.uniform(0.03, 0.12) + chance.expovariate(20.0) + spike
        self.counted.append(chance.uniform(sent, sent + took))
        await self._runtime.sleep(took)
        return inside.CREATED

    async def aclose(self) -> None:
        """Nothing is open."""


async def virtually(seconds: float, callers: int, burst: int | None) -> list[float]:
    """Saturated for so many virtual seconds; when the service counted, in order."""
    runtime = SimulatedRuntime()
    distant = Distant(runtime)
    limits = RateLimits(burst=burst)
    client = AsyncPayments(
        KEY, base_url=inside.URL, transport=distant, runtime=runtime, limits=limits, deadline=3_600.0
    )

    async def work() -> None:
        while runtime.monotonic() < seconds:
            await client.payouts.create(**ARGUMENTS)

    async with asyncio.TaskGroup() as group:
        for _ in range(callers):
            group.create_task(work())
    return sorted(distant.counted)


async def really(url: str, seconds: float) -> dict[str, Any]:
    """256 callers over TCP, the first second's burst left out: CPU for each second and call."""
    async with AsyncPayments(KEY, base_url=url) as client:
        done, ending = 0, False

        async def work() -> None:
            nonlocal done
            while not ending:
                await client.payouts.create(**ARGUMENTS)
                done += 1

        async with asyncio.TaskGroup() as group:
            for _ in range(256):
                group.create_task(work())
            await asyncio.sleep(2.0)
            cpu, wall, first = time.process_time(), time.perf_counter(), done
            await asyncio.sleep(seconds)
            cpu, wall, calls = time.process_time() - cpu, time.perf_counter() - wall, done - first
            ending = True
    return {"core": cpu / wall, "rate": calls / wall * 60, "cpu": cpu / calls}


def main(what: str, seconds: float) -> dict[str, Any]:
    """A round: "virtual", "burst" or "tcp"."""
    if what == "tcp":
        return asyncio.run(really(sys.argv[1], seconds))
    burst = LIMIT if what == "burst" else None
    moments = run_simulated(virtually(seconds, 1_024 if burst else 256, burst))
    refused = {"fixed": refused_fixed(moments, LIMIT), "sliding": refused_sliding(moments, LIMIT)}
    used = share_used(moments, LIMIT, 60.0, seconds) if seconds > 60.0 else 0.0
    took = moments[LIMIT - 1] if len(moments) >= LIMIT else seconds
    return {**refused, "share": used, "took": took, "requests": len(moments)}


if __name__ == "__main__":
    serve(main)
