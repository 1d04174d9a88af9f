"""The blocking receiver: records are read on the client's loop, handlers run in the caller's thread."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from payments_async._request.auth import hidden
from payments_async.webhooks import MemoryStore, SeenStore, WebhookResponse
from payments_async.webhooks._delivery import REFUSED, Headers, joined
from payments_async.webhooks._lookup import HandOver
from payments_async.webhooks._tokens import Signer
from payments_async.webhooks.receiver import BaseReceiver, PaymentHandler, PayoutHandler, log_failure

from ..client import Payments

T = TypeVar("T")


class WebhookReceiver(BaseReceiver):
    """Makes a URL for each record, and calls the handler with the record after a delivery to that URL.

    As `payments_async.webhooks.WebhookReceiver`, blocking, and usable from any thread. Deliveries are
    unsigned (Events, 3): the record is read through the API, at most every five seconds, and the handler gets
    it once for each state, in the thread that called `receive`.
    """

    def __init__(
        self,
        client: Payments,
        *,
        secrets: Sequence[str | bytes],
        base_url: str,
        on_payout: PayoutHandler | None = None,
        on_payment: PaymentHandler | None = None,
        seen: SeenStore | None = None,
    ) -> None:
        """Check the options; nothing is sent.

        Args:
            client: reads the records; its key is the project's that makes them.
            secrets: one or two of at least 32 bytes, kept for this alone. The first makes URLs, both are
                accepted: to rotate, put the new one first, and drop the old one when its URLs have expired.
            base_url: the public address of your deployment, such as https://shop.example/hooks.
            on_payout: called with each new state of a payout. When it raises, the delivery is answered 500
                and the service tries again: it may see a state twice.
            on_payment: the same for payments and checkouts.
            seen: remembers the states that were handled, called in other threads; the latest 10,000 of this
                process when absent.

        Raises:
            ConfigurationError: an option cannot be used; the message shows nothing of a secret.
        """
        signer, base_url = Signer(secrets), hidden(base_url)
        del secrets  # tracebacks print local variables
        self._bridge = client._bridge
        store = MemoryStore() if seen is None else _ThreadedStore(seen)
        super().__init__(client._async, signer, base_url, on_payout, on_payment, store)

    def receive(
        self,
        *,
        path: str,
        body: bytes | Iterable[bytes] = b"",
        method: str = "POST",
        headers: Headers | None = None,
    ) -> WebhookResponse:
        """Take one delivery; returns the answer to send. Reading its record may take some seconds.

        Args:
            path: as it arrived. Only what follows the last slash counts: mount the receiver anywhere.
            body: the bytes, or their chunks: read when the path is found good, to 256 KiB; how long they may
                take is the web server's to limit.
            method: POST, PUT or PATCH; whatever the content type.
            headers: only X-Payment-Event and X-Payment-Id are read, as hints (gap X).
        """
        delivery = self._admit(method, path)
        if delivery is None:
            return REFUSED
        raw = joined([body] if isinstance(body, bytes) else body)
        if isinstance(raw, WebhookResponse):
            return raw
        try:
            result = self._bridge.call(self._take, delivery, headers or {}, raw)
        except BaseException as stopped:
            hand_over = getattr(stopped, "result", None)
            if isinstance(hand_over, HandOver):  # others wait for its verdict
                self._bridge.call(hand_over.finish, False)
            raise
        return result if isinstance(result, WebhookResponse) else self._hand_over(result)

    def _hand_over(self, hand_over: HandOver) -> WebhookResponse:
        handled = False
        try:
            self._handlers[hand_over.delivery.kind](hand_over.delivery)
            handled = True
        except Exception as error:
            log_failure(error)
        finally:  # also when the thread is interrupted: others wait for the verdict
            answer = self._bridge.call(hand_over.finish, handled)
        return answer


class _ThreadedStore:
    """Calls a store, whose methods may block, in threads: the loop serves every client of the process."""

    def __init__(self, store: SeenStore) -> None:
        self._store = store

    async def seen(self, state: str) -> bool:
        """Return whether this state of a record was handled."""
        return await _called(self._store.seen, state)

    async def add(self, state: str) -> None:
        """Remember that this state was handled."""
        await _called(self._store.add, state)


async def _called(method: Callable[[str], T | Awaitable[T]], state: str) -> T:
    given = await asyncio.to_thread(method, state)
    return await given if inspect.isawaitable(given) else given
