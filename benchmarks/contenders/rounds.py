"""One round of calls on an event loop, and what it cost. Standard library only."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager

Call = Callable[[], Awaitable[object]]
Opening = AbstractAsyncContextManager[Call]
"""Context of an open client's call."""


async def together(call: Call, each: int, in_flight: int) -> None:
    """So many calls one after the other, by each of so many at once."""

    async def work() -> None:
        for _ in range(each):
            await call()

    await asyncio.gather(*(work() for _ in range(in_flight)))


async def spent(opening: Opening, calls: int, in_flight: int) -> dict[str, float]:
    """CPU seconds of this process for each call, so many under way at once; connections are open before."""
    async with opening as call:
        await together(call, 2, in_flight)
        gc.collect()
        each = max(calls // in_flight, 1)
        started = time.process_time()
        await together(call, each, in_flight)
        return {"cpu": (time.process_time() - started) / (each * in_flight)}


def on_loop(name: str, main: Coroutine[object, object, dict[str, float]]) -> dict[str, float]:
    """Run on "asyncio" or "uvloop"."""
    if name == "asyncio":
        return asyncio.run(main)
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)
