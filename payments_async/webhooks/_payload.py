"""Reads a delivery's body, bounded in size and time. The body is unsigned, so it is only a hint."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterable, Iterable
from typing import Any, Final

import attrs

from .._runtime import Runtime
from ..params.operations import is_segment
from ._values import TOO_LARGE, TOO_SLOW, Headers, Kind, WebhookResponse

_LONGEST: Final = 255
"""Characters of an id in a body, which may be forged."""
_EVENT: Final = re.compile(r"[ -~]{1,128}")


@attrs.frozen
class PayloadHint:
    """The record and event that a delivery names."""

    record_id: str | None = None
    """The record's id; None when it names none that could be one."""
    event: str | None = None
    """An open word (gap W)."""
    is_foreign: bool = False
    """True if the delivery names only a record of another kind than the URL's."""


def read_hint(kind: Kind, headers: Headers, body: bytes) -> PayloadHint:
    """Read the hint in a body or else in the headers (gap X). Never raises."""
    tree = _tree(body)
    named = {lowered: value for name, value in headers.items() if (lowered := name.lower()).startswith("x-")}
    event = _word(_EVENT, tree.get("event")) or _word(_EVENT, named.get("x-payment-event"))
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
    return value if is_segment(value) and len(value) <= _LONGEST else None


def _word(form: re.Pattern[str], value: Any) -> str | None:
    return value if isinstance(value, str) and form.fullmatch(value) else None


LARGEST: Final = 256 * 1024
"""Bytes of a body at most."""
LONGEST: Final = 10.0
"""Seconds a body may take to arrive."""


async def read_body(body: bytes | AsyncIterable[bytes], runtime: Runtime) -> bytes | WebhookResponse:
    """Read the whole body, or return the response to one that is too large or too slow."""
    if isinstance(body, bytes):
        return whole([body])
    task = asyncio.ensure_future(_gathered(body))
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


def whole(chunks: Iterable[bytes]) -> bytes | WebhookResponse:
    """Join the chunks of a body that has already arrived, or return the response to one too large."""
    parts = bytearray()
    for chunk in chunks:
        parts += chunk
        if len(parts) > LARGEST:
            return TOO_LARGE
    return bytes(parts)


async def _gathered(chunks: AsyncIterable[bytes]) -> bytes | WebhookResponse:
    parts = bytearray()
    async for chunk in chunks:
        parts += chunk
        if len(parts) > LARGEST:
            return TOO_LARGE
    return bytes(parts)
