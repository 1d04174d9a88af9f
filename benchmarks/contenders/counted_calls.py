"""Whole calls over TCP under valgrind, ours and aiohttp by hand. `counted_calls URL REFUSING_URL`.

Connections are open, code is warm and the garbage collector has been frozen before anything is counted.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from functools import partial

import uvloop

from benchmarks.contenders import aiohttp_calls, sdk_calls
from benchmarks.contenders.rounds import Opening, together
from benchmarks.counting import Counter

EACH, LEAST, WARM = 6, 200, 600
"""Calls of each of those under way at once, of all together at least, and before anything is counted."""


def count(counter: Counter, name: str, opening: Opening, in_flight: int) -> None:
    """Have one contender counted, for `benchmarks.counting.counts`."""
    each = max(EACH, LEAST // in_flight)
    new_loop = uvloop.new_event_loop if name.endswith("uvloop") else None
    with asyncio.Runner(loop_factory=new_loop) as runner:
        call = runner.run(opening.__aenter__())
        runner.run(together(call, max(WARM // in_flight, EACH), in_flight))
        gc.collect()
        gc.freeze()
        counted = partial(runner.run, together(call, each, in_flight))
        counter.count(f"{name}/{in_flight}", each * in_flight, counted)
        runner.run(opening.__aexit__(None, None, None))


def main(base_url: str, refusing_url: str) -> None:
    """Count all."""
    counter = Counter()
    assert counter.present, "to be run under valgrind"
    for in_flight in (1, 64):
        for suffix in ("", "_uvloop"):
            count(counter, f"ours{suffix}", sdk_calls.opened(base_url), in_flight)
            count(counter, f"aiohttp{suffix}", aiohttp_calls.opened(base_url), in_flight)
        count(counter, "refused", sdk_calls.refused(refusing_url), in_flight)
        count(counter, "aiohttp_refused", aiohttp_calls.refused(refusing_url), in_flight)


if __name__ == "__main__":
    main(*sys.argv[1:])
