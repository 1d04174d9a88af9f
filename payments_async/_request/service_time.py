"""Asks the service for its time before a write without a reference is sent again (gap AF).

Such a write is carried out again once its idempotency key has ended, and a machine that was paused, or
restored from a snapshot, has no clock that saw the time pass. A reference protects a payout for ever.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any, Final

from ..errors import PaymentsError
from ..params import PreparedRequest, operations
from .call import Call
from .key_age import answer_time, why_outdated
from .prepare import reading

LATE: Final = 3600.0
"""Seconds after the first attempt from which a retry asks for the service's time."""
_MOST_UNSENT: Final = 10_000


class UnsentKeys:
    """The idempotency keys of requests that were prepared here and not sent yet: they need no time.

    The latest 10,000. Callable from any thread.
    """

    def __init__(self) -> None:
        self._keys: OrderedDict[str, None] = OrderedDict()

    def add(self, prepared: PreparedRequest) -> None:
        """Remember a request that was just prepared."""
        if needs_time(prepared):
            self._keys[prepared.idempotency_key] = None
            if len(self._keys) > _MOST_UNSENT:
                self._keys.popitem(last=False)

    def take(self, prepared: PreparedRequest) -> bool:
        """Forget a request that is sent now. Returns False if it may have been sent before."""
        return self._keys.pop(prepared.idempotency_key, self) is None


def needs_time(prepared: PreparedRequest) -> bool:
    """Return whether nothing but its idempotency key protects a write."""
    return prepared.reference is None and operations.by_name(prepared.operation).creates


def asks_again(call: Call, age: float) -> bool:
    """Return whether a retry needs the service's time: long after a write that only its key protects.

    `age`: the key's, in seconds, by our own clocks.
    """
    prepared = call.prepared
    may_have_been_sent = call.unknown or call.sent_before
    return prepared is not None and age > LATE and may_have_been_sent and needs_time(prepared)


async def refuse_outdated(
    run: Callable[[Call], Awaitable[Any]],
    call: Call,
    age: float,
    first: float | None,
    deadline: float | None,
) -> None:
    """Ask for the service's time by a read that no cache answers. Raises OutcomeUnknown for an old write.

    `age`: the key's, by our own clocks; `first`: the service's time at the first answer; `deadline` of the
    read. All in seconds.
    """
    prepared = call.prepared
    assert prepared is not None
    options = {"extra_headers": {"Cache-Control": "no-cache"}, "deadline": deadline}
    cause: PaymentsError | None = None
    try:
        headers = (await run(reading(operations.PAYOUTS_LIST, options))).response.headers
    except PaymentsError as error:
        headers, cause = getattr(error, "headers", {}), error
    made, said = prepared.created_at.timestamp(), answer_time(headers)
    why = why_outdated(made, first, age, said)
    if why is not None and said is None and cause is not None:
        why = "the service's time could not be read"
    if why is not None:
        raise call.outcome_unknown(cause, why) from cause
