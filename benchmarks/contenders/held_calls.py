"""What calls under way and a list read through take: `held_calls ours|aiohttp|list URL`. Linux only."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from pathlib import Path

import aiohttp

from benchmarks.bodies import ARGUMENTS, KEY, UNPACED
from benchmarks.contenders.rounds import Call
from benchmarks.wire import BODY, HEAD
from benchmarks.worker import serve
from payments_async import AsyncPayments

FIRST = 2_000
"""Rows after which all that is kept anyhow is there."""


async def ours(base_url: str, many: int) -> int:
    """Creations that all wait for their answer, each on a connection of its own."""
    async with AsyncPayments(KEY, base_url=base_url, limits=UNPACED, max_connections=many) as client:
        return await waiting(lambda: client.payouts.create(**ARGUMENTS), many, base_url)


async def by_hand(base_url: str, many: int) -> int:
    """The same with aiohttp."""
    async with aiohttp.ClientSession(headers=HEAD, connector=aiohttp.TCPConnector(limit=0)) as session:

        async def call() -> object:
            async with session.post(f"{base_url}/payouts", json=BODY) as response:
                return await response.json()

        return await waiting(call, many, base_url)


async def waiting(call: Call, calls: int, base_url: str) -> int:
    """Bytes that are resident more while so many calls wait for their answer."""
    await all_waiting(call, 10, base_url)  # what is loaded and kept with first calls
    gc.collect()
    before = resident()
    return await all_waiting(call, calls, base_url) - before


async def all_waiting(call: Call, calls: int, base_url: str) -> int:
    """Resident bytes while all of them wait."""
    under_way = [asyncio.ensure_future(call()) for _ in range(calls)]
    async with aiohttp.ClientSession() as control:
        await control.get(f"{base_url}/full/{calls}")
        gc.collect()
        found = resident()
        await control.post(f"{base_url}/release")
    await asyncio.gather(*under_way)
    return found


async def read_list(base_url: str, many: int) -> int:
    """Bytes by which the process has grown at most since the first of so many payouts, page after page."""
    rows = start = 0
    async with AsyncPayments(KEY, base_url=base_url, limits=UNPACED) as client:
        async for _ in client.payouts.iterate(page_size=100, max_items=many):
            rows += 1
            if rows == FIRST:
                start = resident()
    assert rows == many
    return peak() - start


def resident() -> int:
    """Resident bytes of this process."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def peak() -> int:
    """The most that was ever resident, bytes."""
    status = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) * 1024


KINDS = {"ours": ours, "aiohttp": by_hand, "list": read_list}

if __name__ == "__main__":
    kind, url = sys.argv[1:]
    serve(lambda many: {"bytes": asyncio.run(KINDS[kind](url, many))})
