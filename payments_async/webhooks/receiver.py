"""Makes webhook URLs, and reads the record that a delivery to such a URL is about."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterable, Callable, Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

from .._request.auth import hidden
from .._runtime import Runtime
from ..client import AsyncPayments
from ..errors import ConfigurationError, InvalidRequest
from ..models import PaymentIntent, Payout
from . import _tokens
from ._delivery import REFUSED, Headers, Kind, TrustedDelivery, WebhookResponse, read_body, read_hint
from ._lookup import DeliveryCoalescer, HandOver, MemoryStore, ReceivedDelivery, SeenStore, awaited
from ._tokens import LONGEST_URL, Signer, TokenClaims

MONTH: Final = 30 * 86_400.0
"""Seconds for which a URL is valid by default."""
_METHODS: Final = frozenset({"POST", "PUT", "PATCH"})
PayoutHandler = Callable[[TrustedDelivery[Payout]], object]
PaymentHandler = Callable[[TrustedDelivery[PaymentIntent]], object]

log: logging.Logger = logging.getLogger("payments.webhooks")


class BaseReceiver:
    """Base of the awaited and the blocking receiver: makes URLs, admits deliveries, finds their records.

    No delivery is answered 200 before the handler has taken the record's state. So each state is handled at
    least once, as long as the service tries again after a 500 or 503.
    """

    def __init__(
        self,
        client: AsyncPayments,
        signer: Signer,
        base_url: object,
        on_payout: PayoutHandler | None,
        on_payment: PaymentHandler | None,
        store: SeenStore,
    ) -> None:
        self._handlers = _handlers(on_payout, on_payment)
        if signer.problem:
            raise ConfigurationError(signer.problem)
        if problem := _tokens.fault_of_address(base_url, client._pipeline.settings.plain_hosts):
            raise ConfigurationError(f"base_url must be {problem}")
        self._signer = signer
        self.base_url: str = str(base_url).rstrip("/")
        """The address below which URLs are made, without a slash at its end."""
        self._client, self._store = client, store
        self._runtime: Runtime = client._internal.runtime
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, DeliveryCoalescer] = WeakKeyDictionary()

    def url_for_payout(self, reference: str, *, expires_in: float = MONTH) -> str:
        """Make the URL for the payout that you are about to create; pass it as `webhook_url=`.

        Make a URL for each payout, when you create or prepare it, and send the same URL with every retry: it
        is a part of the request. A reference has the same URL until the day ends (UTC). The payout has to be
        created within a day.

        Args:
            reference: the payout's `reference`, 1 to 191 characters.
            expires_in: seconds after which deliveries to it are refused, rounded up to the end of a day.

        Raises:
            InvalidRequest: it cannot be made of these, or is longer than 2048 characters (Endpoints).
            ConfigurationError: this receiver has no `on_payout`.
        """
        return self._url("payout", reference, expires_in)

    def url_for_payment(self, reference: str, *, expires_in: float = MONTH) -> str:
        """Make the URL for the payment intent that you are about to create; see `url_for_payout`.

        Args:
            reference: your own name for the payment, such as the order's: the handler gets it back.
            expires_in: seconds after which deliveries to it are refused; refunds are delivered late.

        Raises:
            InvalidRequest: it cannot be made of these, or is longer than 2048 characters (Endpoints).
            ConfigurationError: this receiver has no `on_payment`.
        """
        return self._url("payment", reference, expires_in)

    def url_for_checkout(self, reference: str, *, expires_in: float = MONTH) -> str:
        """Make the URL for the checkout that you are about to create; see `url_for_payment`.

        The record that the handler is given is the checkout's payment. Takes the arguments of
        `url_for_payment`, and raises what that does.
        """
        return self._url("checkout", reference, expires_in)

    def _url(self, kind: Kind, reference: str, expires_in: float) -> str:
        if kind not in self._handlers:
            wanted = "on_payout" if kind == "payout" else "on_payment"
            raise ConfigurationError(
                f"this webhook receiver has no {wanted}: deliveries would have no handler"
            )
        operation = f"webhooks.url_for_{kind}"
        if faults := _tokens.faults_of(reference, expires_in):
            raise InvalidRequest(faults, operation=operation)
        claims = TokenClaims.made_on(kind, reference, self._runtime.now().timestamp(), expires_in)
        url = f"{self.base_url}/{_tokens.make(self._signer, claims)}"
        if len(url) > LONGEST_URL:
            rule = f"makes a URL of {len(url)} characters, more than {LONGEST_URL}: shorten it, or base_url"
            raise InvalidRequest({"reference": [rule]}, operation=operation)
        return url

    def _admit(self, method: str, path: str) -> ReceivedDelivery | None:
        """Admit a delivery whose path ends in a valid token of ours; costs one or two HMACs."""
        if method.upper() not in _METHODS or len(path) > LONGEST_URL:
            return None
        token, now = path.rpartition("/")[2], self._runtime.now()
        claims = _tokens.read(self._signer, token, now.timestamp())
        if claims is None or claims.kind not in self._handlers:
            return None
        return ReceivedDelivery(token, claims, now)

    async def _take(
        self, delivery: ReceivedDelivery, headers: Headers, body: bytes
    ) -> WebhookResponse | HandOver:
        """Process an admitted delivery; returns the response, or the record for the handler."""
        hint = read_hint(delivery.claims.kind, headers, body)
        if hint.is_foreign:
            return REFUSED
        loop = asyncio.get_running_loop()
        if loop not in self._loops:
            self._loops[loop] = DeliveryCoalescer(self._client, self._store)
        return await self._loops[loop].join(delivery, hint)

    def __repr__(self) -> str:
        try:
            return f"<{type(self).__name__} of {', '.join(self._handlers)} at {self.base_url}>"
        except AttributeError:  # the constructor failed, and its traceback prints local variables
            return f"<{type(self).__name__}, unfinished>"


class WebhookReceiver(BaseReceiver):
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

        Raises:
            ConfigurationError: an option cannot be used; the message shows nothing of a secret.
        """
        signer, base_url = Signer(secrets), hidden(base_url)
        del secrets  # tracebacks print local variables
        store = MemoryStore() if seen is None else seen
        super().__init__(client, signer, base_url, on_payout, on_payment, store)
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
        delivery = self._admit(method, path)
        if delivery is None:
            return REFUSED
        raw = await read_body(body, self._runtime)
        result = raw if isinstance(raw, WebhookResponse) else await self._take(delivery, headers or {}, raw)
        if isinstance(result, WebhookResponse):
            return result
        task = asyncio.get_running_loop().create_task(self._hand_over(result))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)

    async def _hand_over(self, hand_over: HandOver) -> WebhookResponse:
        handled = False
        try:
            await awaited(self._handlers[hand_over.delivery.kind](hand_over.delivery))
            handled = True
        except Exception as error:
            log_failure(error)
        finally:  # also when it is cancelled: others wait for the verdict
            answer = await hand_over.finish(handled)
        return answer


def log_failure(error: Exception) -> None:
    """Log the handler's own error."""
    log.error("a webhook handler failed, the service will try again", exc_info=error)


def _handlers(
    on_payout: PayoutHandler | None, on_payment: PaymentHandler | None
) -> dict[Kind, Callable[[Any], object]]:
    """Map each kind to its handler. Raises ConfigurationError."""
    if on_payout is None and on_payment is None:
        raise ConfigurationError("a webhook receiver needs on_payout, on_payment or both")
    given: dict[Kind, Callable[[Any], object] | None]
    given = {"payout": on_payout, "payment": on_payment, "checkout": on_payment}
    if wrong := [kind for kind, handler in given.items() if not (handler is None or callable(handler))]:
        raise ConfigurationError(f"the handler of a {wrong[0]} must be a function of one TrustedDelivery")
    return {kind: handler for kind, handler in given.items() if handler is not None}
