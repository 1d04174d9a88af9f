"""Makes webhook URLs, and reads the record that a delivery to such a URL is about."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterable, Sequence
from typing import TYPE_CHECKING

from .._request.auth import hidden
from ._coalescing import HandOver
from ._deduplication import MemoryStore, SeenStore, awaited
from ._payload import read_body
from ._receiver import DeliveryReceiver
from ._tokens import SealedSecrets
from ._urls import PaymentHandler, PayoutHandler, UrlMaker, handlers
from ._values import REFUSED, Headers, WebhookResponse

if TYPE_CHECKING:
    from ..client import AsyncPayments

log: logging.Logger = logging.getLogger("payments.webhooks")


class WebhookReceiver(UrlMaker):
    """Makes a URL for each record, and calls the handler with the record after a delivery to that URL.

    Deliveries are unsigned (Events, 3), so nothing in them is trusted. The URL, which only this receiver can
    make, says which record is meant. The record is read through the API, at most every five seconds, and the
    handler gets it once for each state (its status; for a payment, also its attempt's).
    """

    def __init__(
        self,
        client: AsyncPayments,
        *,
        secrets: Sequence[str | bytes],
        base_url: str,
        on_payout: PayoutHandler | None = None,
        on_payment: PaymentHandler | None = None,
        seen: SeenStore | None = None,
        max_pages: int = 20,
    ) -> None:
        """Check the options; nothing is sent, and no running loop is needed.

        Args:
            client: reads the records; its key is the project's that makes them.
            secrets: one or two of at least 32 bytes, kept for this alone. The first makes URLs, both are
                accepted: to rotate, put the new one first, and drop the old one when its URLs have expired.
            base_url: the public address of your deployment, such as https://shop.example/hooks.
            on_payout: called with each new state of a payout, a plain or a coroutine function. When it
                raises, the delivery is answered 500 and the service tries again: it may see a state twice.
            on_payment: called likewise for payments and checkouts.
            seen: remembers the states that were handled; the latest 10,000 of this process when absent.
            max_pages: pages of 100 that are read at most to find a record.

        Raises:
            ConfigurationError: an option cannot be used; the message shows nothing of a secret.
        """
        sealed, base_url = SealedSecrets(secrets), hidden(base_url)
        del secrets  # tracebacks print local variables
        self._handlers = handlers(on_payout, on_payment)
        self._deliveries = DeliveryReceiver(client, sealed, base_url, seen or MemoryStore(), max_pages)
        self._tasks: set[asyncio.Task[WebhookResponse]] = set()

    async def receive(
        self,
        *,
        path: str,
        body: bytes | AsyncIterable[bytes] = b"",
        method: str = "POST",
        headers: Headers | None = None,
    ) -> WebhookResponse:
        """Take one delivery; returns the answer to send. Raises nothing of its own.

        The handler runs to its end even when the caller is cancelled.

        Args:
            path: as it arrived. Only what follows the last slash counts: mount the receiver anywhere.
            body: the bytes, or their chunks: read when the path is found good, to 256 KiB and for 10 seconds.
            method: POST, PUT or PATCH; whatever the content type.
            headers: only X-Payment-Event and X-Payment-Id are read, as hints (gap X).
        """
        delivery = self._deliveries.admit(method, path, self._handlers)
        if delivery is None:
            return REFUSED
        raw = await read_body(body, self._deliveries.runtime)
        result = (
            raw
            if isinstance(raw, WebhookResponse)
            else await self._deliveries.take(delivery, headers or {}, raw)
        )
        if isinstance(result, WebhookResponse):
            return result
        task = asyncio.get_running_loop().create_task(self._hand_over(result))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)

    async def _hand_over(self, hand_over: HandOver) -> WebhookResponse:
        try:
            await awaited(self._handlers[hand_over.delivery.kind](hand_over.delivery))
        except Exception as error:
            log_failure(error)
            return await hand_over.finish(False)
        except BaseException:
            hand_over.abandon()
            raise
        return await hand_over.finish(True)


def log_failure(error: Exception) -> None:
    """Log the handler's own error."""
    log.error("a webhook handler failed, the service will try again", exc_info=error)
