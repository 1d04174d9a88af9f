"""The journal as Server-Sent Events: what is new, as it happens, from where the reader left off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from ..common.json import encode
from ..common.values import Request, Stream
from .json_views import entry_view

if TYPE_CHECKING:
    from .._controls import SandboxControls

_HEADERS = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
}
AT_ONCE = 200
"""Entries in one batch; of more than that the newest are told, and how many were left out."""

_TICK = 0.5
"""Real seconds after which the sandbox is made to carry out what is due, for somebody who watches."""

_GATHER = 0.1
"""Real seconds between two batches, so that thousands of entries a second cost a few writes."""

_QUIET_TICKS = 20


def open_stream(sandbox: SandboxControls, request: Request) -> Stream:
    """The stream, from after `Last-Event-ID` (or `?after=`) on, else from now on.

    With `?pulse=1` it only says that something happened: one event for thousands of entries.
    """
    query = dict(parse_qsl(request.query))
    wanted = request.headers.get("last-event-id") or query.get("after", "")
    last = sandbox.journal.last
    after = int(wanted) if wanted.isascii() and wanted.isdigit() and len(wanted) < 16 else last
    pulses = query.get("pulse") == "1"
    return Stream(_HEADERS, _events(sandbox, after if after <= last else 0, pulses=pulses))


async def _events(sandbox: SandboxControls, after: int, *, pulses: bool) -> AsyncIterator[bytes]:
    loop, woken, ticket = asyncio.get_running_loop(), asyncio.Event(), object()
    quiet = 0
    yield b"retry: 1000\n: the sandbox's journal\n\n"
    try:
        while True:
            batch, after = _pulse(sandbox, after) if pulses else _batch(sandbox, after)
            quiet = 0 if batch else quiet + 1
            if batch or quiet % _QUIET_TICKS == 0:
                yield batch or b": still here\n\n"
            woken.clear()
            sandbox.journal.wake_once(ticket, lambda: loop.call_soon_threadsafe(woken.set))
            if sandbox.journal.last == after:
                with suppress(TimeoutError):
                    await asyncio.wait_for(woken.wait(), _TICK)
            await _pause(loop)
    finally:
        sandbox.journal.forget(ticket)


def _batch(sandbox: SandboxControls, after: int) -> tuple[bytes, int]:
    """What came after number `after` as events, and the number that they reach to."""
    entries = sandbox.entries(after, AT_ONCE)
    if not entries:
        return b"", after
    last = entries[-1].seq
    missed = entries[0].seq - after - 1
    lines = [_event("gap", after + missed, {"missed": missed})] if missed > 0 else []
    lines += [_event("entry", entry.seq, entry_view(entry)) for entry in entries]
    return b"".join(lines), last


def _pulse(sandbox: SandboxControls, after: int) -> tuple[bytes, int]:
    """One event when anything came after number `after`, and the number that it reaches to."""
    with sandbox.look():
        last = sandbox.journal.last
    return (b"" if last == after else _event("pulse", last, {"last": last})), last


def _event(kind: str, seq: int, value: object) -> bytes:
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (seq, kind.encode(), encode(value))


async def _pause(loop: asyncio.AbstractEventLoop) -> None:
    await asyncio.wait([loop.create_future()], timeout=_GATHER)
