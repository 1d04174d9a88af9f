"""What a client remembers grows neither with its waits nor with the secret keys that it is given."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from payments_async import WaitTimeout
from payments_async._rate_limit.key_limiter import KeyLimiter
from payments_async._request.key_state import MOST_KEYS
from tests.support.motion import Played, listed, play
from tests.support.surfaces import Connect

AT_ONCE, ROUNDS = 20, 20


async def grown(played: Played, work: Callable[[int], Awaitable[Any]]) -> float:
    """Bytes that remain of each number, after as many were worked on before."""
    tracemalloc.start()
    before = 0
    for number in range(2 * ROUNDS):
        await asyncio.gather(*(work(number * AT_ONCE + each) for each in range(AT_ONCE)))
        played.transport.requests.clear()
        played.runtime.slept.clear()
        gc.collect()
        if number + 1 == ROUNDS:
            before = tracemalloc.get_traced_memory()[0]
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return (after - before) / (ROUNDS * AT_ONCE)


async def test_a_long_wait_leaves_nothing_behind(connect: Connect, caplog: pytest.LogCaptureFixture) -> None:
    played = play(connect, listed())

    async def wait(number: int) -> None:
        with pytest.raises(WaitTimeout):
            await played.client.payouts.wait(f"po_{number}", deadline=40.0)
        caplog.clear()

    assert await grown(played, wait) < 100


def with_key_of(connect: Connect) -> tuple[Played, Callable[[int], Awaitable[Any]]]:
    """A client that is given a key for each call, and its call with the key of a number."""
    keys = ["sk_sandbox_first"]
    played = play(connect, listed(), api_key=lambda: keys[-1])

    async def call(number: int) -> None:
        keys[-1] = f"sk_sandbox_{number:032d}"
        await played.client.payouts.list()

    return played, call


async def test_a_key_that_was_rotated_away_leaves_nothing_behind(connect: Connect) -> None:
    played, call = with_key_of(connect)
    for number in range(6 * MOST_KEYS):
        await call(number)
        played.runtime.advance(61.0)  # its minute is over
    gc.collect()
    assert sum(isinstance(each, KeyLimiter) for each in gc.get_objects()) < 4 * MOST_KEYS
