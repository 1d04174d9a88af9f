"""What a client remembers grows neither with its waits nor with the secret keys that it is given."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc

import pytest

from payments_async import WaitTimeout
from payments_async._rate_limit.key_limiter import KeyLimiter
from payments_async._request.key_state import MOST_KEYS
from tests.support.motion import listed, play
from tests.support.surfaces import Connect

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


async def test_a_key_that_was_rotated_away_leaves_nothing_behind(connect: Connect) -> None:
    numbers = iter(range(6 * MOST_KEYS))
    played = play(connect, listed(), api_key=lambda: f"sk_sandbox_{next(numbers):032d}")
    for _ in range(6 * MOST_KEYS):
        await played.client.payouts.list()
        played.runtime.advance(61.0)  # its minute is over
    gc.collect()
    assert sum(isinstance(each, KeyLimiter) for each in gc.get_objects()) < 4 * MOST_KEYS
