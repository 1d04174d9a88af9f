"""What calls under way take: memory before them and with all of them waiting. Standard library only."""

from __future__ import annotations

import asyncio
import gc
import os
import tracemalloc
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
Call = Callable[[], Awaitable[object]]


async def in_flight(call: Call, calls: int, base_url: str, *, traced: bool) -> dict[str, Any]:
    """Bytes for each of so many calls that wait for their answer: Python's own count, or resident memory."""
    taken = tracemalloc_now if traced else memory
    await _all(call, 10, base_url, memory)  # what is loaded and kept with first calls
    if traced:
        tracemalloc.start()
    gc.collect()
    before = taken()
    return {"bytes": (await _all(call, calls, base_url, taken) - before) / calls}


async def allocations(call: Call, calls: int, base_url: str) -> str:
    """The 25 lines of code that hold most while so many calls wait, in bytes a call."""
    await _all(call, 10, base_url, memory)
    tracemalloc.start()
    held = (await _all(call, calls, base_url, tracemalloc.take_snapshot)).statistics("lineno")[:25]
    return "".join(
        f"{each.size / calls:8.0f}  {Path(each.traceback[0].filename).name}:{each.traceback[0].lineno}\n"
        for each in held
    )


async def _all(call: Call, calls: int, base_url: str, taken: Callable[[], T]) -> T:
    """What is taken while all of them wait."""
    waiting = [asyncio.ensure_future(call()) for _ in range(calls)]
    await _ask(base_url, f"GET /v1/full/{calls}")
    gc.collect()
    found = taken()
    await _ask(base_url, "POST /v1/release")
    await asyncio.gather(*waiting)
    return found


async def _ask(base_url: str, what: str) -> None:
    """A request of our own to the server, up to its answer."""
    host, _, port = base_url.removeprefix("http://").removesuffix("/v1").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"{what} HTTP/1.1\r\nContent-Length: 0\r\n\r\n".encode())
    await reader.readuntil(b"{}")
    writer.close()
    await writer.wait_closed()


def tracemalloc_now() -> int:
    """Bytes that Python's allocators have given out since tracing began."""
    return tracemalloc.get_traced_memory()[0]


def memory() -> int:
    """Resident bytes of this process (Linux)."""
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def peak() -> int:
    """The most that was ever resident, bytes (Linux)."""
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) * 1024
