"""Ours: what a call costs beside checking, encoding, sending and decoding, when nobody has to wait.

The frame is `Pipeline.run` of a call with an empty answer, less the request, the (stubbed) sending and the
reading done by hand. Anything the loop is asked for on the way is counted.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from benchmarks import inside
from benchmarks.bodies import ARGUMENTS
from benchmarks.worker import serve
from payments_async import AsyncPayments
from payments_async._request.prepare import make_request


async def timed(work: Callable[[], Awaitable[object]], times: int) -> float:
    """CPU seconds for one."""
    started = time.process_time()
    for _ in range(times):
        await work()
    return (time.process_time() - started) / times


def by_hand(client: AsyncPayments) -> Callable[[], Awaitable[object]]:
    """What the pipeline does, without the frame around it."""
    pipeline, call = client._pipeline, inside.READ_NOTHING
    settings, transport = pipeline.settings, pipeline.transport

    async def work() -> object:
        request = make_request(call, settings, settings.key(), None, 0.0)
        return inside.read(call, await transport.send(request))

    return work


async def frame(times: int) -> dict[str, Any]:
    """One round: seconds of the whole and of its parts."""
    client = inside.client(inside.EMPTY)
    run, work = client._pipeline.run, by_hand(client)
    await timed(lambda: run(inside.READ_NOTHING), 100)
    whole = await timed(lambda: run(inside.READ_NOTHING), times)
    parts = await timed(work, times)
    return {"frame": whole - parts, "gate": passing(times)}


def passing(times: int) -> float:
    """CPU seconds for entering and leaving a gate."""
    gate = inside.gate()
    started = time.process_time()
    for number in range(times):
        grant = gate.try_acquire(number * 1e-3)
        gate.release(grant, number * 1e-3)
    return (time.process_time() - started) / times


class _Asked(asyncio.SelectorEventLoop):
    """A loop that counts what it is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def call_at(self, *arguments: Any, **options: Any) -> Any:  # type: ignore[override] # whatever it takes
        self.counts["timers"] += 1
        return super().call_at(*arguments, **options)

    def create_future(self) -> Any:
        self.counts["futures"] += 1
        return super().create_future()

    def create_task(self, *arguments: Any, **options: Any) -> Any:
        self.counts["tasks"] += 1
        return super().create_task(*arguments, **options)


async def _asked() -> int:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, _Asked)
    client = inside.client()
    for turn in range(11):
        if turn == 1:
            loop.counts.clear()
        await client.payouts.create(**ARGUMENTS)
    return loop.counts.total()


def main(what: str, times: int = 1) -> dict[str, Any]:
    """A round: "frame", or "asked": the tasks, timers and futures of ten creations over a stub."""
    if what == "frame":
        return asyncio.run(frame(times))
    with asyncio.Runner(loop_factory=_Asked) as runner:
        return {"asked": runner.run(_asked())}


if __name__ == "__main__":
    serve(main)
