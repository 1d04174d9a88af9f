"""The receiver's values: a delivery for the handler, and a response for the web framework."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final, Generic, Literal, Protocol, TypeVar

import attrs

from ..models import PaymentIntent, Payout

Kind = Literal["payout", "payment", "checkout"]
"""The kind of record that a URL was made for."""
Trusted = Payout | PaymentIntent
R_co = TypeVar("R_co", bound=Trusted, covariant=True)


class Headers(Protocol):
    """The headers of a request as any framework has them: a mapping, or Werkzeug's `Headers`."""

    def items(self) -> Iterable[tuple[str, str]]:
        """Names and values."""


@attrs.frozen
class TrustedDelivery(Generic[R_co]):
    """The record that a delivery is about, read through the API and checked to be the URL's own."""

    kind: Kind
    """The kind of record that the URL was made for: `payout`, `payment` or `checkout`."""
    reference: str
    """Your reference, as given to `url_for_...`; the signed URL contains it."""
    record: R_co
    """The record, read through the API: the only trusted source."""
    event: str | None
    """The event that the delivery names, or None. Unsigned: for logs, never for a decision (gap W)."""
    received_at: datetime
    """Time of the delivery's arrival, UTC."""


@attrs.frozen
class WebhookResponse:
    """The response to a delivery. By its status the service knows whether to try again."""

    status: int
    """HTTP status."""
    headers: Mapping[str, str] = attrs.field(factory=dict)
    """Headers beside those that the framework adds."""
    body: bytes = b""
    """Always empty."""


DONE: Final = WebhookResponse(200)
"""The handler has seen the record's state, now or before."""
REFUSED: Final = WebhookResponse(404)
"""Not one of our URLs, an expired one, or a body about another record. The response is that of an unknown
path: it does not reveal whether a token was forged, changed or has expired."""
TOO_SLOW: Final = WebhookResponse(408)
"""The body did not arrive in time."""
TOO_LARGE: Final = WebhookResponse(413)
"""The body is larger than any delivery."""
FAILED: Final = WebhookResponse(500)
"""The handler failed: the service should try again."""


def busy(seconds: float) -> WebhookResponse:
    """Make the response when nothing can be read now: the service should try again after `seconds`."""
    return WebhookResponse(503, {"Retry-After": str(max(1, -int(-seconds // 1)))})
