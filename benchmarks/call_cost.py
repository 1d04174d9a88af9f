"""What does a whole `payouts.create` cost in CPU, against what a careful user writes with bare aiohttp?"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import aiohttp

from benchmarks.answer_server import answering
from benchmarks.bodies import ARGUMENTS, BODY, PAYOUT_ANSWER
from benchmarks.pairs import HEADER, ratios, row
from payments_async import AsyncPayments, RateLimits

CALLS = 4_000
KEY = "sk_sandbox_benchmark"
UNPACED = RateLimits(writes=10**8, burst=10**8)
"""The gate is passed as always; it only never makes anybody wait."""


async def timed(call: Callable[[], Awaitable[object]], in_flight: int) -> float:
    """CPU seconds per call, so many under way at once."""

    async def work(calls: int) -> None:
        for _ in range(calls):
            await call()

    await work(50)
    started = time.process_time()
    await asyncio.gather(*(work(CALLS // in_flight) for _ in range(in_flight)))
    return (time.process_time() - started) / CALLS


async def ours(base_url: str, in_flight: int) -> float:
    """The SDK: checked, keyed, paced, retried, typed."""
    async with AsyncPayments(KEY, base_url=base_url, limits=UNPACED) as client:
        return await timed(lambda: client.payouts.create(**ARGUMENTS), in_flight)


async def bare(base_url: str, in_flight: int) -> float:
    """aiohttp by hand: post a dict, read a dict."""
    headers = {"Authorization": f"Bearer {KEY}"}
    async with aiohttp.ClientSession(headers=headers) as session:

        async def call() -> object:
            async with session.post(f"{base_url}/payouts", json=BODY) as response:
                return await response.json()

        return await timed(call, in_flight)


def main() -> None:
    """Print the table."""
    print("### `payouts.create` over bare aiohttp\n")
    print(HEADER)
    with answering(PAYOUT_ANSWER) as base_url:
        for in_flight in (1, 64, 256):

            def sdk(in_flight: int = in_flight) -> float:
                return asyncio.run(ours(base_url, in_flight))

            def by_hand(in_flight: int = in_flight) -> float:
                return asyncio.run(bare(base_url, in_flight))

            print(row(f"{in_flight} in flight", ratios(sdk, by_hand)), flush=True)


if __name__ == "__main__":
    main()
