"""Ours: checked, keyed, paced, retried, typed. `sdk_calls URL asyncio|uvloop direct|session`."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from benchmarks.bodies import KEY, UNPACED, call_arguments
from benchmarks.contenders.rounds import Call, on_loop, spent
from benchmarks.worker import serve
from payments_async import APIStatusError, AsyncPayments
from payments_async._http import transport


@asynccontextmanager
async def opened(base_url: str) -> AsyncIterator[Call]:
    """An open client's call, which makes its arguments anew, as programs do."""
    async with AsyncPayments(KEY, base_url=base_url, limits=UNPACED) as client:
        yield lambda: client.payouts.create(**call_arguments())


@asynccontextmanager
async def refused(base_url: str) -> AsyncIterator[Call]:
    """The same, at a service that refuses it."""
    async with opened(base_url) as create:

        async def call() -> None:
            try:
                await create()
            except APIStatusError:
                return
            raise AssertionError("not refused")

        yield call


def main(base_url: str, loop: str, way: str) -> None:
    """Serve rounds. `session` is used on an aiohttp whose internals are not known."""
    if way == "session":
        transport.is_supported = lambda: False
    assert transport.is_supported() == (way == "direct"), "the direct way does not know this aiohttp"
    serve(lambda times, in_flight: on_loop(loop, spent(opened(base_url), times, in_flight)))


if __name__ == "__main__":
    main(*sys.argv[1:])
