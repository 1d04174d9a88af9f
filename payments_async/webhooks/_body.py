"""Reading a delivery's body: so much of it, and for so long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Iterable
from typing import Final

from .._runtime import Runtime
from ._values import TOO_LARGE, TOO_SLOW, WebhookResponse

LARGEST: Final = 256 * 1024
"""Bytes of a body at most."""
LONGEST: Final = 10.0
"""Seconds a body may take to arrive."""


async def arrived(body: bytes | AsyncIterable[bytes], runtime: Runtime) -> bytes | WebhookResponse:
    """The whole body, or what to answer when it is too large or too slow."""
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
    """The same for a body that does not have to be waited for."""
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
