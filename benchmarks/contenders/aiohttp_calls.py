"""aiohttp by hand: post a dict, read a dict, as a careful user does. `aiohttp_calls URL asyncio|uvloop`."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp

from benchmarks.contenders.rounds import Call, on_loop, spent
from benchmarks.wire import HEAD, call_body
from benchmarks.worker import serve


class Refused(Exception):
    """An answer that is no success, with what it says."""


@asynccontextmanager
async def opened(base_url: str) -> AsyncIterator[Call]:
    """An open session's call."""
    async with aiohttp.ClientSession(headers=HEAD, connector=aiohttp.TCPConnector(limit=256)) as session:

        async def call() -> object:
            async with session.post(f"{base_url}/payouts", json=call_body()) as response:
                return await response.json()

        yield call


@asynccontextmanager
async def refused(base_url: str) -> AsyncIterator[Call]:
    """The same, which looks at the status and raises."""
    async with aiohttp.ClientSession(headers=HEAD, connector=aiohttp.TCPConnector(limit=256)) as session:

        async def call() -> None:
            try:
                async with session.post(f"{base_url}/payouts", json=call_body()) as response:
                    content = await response.json()
                    if response.status >= 400:
                        raise Refused(response.status, content["message"], content["errors"])
            except Refused:
                return
            raise AssertionError("not refused")

        yield call


def main(base_url: str, loop: str) -> None:
    """Serve rounds."""
    serve(lambda times, in_flight: on_loop(loop, spent(opened(base_url), times, in_flight)))


if __name__ == "__main__":
    main(*sys.argv[1:])
