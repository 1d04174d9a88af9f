"""A client for each of many keys, and one call of each. `keys_calls URL derived|separate|sessions`."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import pairwise
from typing import Any

import aiohttp

from benchmarks.bodies import ARGUMENTS, KEY
from benchmarks.contenders.memory_rounds import memory
from benchmarks.wire import BODY
from benchmarks.worker import serve
from payments_async import AsyncPayments

Call = Callable[[], Coroutine[Any, Any, object]]
Make = Callable[[str], Call]


@asynccontextmanager
async def derived(base_url: str, _: AsyncExitStack) -> AsyncIterator[Make]:
    """`with_options(api_key=...)` of one client."""
    async with AsyncPayments(KEY, base_url=base_url) as client:
        yield lambda key: paying(client.with_options(api_key=key))


def paying(client: AsyncPayments) -> Call:
    """A client's payout."""
    return lambda: client.payouts.create(**ARGUMENTS)


@asynccontextmanager
async def separate(base_url: str, closing: AsyncExitStack) -> AsyncIterator[Make]:
    """A client for each key, with connections of its own."""

    def make(key: str) -> Call:
        client = AsyncPayments(key, base_url=base_url)
        closing.push_async_callback(client.aclose)
        return paying(client)

    yield make


@asynccontextmanager
async def sessions(base_url: str, closing: AsyncExitStack) -> AsyncIterator[Make]:
    """A session of aiohttp for each key, on one connector."""
    async with aiohttp.TCPConnector(limit=256) as connector:

        def make(key: str) -> Call:
            headers = {"Authorization": f"Bearer {key}"}
            session = aiohttp.ClientSession(headers=headers, connector=connector, connector_owner=False)
            closing.push_async_callback(session.close)

            async def call() -> object:
                async with session.post(f"{base_url}/payouts", json=BODY) as response:
                    return await response.json()

            return call

        yield make


KINDS = {"derived": derived, "separate": separate, "sessions": sessions}


def sockets() -> int:
    """The open sockets of this process (Linux)."""
    links = []
    for name in os.listdir("/proc/self/fd"):
        try:
            links.append(os.readlink(f"/proc/self/fd/{name}"))
        except FileNotFoundError:  # the listing's own
            continue
    return sum(link.startswith("socket:") for link in links)


async def measured(base_url: str, kind: str, many: int) -> dict[str, float]:
    """What a client takes: CPU to make it, CPU of its first and second call, memory; and its connections."""
    async with AsyncExitStack() as closing, KINDS[kind](base_url, closing) as make:
        kept = [make(f"{KEY}_first")]
        await kept[0]()
        gc.collect()
        resident, opened, times = memory(), sockets(), [time.process_time()]
        kept += [make(f"{KEY}_{number}") for number in range(many)]
        times.append(time.process_time())
        for _ in range(2):
            for call in kept[1:]:
                await call()
            times.append(time.process_time())
        gc.collect()
        spent = [(end - start) / many for start, end in pairwise(times)]
        grown = (memory() - resident) / many
        return {
            "made": spent[0],
            "first": spent[1],
            "second": spent[2],
            "memory": grown,
            "connections": sockets() - opened + 1,
        }


def main(base_url: str, kind: str) -> None:
    """Serve rounds."""
    serve(lambda many: asyncio.run(measured(base_url, kind, many)))


if __name__ == "__main__":
    main(*sys.argv[1:])
