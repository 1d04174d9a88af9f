"""aiohttp by hand: post a dict, read a dict. What a careful user writes, and nothing else."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from benchmarks.contenders.rounds import Call, on_loop, spent
from benchmarks.wire import KEY, body
from benchmarks.worker import serve


@asynccontextmanager
async def opened(base_url: str) -> AsyncIterator[Call]:
    """An open session's call."""
    url, headers = f"{base_url}/payouts", {"Authorization": f"Bearer {KEY}"}
    connector = aiohttp.TCPConnector(limit=256)
    async with aiohttp.ClientSession(headers=headers, connector=connector) as session:

        async def call() -> object:
            async with session.post(url, json=body()) as response:
                return await response.json()

        yield call


async def calls(base_url: str, times: int, in_flight: int) -> dict[str, Any]:
    """One round."""
    async with opened(base_url) as call:
        return await spent(call, times, in_flight)


def main(base_url: str, loop: str = "asyncio") -> None:
    """Serve rounds."""
    serve(lambda times, in_flight: on_loop(loop, calls(base_url, times, in_flight)))


if __name__ == "__main__":
    main(*sys.argv[1:])
