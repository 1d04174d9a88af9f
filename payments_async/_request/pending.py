"""Requests under way, by idempotency key: a caller that sends one again joins it and gets its outcome.

One transaction has one retry loop at a time, across the clients, event loops and threads of the process
(Errors, rule 1). A caller that gives up leaves the request to the next one that waits for it.
"""

from __future__ import annotations

import asyncio
import os
from asyncio import AbstractEventLoop, CancelledError, Future, _get_running_loop
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from contextlib import suppress
from copy import deepcopy
from functools import partial
from threading import RLock
from typing import Any, Final, Literal
from weakref import WeakKeyDictionary

from .._runtime import Runtime
from ..errors import (
    APIConnectionError,
    DeadlineExceeded,
    InvalidRequest,
    LimitReached,
    OutcomeUnknown,
    PaymentsError,
)
from ..params import PreparedRequest
from .history import CallHistory
from .prepare import Call

Run = Callable[[Call], Coroutine[Any, Any, Any]]
Identity = tuple[str, str, str]
"""Address, secret key's fingerprint, idempotency key: what the service knows a request by."""

_CHECK: Final = 30.0
"""Seconds between two checks whether the event loop that sends a request still runs."""
_MOST_DOUBTS: Final = 10_000
_lock = RLock()
"""Held for moments. Re-entrant: a collected coroutine may end its request while its thread holds it."""


Outcome = tuple[Literal["record", "error", "abandoned"], Any]
"""How a request ended for the caller who sent it: with the record or error, or whether it left a doubt."""


class PendingRequest:
    """A request under way, and the callers that wait for its outcome."""

    __slots__ = ("call", "identity", "loop", "outcome", "waiting")

    def __init__(self, call: Call, identity: Identity) -> None:
        self.call: Call = call
        self.identity: Identity = identity
        self.loop: AbstractEventLoop | None = _get_running_loop()
        """Where it is sent; None for one that is driven by hand."""
        self.outcome: Outcome | None = None
        self.waiting: list[Future[None]] | None = None

    def end(self, outcome: Outcome) -> None:
        """Wake all callers that wait."""
        self.outcome = outcome
        for future in self.waiting or ():
            with suppress(RuntimeError):  # its loop is closed
                future.get_loop().call_soon_threadsafe(_wake, future)


class PendingRequests:
    """The requests under way on one clock, and when requests were last left in doubt."""

    def __init__(self) -> None:
        self._requests: dict[Identity, PendingRequest] = {}
        self._doubts: OrderedDict[Identity, float] = OrderedDict()
        self._forgotten: float | None = None
        """When the latest doubt was left among those that are no longer remembered."""

    def enter(self, call: Call) -> tuple[PendingRequest, bool]:
        """The request that is under way, or one of the caller's own; whether it is that.

        Raises InvalidRequest where another body or path is under way with the key.
        """
        identity = _identity(call)
        own = PendingRequest(call, identity)
        with _lock:
            known = self._requests.setdefault(identity, own)
        if known is own:
            return own, True
        if not _same(known.call, call):
            problem = "is under way with another body: a changed request needs a new key"
            raise InvalidRequest({"idempotency_key": [problem]}, operation=call.operation.name)
        return known, False

    def leave(self, request: PendingRequest, outcome: Outcome, now: float = 0.0) -> None:
        """A request has ended; if that leaves a doubt, it is remembered from `now`, monotonic seconds."""
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
        """A request has ended without a record. `doubtful`: an earlier caller's tries may have made one."""
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
        """At least how many seconds ago a repeat of it was left in doubt here; None when none was."""
        at = self._doubts.get(_identity(call), self._forgotten)
        return None if at is None else now - at

    def forget_parents(self) -> None:
        """In a forked child: what is under way is the parent's."""
        self._requests = {}


async def join(
    requests: PendingRequests, request: PendingRequest, runtime: Runtime, run: Run, history: CallHistory
) -> Any:
    """The outcome of a request that is under way; one that is left to this caller is sent with `run`.

    `history`: the caller's own, which counts its deadline and makes its errors.
    """
    call, doubtful, is_own = history.call, False, False
    while not is_own:
        how, value = await _wait(requests, request, runtime, history)
        if how == "abandoned":
            doubtful |= value
        elif _is_alike(request.call, call):
            return _shared(how, value)
        request, is_own = requests.enter(call)
    try:
        value = await run(call)
    except BaseException as stopped:
        raised = _in_doubt(stopped, history) if doubtful and call.operation.creates else stopped
        ended = stopped if _is_callers_own(stopped) else raised
        requests.give_up(request, ended, runtime.monotonic(), doubtful=doubtful)
        if raised is stopped:
            raise
        raise raised from stopped
    requests.leave(request, ("record", value))
    return value


def _is_callers_own(stopped: BaseException) -> bool:
    """Whether a caller's options, or the end of its client, ended its call: another caller may continue."""
    reason = stopped.__cause__ if isinstance(stopped, OutcomeUnknown) else stopped
    is_closed = isinstance(reason, APIConnectionError) and reason.kind == "closed"
    return is_closed or isinstance(reason, DeadlineExceeded | LimitReached)


def _in_doubt(stopped: BaseException, history: CallHistory) -> BaseException:
    """The error of a call after another caller's tries, which may have paid although this one was refused."""
    if isinstance(stopped, PaymentsError) and stopped.effect == "none":
        return history.outcome_unknown(stopped)
    if isinstance(stopped, CancelledError) and not hasattr(stopped, "outcome"):
        stopped.outcome = history.outcome_unknown()  # type: ignore[attr-defined] # added to the exception
    return stopped


async def _wait(
    requests: PendingRequests, request: PendingRequest, runtime: Runtime, history: CallHistory
) -> Outcome:
    """The outcome of a request that another caller sends. What ends the wait leaves a creation in doubt."""
    try:
        while request.outcome is None:
            await _wait_once(request, runtime, history.until(runtime.monotonic() + _CHECK))
            if request.outcome is None and history.is_late(runtime.monotonic):
                raise _late(history)
            stands = request.loop is None or not request.loop.is_running()
            if request.outcome is None and stands:  # it is no longer being sent
                requests.leave(request, ("abandoned", True), runtime.monotonic())
    except CancelledError as stopped:
        if history.call.operation.creates:
            stopped.outcome = history.outcome_unknown()  # type: ignore[attr-defined] # added to the exception
        raise
    return request.outcome


async def _wait_once(request: PendingRequest, runtime: Runtime, until: float) -> None:
    """Return when the request has ended, or at that moment."""
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


def _late(history: CallHistory) -> PaymentsError:
    """The caller's deadline passed while another one's try was under way."""
    error = history.out_of_time()
    return history.outcome_unknown(error) if history.call.operation.creates else error


def _wake(future: Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _shared(how: str, value: Any) -> Any:
    """Another caller's record or error as one's own: nothing that either changes is the other's."""
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


def _identity(call: Call) -> Identity:
    prepared = _prepared(call)
    return prepared.base_url, prepared.key_fingerprint, prepared.idempotency_key


def _same(one: Call, other: Call) -> bool:
    """Whether two requests under one key are one and the same to the service."""
    first, second = _prepared(one), _prepared(other)
    place = (one.operation.method, first.path)
    return place == (other.operation.method, second.path) and first.body == second.body


def _is_alike(one: Call, other: Call) -> bool:
    """Whether two calls read their answer as the same kind of record."""
    return one.operation == other.operation and one.operation.result is other.operation.result


def of(runtime: Runtime) -> PendingRequests:
    """The requests under way on a clock: of all clients of a process, but for those of tests."""
    with _lock:
        try:
            return _BY_CLOCK.setdefault(runtime, PendingRequests())
        except TypeError:  # it cannot be hashed, or referred to weakly
            return PendingRequests()


_BY_CLOCK: Final[WeakKeyDictionary[Runtime, PendingRequests]] = WeakKeyDictionary()


def _after_fork() -> None:
    global _lock
    _lock = RLock()
    for requests in list(_BY_CLOCK.values()):
        requests.forget_parents()


if hasattr(os, "register_at_fork"):  # pragma: no branch  # Windows has no fork
    os.register_at_fork(after_in_child=_after_fork)
