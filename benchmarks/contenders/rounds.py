"""One round of calls on an event loop, and what it cost. Standard library only."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

Call = Callable[[], Awaitable[object]]


async def spent(call: Call, calls: int, in_flight: int) -> dict[str, Any]:
    """CPU seconds of this process for each call, so many under way at once; connections are open before."""

    async def work(times: int) -> None:
        for _ in range(times):
            await call()

    await asyncio.gather(*(work(2) for _ in range(in_flight)))
    gc.collect()
    each = max(calls // in_flight, 1)
    started = time.process_time()
    await asyncio.gather(*(work(each) for _ in range(in_flight)))
    return {"cpu": (time.process_time() - started) / (each * in_flight)}


def on_loop(name: str, main: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
    """Run on "asyncio" or "uvloop"."""
    if name == "uvloop":
        import uvloop

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(main)
    return asyncio.run(main)
