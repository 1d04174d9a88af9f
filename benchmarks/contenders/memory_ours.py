"""Ours, many calls under way, or a long list read through. `memory_ours URL flying|streaming`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from benchmarks.bodies import ARGUMENTS, KEY
from benchmarks.contenders.memory_rounds import allocations, in_flight, memory, peak
from benchmarks.worker import serve
from payments_async import AsyncPayments, RateLimits

UNPACED = RateLimits(writes=10**8, reads=10**8, burst=10**8)
FIRST = 2_000
"""Rows after which all that is kept anyhow is there."""


async def flying(base_url: str, many: int, traced: bool) -> dict[str, Any]:
    """Creations that all wait for their answer, each on a connection of its own."""
    async with AsyncPayments(KEY, base_url=base_url, limits=UNPACED, max_connections=many) as client:
        return await in_flight(lambda: client.payouts.create(**ARGUMENTS), many, base_url, traced=traced)


async def held(base_url: str, many: int) -> str:
    """What those calls hold, by line of code."""
    async with AsyncPayments(KEY, base_url=base_url, limits=UNPACED, max_connections=many) as client:
        return await allocations(lambda: client.payouts.create(**ARGUMENTS), many, base_url)


async def streaming(base_url: str, many: int) -> dict[str, Any]:
    """So many payouts, one after the other, from page after page."""
    rows, start = 0, 0
    async with AsyncPayments(KEY, base_url=base_url, limits=UNPACED) as client:
        async for _ in client.payouts.iterate(page_size=100, max_items=many):
            rows += 1
            if rows == FIRST:
                start = memory()
    assert rows == many
    return {"grown": peak() - start}


WORK: dict[str, Callable[..., Coroutine[Any, Any, dict[str, Any]]]] = {
    "flying": flying,
    "streaming": streaming,
}


def main(base_url: str, kind: str) -> None:
    """Serve rounds."""
    work = WORK[kind]
    serve(
        lambda many, **more: asyncio.run(work(base_url, many, **more)),
        lambda many: asyncio.run(held(base_url, many)),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
