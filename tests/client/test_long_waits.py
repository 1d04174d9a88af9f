"""Every 30 seconds of a wait, a line in the log says for what; and a wait leaves nothing behind."""

from __future__ import annotations

import asyncio
import gc
import logging
import re
import tracemalloc
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest

from payments_async import AsyncPayments, PaymentsError, RateLimits, WaitTimeout
from tests.support.limit_stores import Fleet
from tests.support.motion import PAYOUT, listed, payout_answer, play
from tests.support.scripted import ScriptedTransport
from tests.support.simulated import run_simulated
from tests.support.surfaces import Connect


async def second_in_a_minute(client: AsyncPayments) -> None:
    await client.payouts.create(**PAYOUT)
    await client.payouts.create(**{**PAYOUT, "reference": "r-2"})


async def in_bulk(client: AsyncPayments) -> None:
    await client.send(client.payouts.prepare(**PAYOUT), priority="bulk")


async def for_the_payout(client: AsyncPayments) -> None:
    await client.payouts.wait("po_1", deadline=300.0)


WAITS: dict[str, tuple[Any, dict[str, Any], Callable[[AsyncPayments], Awaitable[None]], str]] = {
    "rate limit": (
        payout_answer(),
        {"limits": RateLimits(writes=1), "limit_store": None},
        second_in_a_minute,
        "payouts.create waits for the rate limit",
    ),
    "limit store": (
        payout_answer(),
        {},
        second_in_a_minute,
        "payouts.create waits for the limit store: .*cannot be reached|the limit store cannot be used",
    ),
    "limit store, in bulk": (
        payout_answer(),
        {},
        in_bulk,
        "payouts.create waits for the limit store: .*cannot be reached",
    ),
    "payout": (
        listed({"id": "po_1", "status": "pending"}),
        {"limit_store": None},
        for_the_payout,
        "the payout po_1 is not final yet",
    ),
}
"""{waited for: the service's answer, options, the call, the log's words}; a limit store is away."""


@pytest.mark.parametrize("what", WAITS)
def test_a_wait_is_in_the_log_every_30_seconds(what: str, caplog: pytest.LogCaptureFixture) -> None:
    said, options, wait, told = WAITS[what]
    times = [0.0]

    async def main() -> None:
        async with Fleet(ScriptedTransport(said), **options) as world:

            class Times(logging.Handler):
                def emit(self, record: logging.LogRecord) -> None:
                    if re.search(told, record.getMessage()):
                        times.append(world.runtime.monotonic())

            logging.getLogger("payments").addHandler(handler := Times())
            world.server.down = None if options else "refused"
            try:
                await wait(world.clients[0])
            except PaymentsError:
                assert world.runtime.monotonic() < 310.0
            finally:
                logging.getLogger("payments").removeHandler(handler)
            times.append(world.runtime.monotonic())

    with caplog.at_level(logging.INFO, "payments"):
        run_simulated(main())
    assert times[-1] > 29.0
    assert max(after - before for before, after in pairwise(times)) <= 32.0


AT_ONCE, ROUNDS = 20, 20


async def test_a_long_wait_leaves_nothing_behind(connect: Connect, caplog: pytest.LogCaptureFixture) -> None:
    played = play(connect, listed())

    async def wait(number: int) -> None:
        with pytest.raises(WaitTimeout):
            await played.client.payouts.wait(f"po_{number}", deadline=40.0)
        caplog.clear()

    held = []
    tracemalloc.start()
    for number in range(2 * ROUNDS):
        await asyncio.gather(*(wait(number * AT_ONCE + each) for each in range(AT_ONCE)))
        played.transport.requests.clear()
        played.runtime.slept.clear()
        gc.collect()
        held.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert held[-1] - held[ROUNDS - 1] < 100 * ROUNDS * AT_ONCE
