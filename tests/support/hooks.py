"""One URL of a webhook receiver, on a clock that jumps, in front of a service that says what it is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from payments_async._http.types import HTTPResponse
from payments_async.webhooks import WebhookResponse
from tests.support.motion import Played, play
from tests.support.receivers import make_receiver
from tests.support.scripted import answer

EMPTY = answer(200, {"data": []})
BODY = b'{"event": "payout.completed", "payout": {"id": "po_1"}}'


def listed(status: str = "pending", reference: str | None = "r-1", **changes: Any) -> HTTPResponse:
    """A page with one payout."""
    return answer(200, {"data": [{"id": "po_1", "status": status, "reference": reference, **changes}]})


class Hook:
    """A URL for the payout r-1."""

    def __init__(self, connect: Callable[..., Any], handler: Any, *script: Any, **options: Any) -> None:
        self.played: Played = play(connect, *script)
        self.receiver = make_receiver(self.played.client, on_payout=handler, **options)
        self.url = self.receiver.url_for_payout("r-1")

    async def arrive(self, body: Any = BODY, **given: Any) -> WebhookResponse:
        """A delivery comes."""
        found: WebhookResponse = await self.receiver.receive(path=self.url, body=body, **given)
        return found

    @property
    def coalescers(self) -> list[Any]:
        """What is under way, loop by loop."""
        return list(self.receiver._loops.values())

    @property
    def waiting(self) -> int:
        return sum(url.waiting for each in self.coalescers for url in each._urls.values())

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """The clock does not jump."""
        self.played.runtime.busy += 1
        try:
            yield
        finally:
            self.played.runtime.busy -= 1

    @property
    def reads(self) -> int:
        """Requests sent."""
        return len(self.played.transport.requests)

    @property
    def now(self) -> float:
        """Seconds since the beginning."""
        return self.played.runtime.monotonic()
