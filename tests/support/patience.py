"""Bounds that hold on a busy machine: of waits, of deadlines after something was sent, of memory."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

from tests.support.rawserver import RawServer

PATIENCE: Final = (0.05, 0.2, 0.8, 3.2, 12.8)
"""Seconds to try with, one after the other: the next only where nothing was sent within the last."""


async def until(condition: Callable[[], Any]) -> None:
    while not condition():  # noqa: ASYNC110 - another thread or process brings it about, and no event tells
        await asyncio.sleep(0.001)


@contextmanager
def bounded_memory(limit: int) -> Iterator[None]:
    """Fail if more bytes than these are held at once."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] <= limit
    finally:
        tracemalloc.stop()


@asynccontextmanager
async def timeout_once_asked(server: RawServer) -> AsyncIterator[None]:
    """`asyncio.timeout` that is up as soon as the server has read a request."""

    async def end() -> None:
        await asyncio.to_thread(server.arrivals.get, timeout=300)
        deadline.reschedule(asyncio.get_running_loop().time())

    async with asyncio.timeout(None) as deadline:
        asked = asyncio.ensure_future(end())
        yield
    await asked
