"""What a stranger can do to a webhook receiver: forge its URLs, and repeat what it was once given.

    python -m tests.campaigns.webhooks 1000000

So many forged paths: none may be accepted, no request may leave, memory may not grow. Then so many repeats of
a delivery to a valid URL, over simulated time in which the payout moves now and then: no minute may hold more
than twelve requests, no state may be missed or told twice, memory may not grow. Exits 1 on a breach.
"""

from __future__ import annotations

import asyncio
import base64
import json
import random
import resource
import sys
from collections.abc import Iterator
from typing import Any

import attrs

from payments_async import AsyncPayments
from payments_async._http.types import HTTPRequest, HTTPResponse
from payments_async.webhooks import TrustedDelivery, WebhookReceiver
from payments_async.webhooks._tokens import SealedSecrets, Signer, TokenClaims, make
from tests.campaigns.pacing import fullest_sliding
from tests.support.scripted import answer
from tests.support.simulated import EPOCH, SimulatedRuntime, run_simulated

SECRET = "the shop's own, of 32 bytes or more"
OLD = "the one that it is about to replace"
BURST = 1_000
"""Repeats that come at once."""
APART = 0.6
"""Simulated seconds between bursts."""
MOVES = 11.0
"""Simulated seconds in which the payout's status stays what it is."""
GROWTH = 8_192
"""Kilobytes that the process may grow by: pools of the interpreter, not what arrived."""


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
    tried: int
    accepted: int
    """Forgeries that were not refused, or repeats of which nobody knows what became of them."""
    requests: int
    fullest: int
    """Requests in the fullest minute."""
    told: tuple[str | None, ...]
    """The states that the handler was given, in order."""
    last: str | None
    """The state in which the service's payout was last seen."""
    grown: int
    """Kilobytes of memory after a tenth of it, to the end."""


def make_receiver(service: Service, told: list[str | None], seed: int) -> tuple[WebhookReceiver, str]:
    def handler(delivery: TrustedDelivery[Any]) -> None:
        told.append(delivery.record.status)

    client = AsyncPayments(
        "sk_sandbox_campaign",
        base_url="http://127.0.0.1:9/v1",
        runtime=SimulatedRuntime(seed),
        transport=service,
    )
    receiver = WebhookReceiver(
        client, secrets=[SECRET, OLD], base_url="https://shop.example/hooks", on_payout=handler
    )
    return receiver, receiver.url_for_payout("r-1")


def forgeries(valid: str, chance: random.Random) -> Iterator[str]:
    """Paths without end that nobody minted."""
    prefix, _, token = valid.rpartition("/")
    raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    strangers = Signer(SealedSecrets(["a stranger's own secret of 32 bytes"]))
    now = int(EPOCH.timestamp())

    def written(data: bytes) -> str:
        return base64.urlsafe_b64encode(data).rstrip(b"=").decode()

    def flipped() -> str:
        changed = bytearray(raw)
        bit = chance.randrange(len(changed) * 8)
        changed[bit // 8] ^= 1 << bit % 8
        return written(bytes(changed))

    def signed_otherwise() -> str:
        return make(strangers, TokenClaims("payout", "r-1", now, now + chance.randrange(9_999)))

    def expired() -> str:
        ours = Signer(SealedSecrets([chance.choice([SECRET, OLD])]))
        return make(ours, TokenClaims("payout", f"r-{chance.random()}", now - 9, now - chance.randrange(5)))

    ways = (
        flipped,
        signed_otherwise,
        expired,
        lambda: token[: chance.randrange(len(token))],
        lambda: token + chance.choice(["A", "=", "/", "?a=b", "%41"]),
        lambda: written(chance.randbytes(chance.randrange(1, 900))),
        lambda: raw.hex(),
        lambda: token.replace(chance.choice(token), "+"),
    )
    while True:
        yield f"{prefix}/{chance.choice(ways)()}"


async def forge(tries: int, seed: int) -> Found:
    service, told = Service(), list[str | None]()
    receiver, url = make_receiver(service, told, seed)
    accepted, memory = 0, 0
    paths = forgeries(url, random.Random(seed))
    for number in range(tries):
        path = next(paths)
        if number == tries // 10:
            memory = kilobytes()
        found = await receiver.receive(path=path, body=b'{"event": "payout.completed"}')
        accepted += found.status != 404
    return _found(tries, accepted, service, told, memory)


async def repeat(tries: int, seed: int) -> Found:
    """Bring a valid delivery again and again, in bursts."""
    service, told = Service(), list[str | None]()
    receiver, url = make_receiver(service, told, seed)
    body = json.dumps({"event": "payout.completed", "payout": {"id": "po_1"}}).encode()
    statuses: dict[int, int] = {}
    memory = 0

    async def bring() -> None:
        status = (await receiver.receive(path=url, body=body)).status
        statuses[status] = statuses.get(status, 0) + 1

    async with asyncio.TaskGroup() as deliveries:
        for number in range(0, tries, BURST):
            for _ in range(min(BURST, tries - number)):
                deliveries.create_task(bring())
            await asyncio.sleep(APART)
            if number <= tries // 10:
                memory = kilobytes()
    lost = tries - statuses.get(200, 0) - statuses.get(503, 0)
    return _found(tries, lost, service, told, memory)


def _found(tries: int, accepted: int, service: Service, told: list[str | None], memory: int) -> Found:
    grown = kilobytes() - memory
    fullest = fullest_sliding(service.asked)
    return Found(tries, accepted, len(service.asked), fullest, tuple(told), service.last, grown)


def kilobytes() -> int:
    """The most memory this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 if sys.platform == "darwin" else 1)


def breaches_of_forging(found: Found) -> list[str]:
    rules = {
        f"{found.accepted} forged deliveries were not refused": found.accepted > 0,
        f"{found.requests} requests left": found.requests > 0,
        f"the handler was called {len(found.told)} times": bool(found.told),
        f"memory grew by {found.grown} kB": found.grown > GROWTH,
    }
    return [told for told, broken in rules.items() if broken]


def breaches_of_repeating(found: Found) -> list[str]:
    rules = {
        f"{found.accepted} deliveries were answered otherwise": found.accepted > 0,
        f"a minute held {found.fullest} requests": found.fullest > 12,
        f"a state was told twice, of {len(found.told)}": len(set(found.told)) != len(found.told),
        f"the last state {found.last} was not told": not found.told or found.told[-1] != found.last,
        f"memory grew by {found.grown} kB": found.grown > GROWTH,
    }
    return [told for told, broken in rules.items() if broken]


def main(tries: int = 1_000_000) -> int:
    forging = breaches_of_forging(run_simulated(forge(tries, 1)))
    repeating = breaches_of_repeating(run_simulated(repeat(tries, 1)))
    print(
        f"{tries:,} forged: {forging or 'none accepted'}; {tries:,} repeats: {repeating or 'as they should'}"
    )
    return int(bool(forging or repeating))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
