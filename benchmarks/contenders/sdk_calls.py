"""Ours: checked, keyed, paced, retried, typed. `sdk_calls URL [each|before] [asyncio|uvloop] [lean|plain]`.

`each` makes a call's arguments anew, as programs do; `before` passes the same objects to every call. `call`
and `call before` are the same with a customer and without a reference; `refused` expects an error.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from benchmarks.bodies import ARGUMENTS, CALL_ARGUMENTS, KEY, UNPACED, arguments, call_arguments
from benchmarks.contenders.rounds import Call, on_loop, spent
from benchmarks.worker import serve
from payments_async import APIStatusError, AsyncPayments
from payments_async._http import transport

MADE: dict[str, Callable[[], dict[str, Any]]] = {
    "each": arguments,
    "before": lambda: ARGUMENTS,
    "call": call_arguments,
    "call before": lambda: CALL_ARGUMENTS,
    "refused": call_arguments,
}


@asynccontextmanager
async def opened(base_url: str, made: str = "each") -> AsyncIterator[Call]:
    """An open client's call."""
    make = MADE[made]
    async with AsyncPayments(KEY, base_url=base_url, limits=UNPACED) as client:

        async def refused() -> None:
            try:
                await client.payouts.create(**make())
            except APIStatusError:
                return
            raise AssertionError("not refused")

        yield refused if made == "refused" else lambda: client.payouts.create(**make())


async def calls(base_url: str, made: str, times: int, in_flight: int) -> dict[str, Any]:
    """One round of whole calls."""
    async with opened(base_url, made) as call:
        return await spent(call, times, in_flight)


def main(base_url: str, made: str = "each", loop: str = "asyncio", way: str = "direct") -> None:
    """Serve rounds. `session` is used on an aiohttp whose internals are not known."""
    if way == "session":
        transport.is_supported = lambda: False
    assert transport.is_supported() == (way == "direct"), "the direct way does not know this aiohttp"
    serve(lambda times, in_flight: on_loop(loop, calls(base_url, made, times, in_flight)))


if __name__ == "__main__":
    main(*sys.argv[1:])
