"""A session as a stream of events: the step it is at, now and whenever that changes, until the end."""

from __future__ import annotations

import attrs

from ..common.values import Request, Stream
from ..http.event_stream import EventSource, News, event_stream
from ..records.world import World
from .router import find_session
from .session_view import PAGES, doubt_at, step_of

EVENTS = "/events"
"""The end of the address of a session's stream."""


def answer_stream(sandbox: EventSource, request: Request) -> Stream | None:
    """The stream that a request asks for; None when it asks for anything else."""
    if not (request.path.startswith(PAGES) and request.path.endswith(EVENTS) and request.method == "GET"):
        return None
    session_id = request.path.removeprefix(PAGES).removesuffix(EVENTS)
    return event_stream(sandbox, _SessionSteps(sandbox, session_id).read)


@attrs.define
class _SessionSteps:
    """The steps of a session; `sent` is the last one that the reader got."""

    sandbox: EventSource
    session_id: str
    sent: str | None = None

    def read(self) -> News:
        with self.sandbox.reading() as world:
            step, is_last, due_in = _status(world, self.session_id)
        events = b"" if step == self.sent else b"data: %s\n\n" % step.encode()
        self.sent = step
        return News(events, is_last, due_in)


def _status(world: World, session_id: str) -> tuple[str, bool, float | None]:
    """The session's step, whether it is the last, and the seconds until time alone may change it."""
    found = find_session(world, session_id)
    if found is None:  # the sandbox was started anew, or reset
        return "gone", True, None
    payment = found[1].payment
    moments = [moment for moment in (world.next_at, doubt_at(payment, world.now)) if moment is not None]
    due_in = min(moments) - world.now if moments else None
    return step_of(payment, world.now), not payment.is_open, due_in
