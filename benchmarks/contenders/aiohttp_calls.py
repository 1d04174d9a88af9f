"""aiohttp by hand: post a dict, read a dict. What a careful user writes, and nothing else."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from benchmarks.contenders.rounds import Call, on_loop, spent
from benchmarks.wire import KEY, body, call_body
from benchmarks.worker import serve


class Refused(Exception):
    """An answer that is no success, with what it says."""


@asynccontextmanager
async def opened(base_url: str, made: str = "each") -> AsyncIterator[Call]:
    """An open session's call; the one that is `refused` looks at the status and raises."""
    make = body if made == "each" else call_body
    url, headers = f"{base_url}/payouts", {"Authorization": f"Bearer {KEY}"}
    connector = aiohttp.TCPConnector(limit=256)
    async with aiohttp.ClientSession(headers=headers, connector=connector) as session:

        async def call() -> object:
            async with session.post(url, json=make()) as response:
                return await response.json()

        async def refused() -> None:
            try:
                async with session.post(url, json=make()) as response:
                    content = await response.json()
                    if response.status >= 400:
                        raise Refused(response.status, content["message"], content["errors"])
            except Refused:
                return
            raise AssertionError("not refused")

        yield refused if made == "refused" else call


async def calls(base_url: str, made: str, times: int, in_flight: int) -> dict[str, Any]:
    """One round."""
    async with opened(base_url, made) as call:
        return await spent(call, times, in_flight)


def main(base_url: str, loop: str = "asyncio", made: str = "each") -> None:
    """Serve rounds."""
    serve(lambda times, in_flight: on_loop(loop, calls(base_url, made, times, in_flight)))


if __name__ == "__main__":
    main(*sys.argv[1:])
