"""Hostile answers by the thousand: `python -m tests.campaigns.hostile 100000 [seed]`.

Each case starts from a valid answer of some operation, spoils it (fields dropped, nulled, retyped, nested,
duplicated; bytes cut and flipped; another status, other headers) and sends it through the whole client. The
judge reads the spoilt bytes with the standard library and accepts only what a careful client may say of them.
Prints the outcomes; exits 1 when the client said anything else.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import attrs

from payments_async import AsyncPayments, RateLimits
from payments_async._http.types import HTTPRequest, HTTPResponse
from tests.campaigns.judge import Verdict, judge
from tests.campaigns.spoiling import Spoilt, spoil
from tests.support.calls import OPERATIONS
from tests.support.jumping import JumpingRuntime
from tests.support.scripted import ScriptedTransport

FAST = RateLimits(
    writes=10**9, reads=10**9, diagnostics=10**9, diagnostics_per_record=10**9, refund_availability=10**9
)


@attrs.define
class Report:
    outcomes: Counter[str] = attrs.field(factory=Counter)
    breaches: list[str] = attrs.field(factory=list)

    def add(self, number: int, case: Spoilt, verdict: Verdict) -> None:
        self.outcomes[f"{'create' if case.operation.creates else 'read'}: {verdict.outcome}"] += 1
        if verdict.breach:
            how = ", ".join(case.how)
            self.breaches.append(f"case {number}, {case.operation.name} ({how}): {verdict.breach}")


class Campaign:
    """A client of any surface before a service that plays the cases."""

    def __init__(self, make_client: Callable[..., Any], seed: int) -> None:
        self._rng = random.Random(seed)
        self._runtime = JumpingRuntime(seed)
        self._transport = ScriptedTransport(self._play)
        self._client = make_client(
            transport=self._transport, runtime=self._runtime, limits=FAST, max_retries=0
        )
        self._case: Spoilt | None = None

    def _play(self, _: HTTPRequest) -> HTTPResponse:
        assert self._case is not None
        return self._case.answer

    async def run(self, cases: int) -> Report:
        report = Report()
        names: Sequence[str] = list(OPERATIONS)
        for number in range(cases):
            self._case = case = spoil(OPERATIONS[self._rng.choice(names)], self._rng)
            self._transport.requests.clear()
            self._runtime.advance(4000.0)  # a 429 closes a gate for an hour at most
            told = await self._told(case)
            sent = len(self._transport.requests)
            report.add(number, case, judge(case, told, sent))
        return report

    async def _told(self, case: Spoilt) -> Any:
        try:
            return await case.operation.call(self._client)
        except Exception as error:
            return error


@asynccontextmanager
async def campaign_of(kind: Callable[..., Any], seed: int) -> AsyncIterator[Any]:
    """A campaign before an awaited client of its own."""
    async with AsyncExitStack() as stack:

        def make(**options: Any) -> AsyncPayments:
            client = AsyncPayments("sk_sandbox_0123456789abcdef", base_url="http://127.0.0.1:9/v1", **options)
            stack.push_async_callback(client.aclose)
            return client

        yield kind(make, seed)


def counted(outcomes: Mapping[str, int], told: str, breaches: Sequence[str]) -> int:
    """Print how often each outcome was met, and the first breaches; the exit code."""
    for outcome, count in sorted(outcomes.items()):
        print(f"{count:>9,}  {outcome}")
    print(told)
    print("\n".join(breaches[:20]))
    return 1 if breaches else 0


async def main(cases: int = 100_000, seed: int = 0) -> int:
    started = time.perf_counter()
    async with campaign_of(Campaign, seed) as campaign:
        report = await campaign.run(cases)
    took = time.perf_counter() - started
    told = f"{cases:,} cases, seed {seed}, {took:.0f} s, {len(report.breaches)} breaches"
    return counted(report.outcomes, told, report.breaches)


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*map(int, sys.argv[1:]))))
