"""What the receiver hands over, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final, Generic, Literal, TypeVar

import attrs

from ..models import PaymentIntent, Payout

Kind = Literal["payout", "payment", "checkout"]
"""What a URL was made for."""
Trusted = Payout | PaymentIntent
R_co = TypeVar("R_co", bound=Trusted, covariant=True)


@attrs.frozen
class TrustedDelivery(Generic[R_co]):
    """The record that a delivery is about, read through the API and checked to be the URL's own."""

    kind: Kind
    """What the URL was made for: `payout`, `payment` or `checkout`."""
    reference: str
    """Yours, as it was given to `url_for_...`; it is part of the URL, and proven by it."""
    record: R_co
    """Read through the API: the only source of what happened."""
    event: str | None
    """What the delivery called itself, or None. Unsigned: for logs, never for a decision (gap W)."""
    received_at: datetime
    """When the delivery arrived, UTC."""


@attrs.frozen
class WebhookResponse:
    """What to answer: the status tells the service whether to try again."""

    status: int
    """HTTP status."""
    headers: Mapping[str, str] = attrs.field(factory=dict)
    """Headers beside those that the framework adds."""
    body: bytes = b""
    """Always empty."""


DONE: Final = WebhookResponse(200)
"""The handler has seen the record's state, now or before."""
REFUSED: Final = WebhookResponse(404)
"""Not one of our URLs, or no longer, or with another record's body. One answer, the one of an unknown path:
it does not show whether a token was forged, changed, or has expired, and costs nothing."""
TOO_SLOW: Final = WebhookResponse(408)
"""The body did not arrive in time."""
TOO_LARGE: Final = WebhookResponse(413)
"""The body is larger than any delivery."""
FAILED: Final = WebhookResponse(500)
"""The handler failed: the service is to try again."""


def busy(seconds: float) -> WebhookResponse:
    """Nothing can be read now: the service is to try again, in so many seconds at the earliest."""
    return WebhookResponse(503, {"Retry-After": str(max(1, -int(-seconds // 1)))})
