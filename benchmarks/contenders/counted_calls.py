"""Whole calls over TCP under valgrind, ours and aiohttp by hand. `counted_calls URL CALL REFUSED`.

Connections are open, code is warm and the garbage collector has been frozen before anything is
counted.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial

import uvloop

from benchmarks.contenders import aiohttp_calls, sdk_calls
from benchmarks.contenders.rounds import Call
from benchmarks.counting import Counter

WARM, COUNTED = 6, 6
"""Calls of each of those under way at once, before and while instructions are counted."""
IN_FLIGHT = (1, 64)
LEAST = 200
"""Calls that are counted at least."""


async def together(call: Call, each: int, in_flight: int) -> None:
    """So many calls one after the other, by each of so many at once."""

    async def work() -> None:
        for _ in range(each):
            await call()

    await asyncio.gather(*(work() for _ in range(in_flight)))


def count(
    counter: Counter,
    name: str,
    opening: AbstractAsyncContextManager[Call],
    in_flight: int,
    new_loop: Callable[[], asyncio.AbstractEventLoop] | None = None,
) -> None:
    """Have one contender counted, for `benchmarks.counting.counts`."""
    each = max(COUNTED, LEAST // in_flight)
    with asyncio.Runner(loop_factory=new_loop) as runner:
        call = runner.run(opening.__aenter__())
        runner.run(together(call, max(WARM, 60 // in_flight), in_flight))
        gc.collect()
        gc.freeze()
        counted = partial(runner.run, together(call, each, in_flight))
        counter.count(f"{name}/{in_flight}", each * in_flight, counted)
        runner.run(opening.__aexit__(None, None, None))


def main(base_url: str, call_url: str, refused_url: str) -> None:
    """Count all; the answers of `call_url` have a service's headers, `refused_url` answers with a 422."""
    counter = Counter()
    assert counter.present, "to be run under valgrind"
    urls = {"each": base_url, "before": base_url, "call": call_url, "call before": call_url}
    urls["refused"] = refused_url
    for in_flight in IN_FLIGHT:
        for made, url in urls.items():
            count(counter, made.replace(" ", "_"), sdk_calls.opened(url, made), in_flight)
        for made in ("each", "call", "refused"):
            count(counter, f"{made}_aiohttp", aiohttp_calls.opened(urls[made], made), in_flight)
        for name, module in (("call_uvloop", sdk_calls), ("call_uvloop_aiohttp", aiohttp_calls)):
            count(counter, name, module.opened(call_url, "call"), in_flight, uvloop.new_event_loop)


if __name__ == "__main__":
    main(*sys.argv[1:])
