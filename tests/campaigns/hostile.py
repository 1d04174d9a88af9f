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
from collections.abc import Callable, Sequence
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
    """What came of the cases."""

    outcomes: Counter[str] = attrs.field(factory=Counter)
    breaches: list[str] = attrs.field(factory=list)

    def add(self, number: int, case: Spoilt, verdict: Verdict) -> None:
        """Count one case."""
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
        """Play so many cases."""
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
        """What the client returned or raised."""
        try:
            return await case.operation.call(self._client)
        except Exception as error:
            return error


async def main(cases: int, seed: int) -> int:
    """Run and print; the exit code."""
    started = time.perf_counter()
    client: list[AsyncPayments] = []

    def make(**options: Any) -> AsyncPayments:
        client.append(
            AsyncPayments("sk_sandbox_0123456789abcdef", base_url="http://127.0.0.1:9/v1", **options)
        )
        return client[0]

    report = await Campaign(make, seed).run(cases)
    await client[0].aclose()
    for outcome, count in sorted(report.outcomes.items()):
        print(f"{count:>9,}  {outcome}")
    took = time.perf_counter() - started
    print(f"{cases:,} cases, seed {seed}, {took:.0f} s, {len(report.breaches)} breaches")
    print("\n".join(report.breaches[:20]))
    return 1 if report.breaches else 0


if __name__ == "__main__":
    arguments = [int(text) for text in sys.argv[1:]] or [100_000]
    sys.exit(asyncio.run(main(arguments[0], arguments[1] if len(arguments) > 1 else 0)))
