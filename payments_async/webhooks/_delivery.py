"""What a delivery brings, what the handler is given, and what the service is answered.

A body is bounded in size and time. It is unsigned, so it is only a hint.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterable, Iterable, Mapping
from datetime import datetime
from typing import Any, Final, Generic, Literal, Protocol, TypeVar

import attrs

from .._runtime import Runtime
from ..models import PaymentIntent, Payout
from ..params.operations import is_segment

Kind = Literal["payout", "payment", "checkout"]
"""The kind of record that a URL was made for."""
ListedRecord = Payout | PaymentIntent  # a record as the API returned it
R_co = TypeVar("R_co", bound=ListedRecord, covariant=True)
LARGEST: Final = 256 * 1024  # bytes of a body at most
LONGEST: Final = 10.0  # seconds a body may take to arrive
_LONGEST_ID: Final = 255  # characters of an id in a body, which may be forged
_EVENT: Final = re.compile(r"[ -~]{1,128}")


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
TOO_SLOW: Final = WebhookResponse(408)  # the body did not arrive in time
TOO_LARGE: Final = WebhookResponse(413)  # the body is larger than any delivery
FAILED: Final = WebhookResponse(500)
"""The handler failed: the service should try again."""


def busy(seconds: float) -> WebhookResponse:
    """Make the response when nothing can be read now: the service should try again after `seconds`."""
    return WebhookResponse(503, {"Retry-After": str(max(1, -int(-seconds // 1)))})


@attrs.frozen
class PayloadHint:
    """The record and event that a delivery names."""

    record_id: str | None = None
    """The record's id; None when it names none that could be one."""
    event: str | None = None  # an open word (gap W)
    is_foreign: bool = False
    """True if the delivery names only a record of another kind than the URL's."""


def read_hint(kind: Kind, headers: Headers, body: bytes) -> PayloadHint:
    """Read the hint in a body or else in the headers (gap X). Never raises."""
    tree = _tree(body)
    named = {lowered: value for name, value in headers.items() if (lowered := name.lower()).startswith("x-")}
    event = _event(tree.get("event")) or _event(named.get("x-payment-event"))
    own, other = ("payout", "payment") if kind == "payout" else ("payment", "payout")
    record_id = _id_in(tree.get(own))
    if record_id is None and own == "payment":
        record_id = _id(named.get("x-payment-id"))
    return PayloadHint(record_id, event, record_id is None and _id_in(tree.get(other)) is not None)


def _tree(body: bytes) -> dict[str, Any]:
    try:
        tree = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return tree if isinstance(tree, dict) else {}


def _id_in(record: Any) -> str | None:
    return _id(record.get("id")) if isinstance(record, dict) else None


def _id(value: Any) -> str | None:
    """An opaque id, if a read can ask for it (gap AC)."""
    return value if is_segment(value) and len(value) <= _LONGEST_ID else None


def _event(value: Any) -> str | None:
    return value if isinstance(value, str) and _EVENT.fullmatch(value) else None


async def read_body(body: bytes | AsyncIterable[bytes], runtime: Runtime) -> bytes | WebhookResponse:
    """Read the whole body, or return the response to one that is too large or too slow."""
    if isinstance(body, bytes):
        return joined([body])
    task = asyncio.ensure_future(_read_all(body))
    timer = runtime.call_later(LONGEST, task.cancel)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if (current := asyncio.current_task()) is not None and current.cancelling():
            raise
        return TOO_SLOW
    finally:
        timer.cancel()
        task.cancel()


def joined(chunks: Iterable[bytes]) -> bytes | WebhookResponse:
    """Join the chunks of a body that has already arrived, or return the response to one too large."""
    parts = bytearray()
    for chunk in chunks:
        parts += chunk
        if len(parts) > LARGEST:
            return TOO_LARGE
    return bytes(parts)


async def _read_all(chunks: AsyncIterable[bytes]) -> bytes | WebhookResponse:
    parts = bytearray()
    async for chunk in chunks:
        parts += chunk
        if len(parts) > LARGEST:
            return TOO_LARGE
    return bytes(parts)
