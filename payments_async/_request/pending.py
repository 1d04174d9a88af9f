"""Requests under way, by idempotency key: a caller that sends the same one joins it and gets its outcome.

One transaction has one retry loop at a time, across the clients, event loops and threads of the process
(Errors, rule 1). A caller that gives up leaves the request to the next one that waits for it.
"""

from __future__ import annotations

import asyncio
from asyncio import AbstractEventLoop, CancelledError, Future, _get_running_loop
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from contextlib import suppress
from copy import deepcopy
from functools import partial
from threading import RLock
from typing import Any, Final, Literal
from weakref import WeakKeyDictionary

from .._runtime import Runtime, check_process, renewed_in_child
from ..errors import (
    APIConnectionError,
    DeadlineExceeded,
    InvalidRequest,
    LimitReached,
    OutcomeUnknown,
    PaymentsError,
)
from ..params import PreparedRequest
from .call import Call
from .idempotency import UnsentKeys, UsedKeys, difference

Run = Callable[[Call], Coroutine[Any, Any, Any]]
Identity = tuple[str, str, str]
"""Address, secret key's fingerprint and idempotency key: a request's identity at the service."""

_CHECK: Final = 30.0
"""Seconds between two checks that the event loop that sends a request still runs."""
_MOST_DOUBTS: Final = 10_000
_lock = RLock()
"""Re-entrant: a garbage-collected coroutine may end its request while its own thread holds the lock."""


Outcome = tuple[Literal["record", "error", "abandoned"], Any]
"""The end of a request for its sender: the record, the error, or whether its outcome is in doubt."""


class PendingRequest:
    """A request under way, and the callers that wait for its outcome."""

    __slots__ = ("call", "identity", "loop", "outcome", "waiting")

    def __init__(self, call: Call, identity: Identity) -> None:
        self.call: Call = call
        self.identity: Identity = identity
        self.loop: AbstractEventLoop | None = _get_running_loop()
        """The event loop that sends the request; None outside of any."""
        self.outcome: Outcome | None = None
        self.waiting: list[Future[None]] | None = None

    def end(self, outcome: Outcome) -> None:
        """Set the outcome and wake all waiting callers."""
        self.outcome = outcome
        for future in self.waiting or ():
            with suppress(RuntimeError):  # the caller's loop is closed
                future.get_loop().call_soon_threadsafe(_wake, future)


class PendingRequests:
    """The requests under way on one clock, the times of those left in doubt, and the keys of callers."""

    def __init__(self) -> None:
        self._requests: dict[Identity, PendingRequest] = {}
        self._doubts: OrderedDict[Identity, float] = OrderedDict()
        self.unsent: UnsentKeys = UnsentKeys()
        self.used: UsedKeys = UsedKeys()
        self._forgotten: float | None = None
        """Time of the latest request in doubt among those no longer remembered."""

    def enter(self, call: Call) -> tuple[PendingRequest, bool]:
        """Join the request under way, or begin it; returns it, and whether the caller is to send it.

        Raises InvalidRequest where another body or path is under way with the key.
        """
        check_process()
        identity = identity_of(call)
        own = PendingRequest(call, identity)
        with _lock:
            known = self._requests.setdefault(identity, own)
        if known is own:
            return own, True
        if differs := _difference(known.call, call):
            problem = f"is under way with another body: {differs}; a changed request needs a new key"
            raise InvalidRequest({"idempotency_key": [problem]}, operation=call.operation.name)
        return known, False

    def leave(self, request: PendingRequest, outcome: Outcome, now: float = 0.0) -> None:
        """End a request; one in doubt is remembered from `now`, monotonic seconds."""
        with _lock:
            if request.outcome is not None:
                return
            if self._requests.get(request.identity) is request:
                del self._requests[request.identity]
            if outcome[0] != "record" and (outcome[1] is True or isinstance(outcome[1], OutcomeUnknown)):
                self._remember(request.identity, now)
            request.end(outcome)

    def give_up(
        self, request: PendingRequest, stopped: BaseException, now: float, *, doubtful: bool = False
    ) -> None:
        """End a request without a record. `doubtful`: an earlier caller's attempts may have made one."""
        if isinstance(stopped, PaymentsError) and not _is_callers_own(stopped):
            self.leave(request, ("error", stopped), now)
        else:
            doubtful |= isinstance(stopped, OutcomeUnknown) or getattr(stopped, "outcome", None) is not None
            self.leave(request, ("abandoned", doubtful), now)

    def _remember(self, identity: Identity, now: float) -> None:
        self._doubts[identity] = now
        self._doubts.move_to_end(identity)
        while len(self._doubts) > _MOST_DOUBTS:
            _, self._forgotten = self._doubts.popitem(last=False)

    def since_doubt(self, call: Call, now: float) -> float | None:
        """Least seconds since the same request was left in doubt here; None when it was not."""
        at = self._doubts.get(identity_of(call), self._forgotten)
        return None if at is None else now - at

    def forget_parents(self) -> None:
        """Forget, in a forked child, the parent's requests: it may send them."""
        self._requests, self.unsent = {}, UnsentKeys()


async def join(
    requests: PendingRequests, request: PendingRequest, runtime: Runtime, run: Run, call: Call
) -> Any:
    """Wait for a request under way and return its outcome; if its sender gives it up, send it with `run`.

    `call` is this caller's own, for its deadline and its errors.
    """
    doubtful, is_own = False, False
    while not is_own:
        how, value = await _wait(requests, request, runtime, call)
        if how == "abandoned":
            doubtful |= value
        elif _is_alike(request.call, call):
            return _shared(how, value)
        request, is_own = requests.enter(call)
    call.sent_before |= doubtful
    try:
        value = await run(call)
    except BaseException as stopped:
        raised = _in_doubt(stopped, call) if doubtful and call.operation.creates else stopped
        ended = stopped if _is_callers_own(stopped) else raised
        requests.give_up(request, ended, runtime.monotonic(), doubtful=doubtful)
        if raised is stopped:
            raise
        raise raised from stopped
    requests.leave(request, ("record", value))
    return value


def _is_callers_own(stopped: BaseException) -> bool:
    """Return whether only the caller's own options or client ended its call, so that others may continue."""
    reason = stopped.__cause__ if isinstance(stopped, OutcomeUnknown) else stopped
    is_closed = isinstance(reason, APIConnectionError) and reason.kind == "closed"
    return is_closed or isinstance(reason, DeadlineExceeded | LimitReached)


def _in_doubt(stopped: BaseException, call: Call) -> BaseException:
    """Make the error of a call after another caller's attempts, which may have been carried out."""
    if isinstance(stopped, PaymentsError) and stopped.effect == "none":
        return call.outcome_unknown(stopped)
    if isinstance(stopped, CancelledError) and not hasattr(stopped, "outcome"):
        stopped.outcome = call.outcome_unknown()  # type: ignore[attr-defined] # added to the exception
    return stopped


async def _wait(requests: PendingRequests, request: PendingRequest, runtime: Runtime, call: Call) -> Outcome:
    """Wait for the outcome of another caller's request. When the wait ends early, a creation is in doubt."""
    try:
        while request.outcome is None:
            await _wait_once(request, runtime, call.until(runtime.monotonic() + _CHECK))
            if request.outcome is None and call.is_late(runtime.monotonic):
                raise _late(call)
            stands = request.loop is None or not request.loop.is_running()
            if request.outcome is None and stands:  # the request is no longer being sent
                requests.leave(request, ("abandoned", True), runtime.monotonic())
    except CancelledError as stopped:
        if call.operation.creates:
            stopped.outcome = call.outcome_unknown()  # type: ignore[attr-defined] # added to the exception
        raise
    return request.outcome


async def _wait_once(request: PendingRequest, runtime: Runtime, until: float) -> None:
    """Return when the request has ended, or at `until`."""
    future = asyncio.get_running_loop().create_future()
    with _lock:
        if request.outcome is not None:
            return
        request.waiting = [*(request.waiting or ()), future]
    timer = runtime.call_later(max(0.0, until - runtime.monotonic()), partial(_wake, future))
    try:
        await future
    finally:
        timer.cancel()
        with _lock:
            request.waiting = [each for each in request.waiting or () if each is not future]


def _late(call: Call) -> PaymentsError:
    """Make the error of a deadline that passed while another caller's attempt was under way."""
    error = call.out_of_time()
    return call.outcome_unknown(error) if call.operation.creates else error


def _wake(future: Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _shared(how: str, value: Any) -> Any:
    """Copy another caller's record or error, so that changes to one do not reach the other."""
    if how == "error":
        raise _copy(value)
    return deepcopy(value)


def _copy(error: PaymentsError) -> PaymentsError:
    twin, cause = error.__class__.__new__(error.__class__, *error.args), error.__cause__
    twin.args, twin.__cause__ = error.args, _copy(cause) if isinstance(cause, PaymentsError) else cause
    facts = vars(error).items()
    vars(twin).update(
        (name, deepcopy(fact) if isinstance(fact, dict | list) else fact) for name, fact in facts
    )
    return twin


def _prepared(call: Call) -> PreparedRequest:
    assert call.prepared is not None  # reads are not joined
    return call.prepared


def identity_of(call: Call) -> Identity:
    """A write's identity at the service."""
    prepared = _prepared(call)
    return prepared.base_url, prepared.key_fingerprint, prepared.idempotency_key


def _difference(one: Call, other: Call) -> str | None:
    """What makes two requests under one key different to the service, in words; None for the same."""
    first, second = _prepared(one), _prepared(other)
    if (one.operation.method, first.path) != (other.operation.method, second.path):
        return "the path differs"
    return None if first.body == second.body else difference(first.body, second.body)


def _is_alike(one: Call, other: Call) -> bool:
    """Return whether two calls read their answer as the same kind of record."""
    first, second = one.operation, other.operation
    return first.name == second.name and first.result is second.result


def of(runtime: Runtime) -> PendingRequests:
    """The requests under way on a clock, which all clients of a process share, except in tests."""
    with _lock:
        try:
            return _BY_CLOCK.setdefault(runtime, PendingRequests())
        except TypeError:  # the clock cannot be hashed or weakly referenced
            return PendingRequests()


_BY_CLOCK: Final[WeakKeyDictionary[Runtime, PendingRequests]] = WeakKeyDictionary()


@renewed_in_child
def _after_fork() -> None:
    global _lock
    _lock = RLock()
    for requests in list(_BY_CLOCK.values()):
        requests.forget_parents()
