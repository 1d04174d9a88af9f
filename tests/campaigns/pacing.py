"""Saturating demand through the whole request path in simulated time, counted as a service would count it.

    python -m tests.campaigns.pacing 60           a minute at the service's own limit
    python -m tests.campaigns.pacing 600 6000

256 callers create payouts without pause. An answer takes 20 to 200 ms, plus an exponential part of 100 ms on
average, plus up to two seconds for one in two hundred. The service counts a request at any moment between
its sending and its answer.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Sequence
from contextlib import suppress

import attrs

from payments_async import AsyncPayments, RateLimits
from payments_async._http.types import HTTPRequest, HTTPResponse
from tests.support.motion import PAYOUT, payout_answer
from tests.support.simulated import SimulatedRuntime, run_simulated

CALLERS = 256
ARGUMENTS = {name: value for name, value in PAYOUT.items() if name != "reference"}


class Service:
    """Answers every request late and notes when it counted it."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._answer = payout_answer(reference=None)
        self.counted: list[float] = []

    async def send(self, request: HTTPRequest) -> HTTPResponse:
        """Take a while, and count somewhere within it."""
        request.sent = True
        took, now = self.latency(), asyncio.get_running_loop().time()
        self.counted.append(self._chance.uniform(now, now + took))
        await asyncio.sleep(took)
        return self._answer

    async def aclose(self) -> None:
        """Nothing is open."""

    def latency(self) -> float:
        spike = self._chance.uniform(0.2, 2.0) if self._chance.random() < 0.005 else 0.0
        return self._chance.uniform(0.02, 0.2) + self._chance.expovariate(10.0) + spike


@attrs.frozen
class Run:
    limit: int
    seconds: float
    requests: int
    sliding: int
    """The most that any sixty seconds held."""
    aligned: int
    """The most that any minute held, for clocks that begin theirs at each tenth of a second."""
    used: float
    """The part of what the limit allows in this time."""

    @property
    def refusals(self) -> int:
        """Requests over the limit in the fullest window."""
        return max(0, max(self.sliding, self.aligned) - self.limit)


def run(limit: int, seconds: float, seed: int = 1) -> Run:
    service = Service(seed)
    run_simulated(_saturate(service, limit, seconds, seed))
    moments = sorted(service.counted)
    return Run(
        limit,
        seconds,
        len(moments),
        fullest_sliding(moments),
        fullest_aligned(moments),
        len(moments) / (limit * seconds / 60.0),
    )


async def _saturate(service: Service, limit: int, seconds: float, seed: int) -> None:
    runtime = SimulatedRuntime(seed)
    client = AsyncPayments(
        "sk_sandbox_campaign",
        base_url="http://127.0.0.1:9/v1",
        limits=RateLimits(writes=limit),
        runtime=runtime,
        transport=service,
    )

    async def call_without_pause() -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while True:
                    await client.payouts.create(**ARGUMENTS)

    async with asyncio.TaskGroup() as callers:
        for _ in range(CALLERS):
            callers.create_task(call_without_pause())


def fullest_sliding(moments: Sequence[float], seconds: float = 60.0) -> int:
    """The most requests in any sixty seconds, wherever they begin."""
    most = oldest = 0
    for newest, moment in enumerate(moments):
        while moments[oldest] <= moment - seconds:
            oldest += 1
        most = max(most, newest - oldest + 1)
    return most


def fullest_aligned(moments: Sequence[float]) -> int:
    """The most requests in any minute of a clock, for six hundred clocks a tenth of a second apart."""
    tenths: dict[int, int] = {}
    for moment in moments:
        tenths[int(moment * 10)] = tenths.get(int(moment * 10), 0) + 1
    starts = range(-600, max(tenths, default=0) + 1)
    most = now = 0
    for start in starts:
        now += tenths.get(start + 599, 0) - tenths.get(start - 1, 0)
        most = max(most, now)
    return most


def main(seconds: int, limit: int = 60_000, seed: int = 1) -> int:
    found = run(limit, seconds, seed)
    print(found)
    return 1 if found.refusals or found.used < 0.99 else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
