"""So many pending payouts waited for at once: how often the service is read for all of them.

    python -m tests.campaigns.waits 10000

Simulated time; a service in the process ends each payout at a moment of its own within twenty minutes.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import sys
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import attrs

from payments_async import AsyncPayments
from payments_async._http.types import HTTPRequest, HTTPResponse
from payments_async.models import Payout
from tests.support.scripted import answer
from tests.support.simulated import EPOCH, SimulatedRuntime, run_simulated

PAGE = 100
LIFE = 1200.0
"""Seconds within which every payout ends."""


class Service:
    def __init__(self, count: int, seed: int) -> None:
        chance = random.Random(seed)
        self.ends = [chance.uniform(10.0, LIFE) for _ in range(count)]
        self.walks: list[float] = []
        """When a walk of the list began."""
        self.reads: list[float] = []

    async def send(self, request: HTTPRequest) -> HTTPResponse:
        """One page, in 20 ms."""
        request.sent = True
        now = asyncio.get_running_loop().time()
        first = int(parse_qs(urlsplit(request.url).query).get("cursor", ["0"])[0])
        self.reads.append(now)
        if first == 0:
            self.walks.append(now)
        await asyncio.sleep(0.02)
        last = min(first + PAGE, len(self.ends))
        items = [self._payout(number, now) for number in range(first, last)]
        cursor = str(last) if last < len(self.ends) else None
        return answer(200, {"data": items, "pagination": {"next_cursor": cursor}})

    async def aclose(self) -> None:
        """Nothing is open."""

    def _payout(self, number: int, now: float) -> dict[str, object]:
        ended = self.ends[number] <= now
        moment = (EPOCH + timedelta(seconds=self.ends[number])).isoformat()
        status = "completed" if ended else "pending"
        return {"id": f"po_{number}", "status": status, "completed_at": moment if ended else None}


@attrs.frozen
class Run:
    ended: int
    reads: int
    most_a_minute: int
    """Reads in the fullest minute after the first walk."""
    shortest_interval: float
    """Seconds between two walks of the list, at least."""
    latest: float
    """Seconds by which a payout's end was noticed late, at most."""


def run(count: int, seed: int = 1) -> Run:
    service = Service(count, seed)
    noticed = run_simulated(_wait_for_all(service, seed))
    later = [moment for moment in service.reads if moment >= service.walks[1]]
    spans = [after - before for before, after in itertools.pairwise(service.walks)]
    late = [seen - end for seen, end in zip(noticed, service.ends, strict=True)]
    fullest = max(sum(start <= moment < start + 60.0 for moment in later) for start in later)
    return Run(len(noticed), len(service.reads), fullest, min(spans), max(late))


async def _wait_for_all(service: Service, seed: int) -> list[float]:
    runtime = SimulatedRuntime(seed)
    client = AsyncPayments(
        "sk_sandbox_waits", base_url="http://127.0.0.1:9/v1", runtime=runtime, transport=service
    )

    async def wait(number: int) -> float:
        made = Payout(id=f"po_{number}", status="pending", created_at=EPOCH)
        final = await client.payouts.wait(made, deadline=2 * LIFE)
        assert final.is_successful
        return runtime.monotonic()

    return await asyncio.gather(*(wait(number) for number in range(len(service.ends))))


def main(count: int, seed: int = 1) -> int:
    found = run(count, seed)
    print(found)
    return 0 if found.most_a_minute <= 100 and found.ended == count else 1  # 1 % of the limit is 100


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
