"""A session's status as Server-Sent Events: the step it is at, now and whenever that changes, until the end.

What happens to a payment is in the journal, which wakes; what time alone changes has its moment. Nothing is
asked for at intervals.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import attrs

from ..checkout.router import find_session
from ..checkout.session_view import PAGES, doubt_at, step_of
from ..common.values import Request, Stream
from ..records.world import World

if TYPE_CHECKING:
    from .._service import SandboxService

EVENTS = "/events"
"""What the address of a session's stream ends with."""

_HEADERS = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_AGAIN = b"retry: 1000\n"
"""How many milliseconds a browser waits before it asks again, when the sandbox has restarted, say."""

_QUIET = 15.0
"""Real seconds without news after which a line is sent, so that a caller who has left is noticed."""

_GATHER = 0.1
"""Real seconds between two looks, so that a journal of thousands of entries a second costs ten of them."""


@attrs.frozen
class _Look:
    """Where a session stands; `rest` is the sandbox's seconds until time alone may change that."""

    step: str
    is_final: bool = False
    rest: float | None = None


def answer_stream(sandbox: SandboxService, request: Request) -> Stream | None:
    """The stream that a request asks for; None when it asks for anything else."""
    if not (request.path.startswith(PAGES) and request.path.endswith(EVENTS) and request.method == "GET"):
        return None
    session_id = request.path.removeprefix(PAGES).removesuffix(EVENTS)
    return Stream(_HEADERS, _events(sandbox, session_id))


def _look(world: World, session_id: str) -> _Look:
    found = find_session(world, session_id)
    if found is None:  # the sandbox was started anew, or reset
        return _Look("gone", is_final=True)
    payment = found[1].payment
    moments = [moment for moment in (world.next_at, doubt_at(payment, world.now)) if moment is not None]
    rest = min(moments) - world.now if moments else None
    return _Look(step_of(payment, world.now), not payment.is_open, rest)


async def _events(sandbox: SandboxService, session_id: str) -> AsyncIterator[bytes]:
    loop, woken, ticket = asyncio.get_running_loop(), asyncio.Event(), object()
    told, head = None, _AGAIN
    try:
        while True:
            woken.clear()
            with sandbox.look() as world:  # what happens after this look wakes
                sandbox.journal.wake_once(ticket, lambda: loop.call_soon_threadsafe(woken.set))
                look = _look(world, session_id)
            if look.step != told:
                told = look.step
                yield b"%sdata: %s\n\n" % (head, told.encode())
                head = b""
            if look.is_final:
                return
            if not await _wait(sandbox, woken, look.rest):
                yield b": still here\n\n"
            await asyncio.wait([loop.create_future()], timeout=_GATHER)
    finally:
        sandbox.journal.forget(ticket)


async def _wait(sandbox: SandboxService, woken: asyncio.Event, rest: float | None) -> bool:
    """Until something happened or `rest` is over; False when it was quiet for long."""
    alarm = None if rest is None else asyncio.ensure_future(sandbox.clock.sleep(rest))
    waker = asyncio.ensure_future(woken.wait())
    awaited = {task for task in (waker, alarm) if task is not None}
    try:
        done, _ = await asyncio.wait(awaited, timeout=_QUIET, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in awaited:
            task.cancel()
    return bool(done)
