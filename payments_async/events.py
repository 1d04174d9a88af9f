"""Events inside calls, as frozen values for `on_event` and the `payments` logger.

Events are logged at DEBUG; a doubt, and a rate limiter that a 429 closes for `LONG` or more, at WARNING.
The log record of an event has its fields in a dict, `record.payments`.

No event holds a key's secret, a body or account data. An exception of the hook does not break a call.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from ._emitter import LONG as LONG
from ._emitter import Event as Event
from .errors import Effect
from .models._response import Verdict

__all__ = [
    "LONG",
    "AttemptEnded",
    "CallCancelled",
    "CallEnded",
    "CallStarted",
    "Doubted",
    "Event",
    "GateClosed",
    "LimitStoreFound",
    "LimitStoreLost",
    "Listener",
    "PayoutRefused",
    "Replayed",
    "RequestSent",
    "RetryScheduled",
    "Throttled",
]


@attrs.frozen(eq=False, repr=False)
class CallStarted(Event):
    """A call begins. Arguments that were refused make no call."""

    method: str
    template: str | None
    """The path, with {placeholders} for ids; None for a path that the interface does not list."""
    base_url: str


@attrs.frozen(eq=False, repr=False)
class CallEnded(Event):
    """A call ended: with its record, an error or a cancellation. The last event of the call."""

    effect: Effect
    error: str | None
    """Name of the error's class; None when the call succeeded."""
    status: int | None
    """HTTP status of the last attempt, when it had an answer."""
    elapsed: float
    """Seconds, waiting included."""


@attrs.frozen(eq=False, repr=False)
class RequestSent(Event):
    """A request is about to be sent."""

    method: str
    idempotency_key: str | None
    key_fingerprint: str
    """Distinguishes the secret key that it is sent under from others, without revealing it."""


@attrs.frozen(eq=False, repr=False)
class AttemptEnded(Event):
    """An answer came, or the attempt failed or was cut short."""

    verdict: Verdict
    reason: str
    status: int | None
    elapsed: float
    """Seconds."""


@attrs.frozen(eq=False, repr=False)
class Throttled(Event):
    """The call waited for its turn under the rate limit, also if it ended before its turn came."""

    waited: float
    """Seconds."""


@attrs.frozen(eq=False, repr=False)
class GateClosed(Event):
    """A 429 closed the rate limiter of its class or record. `str()` says so in a sentence, for logs."""

    seconds: float

    def __str__(self) -> str:
        wait = f"calls of its limit wait for {self.seconds:.0f} s"
        return f"{self.operation}: the service answered 429, and {wait}"


@attrs.frozen(eq=False, repr=False)
class PayoutRefused(Event):
    """The guard refused a write, and nothing was sent. `str()` says why in a sentence, for logs."""

    rule: str
    """The guard's word for the rule, such as `most`."""
    reason: str

    def __str__(self) -> str:
        return self.reason


@attrs.frozen(eq=False, repr=False)
class Doubted(Event):
    """A request is valid and probably a slip: `1.500` as text may be 1500. Logged at WARNING."""

    doubt: str

    def __str__(self) -> str:
        return f"{self.operation}: {self.doubt}"


@attrs.frozen(eq=False, repr=False)
class LimitStoreLost(Event):
    """The limit store cannot be reached. The first call that waits says so, once for each outage."""

    reason: str
    """What happened, without the store's password."""
    limit: int | None
    """Requests a minute to which this process keeps meanwhile; None when calls wait for the store."""


@attrs.frozen(eq=False, repr=False)
class LimitStoreFound(Event):
    """The limit store can be reached again, as the first call that waits says."""

    lasted: float
    """Seconds."""


@attrs.frozen(eq=False, repr=False)
class RetryScheduled(Event):
    """Another attempt follows."""

    delay: float
    """Seconds from now."""
    reason: str


@attrs.frozen(eq=False, repr=False)
class Replayed(Event):
    """The service returned its stored answer to the idempotency key: nothing was done twice."""

    idempotency_key: str | None


@attrs.frozen(eq=False, repr=False)
class CallCancelled(Event):
    """The caller cancelled the call; for a write that was sent, the effect is unknown."""

    effect: Effect
    idempotency_key: str | None


Listener = Callable[[Event], object]
