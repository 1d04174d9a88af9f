"""Webhook receivers of either surface, to be awaited in any case, and what brings deliveries to them."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from payments_async.sandbox import Delivery
from payments_async.webhooks import TrustedDelivery, WebhookReceiver, WebhookResponse
from tests.support.canary import NEEDLE
from tests.support.surfaces import Awaitable

SECRET = f"webhooks {NEEDLE} first of two"
OLD_SECRET = f"webhooks {NEEDLE} second of two"
HOOKS = "https://shop.example/hooks"


class Handler:
    """Keeps what it was given, and raises what it was told to."""

    def __init__(self, *errors: Exception | None) -> None:
        self.given: list[TrustedDelivery[Any]] = []
        self._errors = list(errors)

    def __call__(self, delivery: TrustedDelivery[Any]) -> None:
        self.given.append(delivery)
        if self._errors and (error := self._errors.pop(0)) is not None:
            raise error

    @property
    def states(self) -> list[tuple[str | None, str | None]]:
        """Each call's record: its reference, or that of the URL, and its status."""
        return [(each.reference, each.record.status) for each in self.given]

    @property
    def ends(self) -> list[tuple[str, bool]]:
        """The same without the service's words, which differ between gap profiles: whether it is final."""
        return [(each.reference, each.record.is_final) for each in self.given]


def make_receiver(client: Any, **options: Any) -> Any:
    """A receiver on a client of either surface (`tests.support.surfaces`)."""
    given = {"secrets": [SECRET], "base_url": HOOKS, **options}
    if not isinstance(client, Awaitable):
        return WebhookReceiver(client, **given)
    from payments_sync import webhooks

    return Awaitable(webhooks.WebhookReceiver(client._blocking, **given), WebhookReceiver)


async def bring(receiver: Any, delivery: Delivery) -> WebhookResponse:
    answer: WebhookResponse = await receiver.receive(path=urlsplit(delivery.url).path, body=delivery.body)
    return answer
