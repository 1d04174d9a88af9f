"""How much of 60,000 a minute does a saturated process use, and is anything refused?

In virtual time: the whole client runs on a loop that jumps to its next timer. Its transport takes 30 to
120 ms, plus 50 ms exponentially, plus up to a second for two in a thousand. The service counts a request at
any moment between its sending and its answer.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Iterable, Iterator

from benchmarks import inside
from benchmarks.bodies import ARGUMENTS, KEY
from benchmarks.figures import Figure
from payments_async import AsyncPayments
from payments_async._http.types import HTTPRequest, HTTPResponse
from tests.support.simulated import SimulatedRuntime, run_simulated

LIMIT, MINUTE = 60_000, 60.0


class Distant(inside.Stub):
    """A transport over a network that is not there."""

    def __init__(self, runtime: SimulatedRuntime) -> None:
        super().__init__(inside.CREATED)
        self._runtime, self._chance = runtime, random.Random(1)
        self.counted: list[float] = []
        """When the service counted each request."""

    async def send(self, request: HTTPRequest) -> HTTPResponse:
        """The answer, some time later."""
        chance, sent = self._chance, self._runtime.monotonic()
        spike = chance.uniform(0.2, 1.0) if chance.random() < 0.002 else 0.0
        took = chance.uniform(0.03, 0.12) + chance.expovariate(20.0) + spike
        self.counted.append(chance.uniform(sent, sent + took))
        await self._runtime.sleep(took)
        return await super().send(request)


async def saturated(seconds: float, callers: int) -> list[float]:
    """When the service counted, in order, of a client that is kept busy for so many virtual seconds."""
    runtime = SimulatedRuntime()
    distant = Distant(runtime)
    client = AsyncPayments(
        KEY,
        base_url=inside.URL,
        transport=distant,
        runtime=runtime,
        deadline=3_600.0,
    )

    async def work() -> None:
        while runtime.monotonic() < seconds:
            await client.payouts.create(**ARGUMENTS)

    async with asyncio.TaskGroup() as group:
        for _ in range(callers):
            group.create_task(work())
    return sorted(distant.counted)


def refused(moments: Iterable[float], limit: int) -> int:
    """Requests that found `limit` others accepted in the 60 s before: no way to draw minutes has more."""
    accepted: deque[float] = deque()
    count = 0
    for moment in moments:
        while accepted and accepted[0] <= moment - MINUTE:
            accepted.popleft()
        if len(accepted) < limit:
            accepted.append(moment)
        else:
            count += 1
    return count


def run(rounds: int, share: float) -> Iterator[Figure]:
    """Saturated for three minutes."""
    seconds = 180.0
    moments = run_simulated(saturated(seconds, callers=256))
    used = sum(MINUTE <= moment < seconds for moment in moments) / (LIMIT * (seconds - MINUTE) / MINUTE)
    what = "share of 60,000 a minute that is used, from the second minute on"
    yield Figure.of([used * 100], what, "%", at_least=99.5)
    yield Figure.of([refused(moments, LIMIT)], "refused in any minute, saturated", "", at_most=0.0)
