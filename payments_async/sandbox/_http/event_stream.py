"""Server-Sent Events: news of the sandbox, sent as it happens.

The journal wakes a stream when something happens, the clock when something falls due. Nothing is polled at
intervals.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager
from typing import Protocol

import attrs

from ..._loopback import GUARDS
from .._common.clock import Clock
from .._common.values import Stream
from .._records.world import World

_HEADERS = {"Content-Type": "text/event-stream", **GUARDS}
_RECONNECT = b"retry: 1000\n\n"
"""Milliseconds until a browser asks again, for instance after the sandbox has restarted."""

_KEEP_ALIVE = 15.0
"""Real seconds without news after which a comment is sent, so that a reader who has left is noticed."""

_GATHER = 0.1
"""Real seconds between two readings, so that thousands of entries a second cost ten readings."""


class Wakeups(Protocol):
    """The journal, which wakes streams."""

    def wake_once(self, ticket: object, wake: Callable[[], object]) -> None:
        """Call `wake` with the next entry, once."""

    def forget(self, ticket: object) -> None:
        """Drop the wake-up of a `ticket`."""


class EventSource(Protocol):
    """The sandbox, from which streams read."""

    clock: Clock

    @property
    def journal(self) -> Wakeups:
        """The events, in order."""

    def reading(self) -> AbstractContextManager[World]:
        """The records as of now, under the sandbox's lock."""


@attrs.frozen
class News:
    """The news of one reading: `events` encoded for the wire, empty when there are none."""

    events: bytes = b""
    is_last: bool = False
    due_in: float | None = None
    """Sandbox seconds until time alone may bring more."""


def event_stream(sandbox: EventSource, read: Callable[[], News]) -> Stream:
    """Make a stream of the news that `read` finds, now and after every event, until the last."""
    return Stream(_HEADERS, _events(sandbox, read))


async def _events(sandbox: EventSource, read: Callable[[], News]) -> AsyncIterator[bytes]:
    loop, woken, ticket = asyncio.get_running_loop(), asyncio.Event(), object()
    yield _RECONNECT
    try:
        while True:
            woken.clear()
            with sandbox.reading():  # before the reading: what comes after it wakes
                sandbox.journal.wake_once(ticket, lambda: loop.call_soon_threadsafe(woken.set))
            news = read()
            if news.events:
                yield news.events
            if news.is_last:
                return
            if not await _wait(sandbox.clock, woken, news.due_in):
                yield b": still here\n\n"
            await _pause(loop)
    finally:
        sandbox.journal.forget(ticket)


async def _wait(clock: Clock, woken: asyncio.Event, due_in: float | None) -> bool:
    """Wait until something happens or falls due; False after a long time without either."""
    waits: list[asyncio.Future[object]] = [asyncio.ensure_future(woken.wait())]
    if due_in is not None:
        waits.append(asyncio.ensure_future(clock.sleep(due_in)))
    try:
        done, _ = await asyncio.wait(waits, timeout=_KEEP_ALIVE, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
    return bool(done)


async def _pause(loop: asyncio.AbstractEventLoop) -> None:
    await asyncio.wait([loop.create_future()], timeout=_GATHER)
