"""Makes the URLs of both receivers, and finds the handler of each kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ..errors import ConfigurationError
from ..models import PaymentIntent, Payout
from ._receiver import DeliveryReceiver
from ._values import Kind, TrustedDelivery

MONTH: Final = 30 * 86_400.0
"""Seconds for which a URL is valid by default."""
PayoutHandler = Callable[[TrustedDelivery[Payout]], object]
PaymentHandler = Callable[[TrustedDelivery[PaymentIntent]], object]
Handlers = Mapping[Kind, Callable[[Any], object]]


class UrlMaker:
    """Makes URLs for records that are about to be created."""

    _deliveries: DeliveryReceiver
    _handlers: Handlers

    @property
    def base_url(self) -> str:
        """The address below which URLs are made, without a slash at its end."""
        return self._deliveries.base_url

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
        return self._deliveries.url(_served("payout", self._handlers), reference, expires_in)

    def url_for_payment(self, reference: str, *, expires_in: float = MONTH) -> str:
        """Make the URL for the payment intent that you are about to create; see `url_for_payout`.

        Args:
            reference: your own name for the payment, such as the order's: the handler gets it back.
            expires_in: seconds after which deliveries to it are refused; refunds are delivered late.

        Raises:
            InvalidRequest: it cannot be made of these, or is longer than 2048 characters (Endpoints).
            ConfigurationError: this receiver has no `on_payment`.
        """
        return self._deliveries.url(_served("payment", self._handlers), reference, expires_in)

    def url_for_checkout(self, reference: str, *, expires_in: float = MONTH) -> str:
        """Make the URL for the checkout that you are about to create; see `url_for_payment`.

        The record that the handler is given is the checkout's payment.

        Args:
            reference: your own name for the payment, such as the order's: the handler gets it back.
            expires_in: seconds after which deliveries to it are refused; refunds are delivered late.

        Raises:
            InvalidRequest: it cannot be made of these, or is longer than 2048 characters (Endpoints).
            ConfigurationError: this receiver has no `on_payment`.
        """
        return self._deliveries.url(_served("checkout", self._handlers), reference, expires_in)

    def __repr__(self) -> str:
        try:
            return f"<{type(self).__name__} of {', '.join(self._handlers)} at {self.base_url}>"
        except AttributeError:  # the constructor failed, and its traceback prints local variables
            return f"<{type(self).__name__}, unfinished>"


def handlers(on_payout: PayoutHandler | None, on_payment: PaymentHandler | None) -> Handlers:
    """Map each kind to its handler. Raises ConfigurationError."""
    if on_payout is None and on_payment is None:
        raise ConfigurationError("a webhook receiver needs on_payout, on_payment or both")
    given: dict[Kind, Callable[[Any], object] | None]
    given = {"payout": on_payout, "payment": on_payment, "checkout": on_payment}
    if wrong := [kind for kind, handler in given.items() if not (handler is None or callable(handler))]:
        raise ConfigurationError(f"the handler of a {wrong[0]} must be a function of one TrustedDelivery")
    return {kind: handler for kind, handler in given.items() if handler is not None}


def _served(kind: Kind, by: Handlers) -> Kind:
    """Check that a kind has a handler. Raises ConfigurationError."""
    if kind not in by:
        wanted = "on_payout" if kind == "payout" else "on_payment"
        raise ConfigurationError(f"this webhook receiver has no {wanted}: deliveries would have no handler")
    return kind
