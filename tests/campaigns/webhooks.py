"""Deliveries that are repeated for ever: `python -m tests.campaigns.webhooks 1000000`.

So many repeats of a delivery to a valid URL, over simulated time in which the payout moves now and then: no
minute may hold more than twelve requests, no state may be missed or told twice. Exits 1 on a breach.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import attrs

from payments_async import AsyncPayments
from payments_async._http.types import HTTPRequest, HTTPResponse, Transport
from payments_async.webhooks import TrustedDelivery, WebhookReceiver
from tests.campaigns.pacing import fullest_sliding
from tests.support.scripted import answer
from tests.support.simulated import SimulatedRuntime, run_simulated

BURST = 1_000
"""Repeats that come at once."""
APART = 0.6
"""Simulated seconds between bursts."""
MOVES = 11.0
"""Simulated seconds in which the payout's status stays what it is."""


class Service:
    def __init__(self) -> None:
        self.asked: list[float] = []
        self.last: str | None = None

    async def send(self, request: HTTPRequest) -> HTTPResponse:
        """The list as it is at this moment."""
        request.sent = True
        now = asyncio.get_running_loop().time()
        self.asked.append(now)
        self.last = f"step_{int(now / MOVES)}"
        return answer(200, {"data": [{"id": "po_1", "reference": "r-1", "status": self.last}]})

    async def aclose(self) -> None:
        """Nothing is open."""


@attrs.frozen
class Found:
    lost: int
    """Repeats of which nobody knows what became of them."""
    fullest: int
    """Requests in the fullest minute."""
    told: tuple[str | None, ...]
    """The states that the handler was given, in order."""
    last: str | None
    """The state in which the service's payout was last seen."""


def receiver_of(
    service: Transport, seed: int, handler: Callable[[TrustedDelivery[Any]], None]
) -> WebhookReceiver:
    """A receiver whose client reads this service, in simulated time."""
    client = AsyncPayments(
        "sk_sandbox_campaign",
        base_url="http://127.0.0.1:9/v1",
        runtime=SimulatedRuntime(seed),
        transport=service,
    )
    return WebhookReceiver(
        client,
        secrets=["the shop's own, of 32 bytes or more"],
        base_url="https://shop.example/hooks",
        on_payout=handler,
    )


async def repeat(tries: int, seed: int) -> Found:
    """Bring a valid delivery again and again, in bursts."""
    service, told, statuses = Service(), list[str | None](), Counter[int]()

    def handler(delivery: TrustedDelivery[Any]) -> None:
        told.append(delivery.record.status)

    receiver = receiver_of(service, seed, handler)
    url = receiver.url_for_payout("r-1")
    body = json.dumps({"event": "payout.completed", "payout": {"id": "po_1"}}).encode()

    async def bring() -> None:
        statuses[(await receiver.receive(path=url, body=body)).status] += 1

    async with asyncio.TaskGroup() as deliveries:
        for number in range(0, tries, BURST):
            for _ in range(min(BURST, tries - number)):
                deliveries.create_task(bring())
            await asyncio.sleep(APART)
    lost = tries - statuses[200] - statuses[503]
    return Found(lost, fullest_sliding(service.asked), tuple(told), service.last)


def breaches(found: Found) -> list[str]:
    rules = {
        f"{found.lost} deliveries were answered otherwise": found.lost > 0,
        f"a minute held {found.fullest} requests": found.fullest > 12,
        f"a state was told twice, of {len(found.told)}": len(set(found.told)) != len(found.told),
        f"the last state {found.last} was not told": not found.told or found.told[-1] != found.last,
    }
    return [told for told, broken in rules.items() if broken]


def main(tries: int = 1_000_000) -> int:
    wrong = breaches(run_simulated(repeat(tries, 1)))
    print(f"{tries:,} repeats: {wrong or 'as they should'}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
