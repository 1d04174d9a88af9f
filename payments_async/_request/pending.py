"""Writes under way in this process, by idempotency key: none is sent beside itself (Errors, rule 1)."""

from __future__ import annotations

from asyncio import AbstractEventLoop, _get_running_loop
from collections import OrderedDict
from threading import RLock
from typing import Final
from weakref import WeakKeyDictionary

import attrs

from .._runtime import Runtime, check_process, renewed_in_child
from ..errors import IdempotencyConflict
from .call import Call
from .idempotency import UnsentKeys, UsedKeys

Identity = tuple[str, str, str]
"""Address, secret key's fingerprint and idempotency key: a request's identity at the service."""

_MOST_DOUBTS: Final = 10_000
_lock = RLock()
"""Re-entrant: a garbage-collected coroutine may end its request while its own thread holds the lock."""


@attrs.frozen(eq=False)
class PendingRequest:
    """A write under way."""

    identity: Identity
    loop: AbstractEventLoop | None
    """The event loop that sends it; None outside of any."""

    @property
    def is_abandoned(self) -> bool:
        """True if its event loop stands still, so that no attempt of it is made."""
        return self.loop is None or not self.loop.is_running()


class PendingRequests:
    """The writes under way on one clock, the times of those left in doubt, and the keys of callers.

    Thread-safe: one clock serves the clients, event loops and threads of a process. Times are monotonic
    seconds.
    """

    def __init__(self) -> None:
        self.unsent: UnsentKeys = UnsentKeys()
        self.used: UsedKeys = UsedKeys()
        self._under_way: dict[Identity, PendingRequest] = {}
        self._doubts: OrderedDict[Identity, float] = OrderedDict()
        self._forgotten: float | None = None
        """Time of the latest request in doubt among those no longer remembered."""

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
        self._doubts[request.identity] = now
        self._doubts.move_to_end(request.identity)
        while len(self._doubts) > _MOST_DOUBTS:
            _, self._forgotten = self._doubts.popitem(last=False)

    def since_doubt(self, call: Call, now: float) -> float | None:
        """Least seconds since the same request was left in doubt here; None when it was not."""
        at = self._doubts.get(identity_of(call), self._forgotten)
        return None if at is None else now - at

    def forget_parents(self) -> None:
        """Forget, in a forked child, the parent's requests: it may send them."""
        self._under_way, self.unsent = {}, UnsentKeys()


def identity_of(call: Call) -> Identity:
    """A write's identity at the service."""
    prepared = call.prepared
    assert prepared is not None
    return prepared.base_url, prepared.key_fingerprint, prepared.idempotency_key


def pending_of(runtime: Runtime) -> PendingRequests:
    """The requests under way on a clock, which all clients of a process share, except in tests."""
    with _lock:
        try:
            return _BY_CLOCK.setdefault(runtime, PendingRequests())
        except TypeError:  # the clock cannot be hashed or weakly referenced
            return PendingRequests()


_BY_CLOCK: Final[WeakKeyDictionary[Runtime, PendingRequests]] = WeakKeyDictionary()


@renewed_in_child
def _renew_after_fork() -> None:
    global _lock
    _lock = RLock()
    for requests in list(_BY_CLOCK.values()):
        requests.forget_parents()
