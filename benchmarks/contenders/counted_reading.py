"""Reading under valgrind: bytes to records beside `json.loads`, pages beside aiohttp. `counted_reading URL`.

The URL answers with a page. Connections are open, code is warm and the garbage collector has been frozen
before anything is counted.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import aiohttp
import msgspec

from benchmarks import inside
from benchmarks.bodies import KEY, LATER_ANSWER, PAYOUT_ANSWER, UNPACED
from benchmarks.counting import Counter
from payments_async import AsyncPayments, Payout

ONE, PAGE = 300, 20
"""How often each is done, before and while instructions are counted."""


def fields(payout: Payout) -> object:
    """What most programs read of a payout."""
    amount, instrument = payout.amount, payout.instrument
    assert amount is not None
    assert instrument is not None
    texts = payout.id, payout.status, payout.reference, instrument.phone_number
    return texts, amount.value, amount.currency


def dict_fields(payout: dict[str, Any]) -> object:
    """The same of a dict."""
    amount, instrument = payout["amount"], payout["instrument"]
    texts = payout["id"], payout["status"], payout["reference"], instrument["phone_number"]
    return texts, amount["value"], amount["currency"]


DECODED: dict[str, Callable[[], object]] = {
    "json": lambda: json.loads(PAYOUT_ANSWER),
    "one": lambda: inside.decoded(PAYOUT_ANSWER),
    "one/fields": lambda: fields(inside.decoded(PAYOUT_ANSWER)),
}


@asynccontextmanager
async def pages(base_url: str) -> AsyncIterator[dict[str, Callable[[], Awaitable[object]]]]:
    """What reads a page, on open connections."""
    url, headers = f"{base_url}/payouts", {"Authorization": f"Bearer {KEY}"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        AsyncPayments(KEY, base_url=base_url, limits=UNPACED) as client,
    ):

        async def dicts() -> Any:
            async with session.get(url) as response:
                return msgspec.json.decode(await response.read())["data"]

        async def dicts_with_fields() -> object:
            return [dict_fields(each) for each in await dicts()]

        async def with_fields() -> object:
            return [fields(each) for each in await client.payouts.list()]

        yield {
            "dicts": dicts,
            "dicts/fields": dicts_with_fields,
            "page": client.payouts.list,
            "page/fields": with_fields,
        }


def repeated(work: Callable[[], object], times: int) -> None:
    """A path, so many times."""
    for _ in range(times):
        work()


async def awaited(read: Callable[[], Awaitable[object]], times: int) -> None:
    """One that waits, so many times."""
    for _ in range(times):
        await read()


def count(counter: Counter, name: str, times: int, work: Callable[[int], object]) -> None:
    """Have what is done so many times counted, for `benchmarks.counting.counts`."""
    work(times)
    gc.collect()
    gc.freeze()
    counter.count(name, times, lambda: work(times))


def main(base_url: str) -> None:
    """Count all."""
    counter = Counter()
    assert counter.present, "to be run under valgrind"
    for name, decode in DECODED.items():
        count(counter, name, ONE, partial(repeated, decode))
    inside.check()  # it reads the unknown field for the first time
    count(counter, "one/later", ONE, partial(repeated, lambda: inside.decoded(LATER_ANSWER)))
    with asyncio.Runner() as runner:
        opened = pages(base_url)
        for name, read in runner.run(opened.__aenter__()).items():
            count(counter, name, PAGE, lambda times, read=read: runner.run(awaited(read, times)))
        runner.run(opened.__aexit__(None, None, None))


if __name__ == "__main__":
    main(*sys.argv[1:])
