"""Remembers idempotency keys, and asks whether one may still protect its write (Limits, Idempotency; gap AF).

A write without a reference is carried out again once its key has ended, and a machine that was paused, or
restored from a snapshot, has no clock that saw the time pass: the service is asked for its own before such a
write is sent again. A reference protects a payout for ever.

No write of this process is sent beside itself (Errors, rule 1).
"""

from __future__ import annotations

import json
from asyncio import AbstractEventLoop, _get_running_loop
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from decimal import Decimal
from threading import RLock
from typing import Any, Final
from weakref import WeakKeyDictionary

import attrs

from .. import _assumptions
from .._runtime import SYSTEM, Runtime, check_process, renewed_in_child
from ..errors import IdempotencyConflict, PaymentsError
from ..models._masking import clean
from ..params import PreparedRequest, decimal_if_readable, operations
from .call import Call
from .key_age import answer_time, why_outdated
from .prepare import reading

LATE: Final = 3600.0
"""Seconds after the first attempt from which a retry asks for the service's time."""
_MOST_UNSENT: Final = 10_000
_MOST_USED: Final = 50_000


class KeyUse:
    """The first use of a key that a caller gave."""

    __slots__ = ("at", "body")

    def __init__(self, at: float, body: bytes) -> None:
        self.at: float = at  # monotonic seconds
        self.body: bytes = body


def difference(one: bytes, other: bytes) -> str | None:
    """The fields in which two bodies differ, in words that show no value.

    None for the same fields, however they are written.
    """
    ours, theirs = _fields(one), _fields(other)
    names = [clean(name) for name in {**ours, **theirs} if _spelled(ours, name) != _spelled(theirs, name)]
    if not names:
        return None
    *most, last = names
    return f"{', '.join(most)} and {last} differ" if most else f"{last} differs"


def _fields(body: bytes) -> Mapping[str, Any]:
    """The fields of a body; equal amounts are one, however they are written."""
    fields: dict[str, Any] = json.loads(body, parse_float=Decimal)
    return {**fields, "amount": decimal_if_readable(fields["amount"])} if "amount" in fields else fields


def _spelled(fields: Mapping[str, Any], name: str) -> str | None:
    """A field as JSON; `true` and 1 differ, and so do 1 and 1.0."""
    return json.dumps(fields[name], sort_keys=True, default=repr) if name in fields else None


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
    run: Callable[[Call], Awaitable[Any]], call: Call, age: float, first: float | None, deadline: float | None
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


Identity = tuple[str, str, str]
"""Address, secret key's fingerprint and idempotency key: a request's identity at the service."""

_MOST_DOUBTS: Final = 10_000
_lock = RLock()
"""Re-entrant: a garbage-collected coroutine may end its request while its own thread holds the lock."""


@attrs.frozen(eq=False)
class PendingRequest:
    """A write under way."""

    identity: Identity
    loop: AbstractEventLoop | None  # None outside of any

    @property
    def is_abandoned(self) -> bool:
        """True if its event loop stands still, as after Ctrl-C, so that no attempt of it is made."""
        return self.loop is None or not self.loop.is_running()


class PendingRequests:
    """The writes under way on one clock, the times of those left in doubt, and the keys of callers.

    One clock serves the clients, event loops and threads of a process. Times are monotonic seconds.
    """

    def __init__(self) -> None:
        self._unsent: OrderedDict[str, None] = OrderedDict()
        """The keys of requests that were prepared here and not sent yet: they need no time."""
        self._used: OrderedDict[Identity, KeyUse] = OrderedDict()
        self._under_way: dict[Identity, PendingRequest] = {}
        self._doubts: OrderedDict[Identity, float] = OrderedDict()
        self._forgotten: float | None = None
        """Time of the latest request in doubt among those no longer remembered."""

    def first_use(self, identity: Identity, body: bytes, now: float) -> KeyUse:
        """The first use of a caller's key: this one where it is new, or free for another body after a day.

        Its body is remembered to refuse another one (gap R).
        """
        use = self._used.get(identity)
        if use is None or (use.body != body and now - use.at >= _assumptions.KEY_LIFETIME):
            self._used.pop(identity, None)
            use = self._used[identity] = KeyUse(now, body)
            if len(self._used) > _MOST_USED:
                self._used.popitem(last=False)
        return use

    def add_unsent(self, prepared: PreparedRequest) -> None:
        """Remember a request that was just prepared."""
        if needs_time(prepared):
            self._unsent[prepared.idempotency_key] = None
            if len(self._unsent) > _MOST_UNSENT:
                self._unsent.popitem(last=False)

    def take_unsent(self, prepared: PreparedRequest) -> bool:
        """Forget a request that is sent now. Returns False if it may have been sent before."""
        return self._unsent.pop(prepared.idempotency_key, self) is None

    def enter(self, call: Call, now: float) -> PendingRequest:
        """Begin a write. Raises IdempotencyConflict while another call sends one with its key."""
        check_process()
        own = PendingRequest(identity_of(call), _get_running_loop())
        with _lock:
            known = self._under_way.get(own.identity)
            if known is None or known.is_abandoned:
                self._under_way[own.identity] = own
                if known is not None:
                    self._note_doubt(known, now)
                return own
        raise IdempotencyConflict(
            f"{call.operation.name}: not sent, as another call of this process sends a request with this "
            "idempotency key: use that call's outcome, or client.resolve() the request later",
            status=409,
            service_message=None,
            errors={},
            headers={},
            body=b"",
            effect="unknown",
            operation=call.operation.name,
            idempotency_key=call.idempotency_key,
        )

    def leave(self, request: PendingRequest, now: float, *, in_doubt: bool) -> None:
        """End a write."""
        with _lock:
            if self._under_way.get(request.identity) is request:
                del self._under_way[request.identity]
            if in_doubt:
                self._note_doubt(request, now)

    def _note_doubt(self, request: PendingRequest, now: float) -> None:
        self._doubts.pop(request.identity, None)
        self._doubts[request.identity] = now
        if len(self._doubts) > _MOST_DOUBTS:
            _, self._forgotten = self._doubts.popitem(last=False)

    def since_doubt(self, call: Call, now: float) -> float | None:
        """Least seconds since the same request was left in doubt here; None when it was not."""
        at = self._doubts.get(identity_of(call), self._forgotten)
        return None if at is None else now - at

    def forget_parents(self) -> None:
        """Forget, in a forked child, the parent's requests: it may send them."""
        self._under_way, self._unsent = {}, OrderedDict()


def identity_of(call: Call) -> Identity:
    prepared = call.prepared
    assert prepared is not None
    return prepared.base_url, prepared.key_fingerprint, prepared.idempotency_key


_BY_CLOCK: Final[WeakKeyDictionary[Runtime, PendingRequests]] = WeakKeyDictionary()
_BY_CLOCK[SYSTEM] = PendingRequests()  # now, as two threads may ask for it at once


def pending_of(runtime: Runtime) -> PendingRequests:
    """The requests under way on a clock, which all clients of a process share, except in tests."""
    try:
        return _BY_CLOCK.setdefault(runtime, PendingRequests())
    except TypeError:  # the clock cannot be hashed or weakly referenced
        return PendingRequests()


@renewed_in_child
def _renew_after_fork() -> None:
    global _lock
    _lock = RLock()
    for requests in list(_BY_CLOCK.values()):
        requests.forget_parents()
