"""What happens inside calls, as frozen values for `on_event` and the `payments` logger.

They are logged at DEBUG; a gate that a 429 closes for `LONG` or more, at WARNING.

No event holds a key's secret, a body or account data. A hook that raises cannot break a call.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from ._emitter import LONG as LONG
from ._emitter import Emitter as Emitter
from ._emitter import logger as logger
from ._likeness import Alike
from .errors import Effect
from .models._response import Verdict

__all__ = [
    "LONG",
    "AttemptEnded",
    "CallCancelled",
    "Emitter",
    "Event",
    "GateClosed",
    "Listener",
    "Replayed",
    "RequestSent",
    "RetryScheduled",
    "Throttled",
    "logger",
]


@attrs.frozen(eq=False, repr=False)
class Event(Alike):
    """Something that happened in a call."""

    operation: str
    """Which call: `payouts.create`."""
    attempt: int
    """The try it belongs to, 1 for the first."""


@attrs.frozen(eq=False, repr=False)
class RequestSent(Event):
    """A request is about to go out."""

    method: str
    idempotency_key: str | None


@attrs.frozen(eq=False, repr=False)
class AttemptEnded(Event):
    """An answer came, or the try failed."""

    verdict: Verdict
    reason: str
    status: int | None
    elapsed: float
    """Seconds."""


@attrs.frozen(eq=False, repr=False)
class Throttled(Event):
    """The call waited for its turn under the rate limit."""

    waited: float
    """Seconds."""


@attrs.frozen(eq=False, repr=False)
class GateClosed(Event):
    """A 429 closed the limit's gate."""

    seconds: float


@attrs.frozen(eq=False, repr=False)
class RetryScheduled(Event):
    """Another try follows."""

    delay: float
    """Seconds from now."""
    reason: str


@attrs.frozen(eq=False, repr=False)
class Replayed(Event):
    """The service answered from its idempotency store: nothing was done twice."""

    idempotency_key: str | None


@attrs.frozen(eq=False, repr=False)
class CallCancelled(Event):
    """The caller gave the call up; for a write that was sent, the effect is unknown."""

    effect: Effect
    idempotency_key: str | None


Listener = Callable[[Event], object]
