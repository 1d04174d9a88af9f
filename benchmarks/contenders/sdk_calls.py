"""Ours: checked, keyed, paced, retried, typed. `sdk_calls URL [asyncio|uvloop] [lean|plain]`."""

from __future__ import annotations

import sys
from typing import Any

from benchmarks.bodies import ARGUMENTS, KEY, UNPACED
from benchmarks.contenders.rounds import on_loop, spent
from benchmarks.worker import serve
from payments_async import AsyncPayments, _transport


async def calls(base_url: str, times: int, in_flight: int) -> dict[str, Any]:
    """One round of whole calls."""
    async with AsyncPayments(KEY, base_url=base_url, limits=UNPACED) as client:
        return await spent(lambda: client.payouts.create(**ARGUMENTS), times, in_flight)


def main(base_url: str, loop: str = "asyncio", style: str = "lean") -> None:
    """Serve rounds. `plain` is what is used on an aiohttp whose inside nobody has checked."""
    if style == "plain":
        _transport.lean_supported = lambda: False
    assert _transport.lean_supported() == (style == "lean"), "the lean transport does not know this aiohttp"
    serve(lambda times, in_flight: on_loop(loop, calls(base_url, times, in_flight)))


if __name__ == "__main__":
    main(*sys.argv[1:])
