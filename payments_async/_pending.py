"""Requests under way, by their idempotency keys: a caller who sends one again joins it and gets its outcome.

One transaction has one retry loop at a time, whichever clients, event loops and threads of the process send
it (Errors, rule 1). A caller that gives up leaves the request to the next one who waits for it.
"""

from __future__ import annotations

import asyncio
import os
from asyncio import AbstractEventLoop, CancelledError, Future
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from contextlib import suppress
from copy import deepcopy
from functools import partial
from threading import RLock
from typing import Any, Final, Literal
from weakref import WeakKeyDictionary

import attrs

from ._calls import Call
from ._journey import Journey
from ._runtime import Runtime
from .errors import DeadlineExceeded, InvalidRequest, LimitReached, OutcomeUnknown, PaymentsError
from .models import Record
from .params import PreparedRequest

Run = Callable[[Call], Coroutine[Any, Any, Any]]
Identity = tuple[str, str, str]
"""Address, secret key's fingerprint, idempotency key: what the service knows a request by."""

_LOOK: Final = 30.0
"""Seconds between two looks whether the event loop that sends a request still runs."""
_MOST_DOUBTS: Final = 10_000
_OF_THE_CALLER: Final = (DeadlineExceeded, LimitReached)
"""Errors by which a caller's own options end its call; another caller may go on."""
_lock = RLock()
"""Held for moments. Re-entrant: a collected coroutine may end its request while its thread holds it."""


@attrs.define(eq=False)
class Outcome:
    """How a request ended for the caller who sent it."""

    how: Literal["record", "error", "abandoned"]
    value: Any = attrs.field(default=None, repr=False)
    """The record or the error; of an abandoned one, whether it may have been carried out."""


@attrs.define(eq=False)
class Request:
    """A request under way, and who else waits for its outcome."""

    call: Call
    loop: AbstractEventLoop
    """Where it is sent."""
    outcome: Outcome | None = None
    waiting: list[Future[None]] = attrs.field(factory=list)

    def end(self, outcome: Outcome) -> None:
        """Have all that wait look."""
        self.outcome = outcome
        for future in self.waiting:
            with suppress(RuntimeError):  # its loop is closed
                future.get_loop().call_soon_threadsafe(_wake, future)


class PendingRequests:
    """The requests that are under way on one clock, and the latest doubts that repeats of one have left."""

    def __init__(self) -> None:
        self._requests: dict[Identity, Request] = {}
        self._doubts: OrderedDict[Identity, float] = OrderedDict()

    def enter(self, call: Call) -> tuple[Request, bool]:
        """The request that is under way, or one of the caller's own; whether it is that.

        Raises InvalidRequest where another body or path is under way with the key.
        """
        own = Request(call, asyncio.get_running_loop())
        with _lock:
            known = self._requests.setdefault(_identity(call), own)
        if known is own:
            return own, True
        if not _same(known.call, call):
            told = "is under way with another body: a changed request needs a new key"
            raise InvalidRequest({"idempotency_key": [told]}, operation=call.operation.name)
        return known, False

    def leave(self, request: Request, outcome: Outcome, now: float) -> None:
        """A request has ended; if that leaves a doubt, it is remembered from `now`, monotonic seconds."""
        identity = _identity(request.call)
        with _lock:
            if request.outcome is not None:
                return
            if self._requests.get(identity) is request:
                del self._requests[identity]
            if isinstance(outcome.value, OutcomeUnknown) or outcome.value is True:
                self._doubts[identity] = now
                self._doubts.move_to_end(identity)
                while len(self._doubts) > _MOST_DOUBTS:
                    self._doubts.popitem(last=False)
            request.end(outcome)

    def since_doubt(self, call: Call, now: float) -> float | None:
        """Seconds since a repeat of this request was last left in doubt here; None when none was."""
        at = self._doubts.get(_identity(call))
        return None if at is None else now - at

    def forget_parents(self) -> None:
        """In a forked child: what is under way is the parent's."""
        self._requests = {}


async def run_once(
    requests: PendingRequests, runtime: Runtime, run: Run, call: Call, make_journey: Callable[[], Journey]
) -> Any:
    """The outcome of a request, which is sent unless it is under way.

    `make_journey` gives the caller's own, which counts its deadline and makes its errors. Raises what `run`
    raises, and InvalidRequest.
    """
    doubtful = False
    while True:
        request, is_own = requests.enter(call)
        if is_own:
            return await _send(requests, request, runtime, run, make_journey, doubtful=doubtful)
        outcome = await _wait(requests, request, runtime, make_journey())
        if outcome.how == "abandoned":
            doubtful |= outcome.value
        elif _is_alike(request.call, call):
            return _shared(outcome)


async def _send(
    requests: PendingRequests,
    request: Request,
    runtime: Runtime,
    run: Run,
    make_journey: Callable[[], Journey],
    *,
    doubtful: bool,
) -> Any:
    """Send a request. `doubtful`: a caller who gave up may have had it carried out."""
    creates = request.call.operation.creates
    try:
        value = await run(request.call)
    except PaymentsError as error:
        told = error
        if doubtful and creates and error.effect == "none":  # a refusal says nothing of the earlier tries
            told = make_journey().outcome_unknown(error)
        is_own = isinstance(error, _OF_THE_CALLER)
        outcome = Outcome("abandoned", doubtful) if is_own else Outcome("error", told)
        requests.leave(request, outcome, runtime.monotonic())
        if told is error:
            raise
        raise told from error
    except BaseException as stopped:
        if doubtful and creates and isinstance(stopped, CancelledError) and not hasattr(stopped, "outcome"):
            stopped.outcome = make_journey().outcome_unknown()  # type: ignore[attr-defined] # it rides along
        doubtful |= getattr(stopped, "outcome", None) is not None
        requests.leave(request, Outcome("abandoned", doubtful), runtime.monotonic())
        raise
    requests.leave(request, Outcome("record", value), runtime.monotonic())
    return value


async def _wait(requests: PendingRequests, request: Request, runtime: Runtime, journey: Journey) -> Outcome:
    """The outcome of a request that another caller sends. What ends the wait leaves a creation in doubt."""
    try:
        while request.outcome is None:
            await _look(request, runtime, journey.until(runtime.monotonic() + _LOOK))
            if request.outcome is None and journey.is_late(runtime.monotonic):
                raise _late(journey)
            if request.outcome is None and not request.loop.is_running():  # nobody sends it any more
                requests.leave(request, Outcome("abandoned", True), runtime.monotonic())
    except CancelledError as stopped:
        if journey.call.operation.creates:
            stopped.outcome = journey.outcome_unknown()  # type: ignore[attr-defined] # it rides along
        raise
    return request.outcome


async def _look(request: Request, runtime: Runtime, until: float) -> None:
    """Return when the request has ended, or at that moment."""
    future = asyncio.get_running_loop().create_future()
    with _lock:
        if request.outcome is not None:
            return
        request.waiting.append(future)
    timer = runtime.call_later(max(0.0, until - runtime.monotonic()), partial(_wake, future))
    try:
        await future
    finally:
        timer.cancel()
        with _lock:
            request.waiting.remove(future)


def _late(journey: Journey) -> PaymentsError:
    """The caller's deadline passed while another one's try was under way."""
    error = journey.out_of_time()
    return journey.outcome_unknown(error) if journey.call.operation.creates else error


def _wake(future: Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _shared(outcome: Outcome) -> Any:
    """Another caller's record or error as one's own: nothing that either changes is the other's."""
    value = outcome.value
    if outcome.how == "error":
        raise _copy(value)
    return value if isinstance(value, Record) else deepcopy(value)


def _copy(error: PaymentsError) -> PaymentsError:
    twin = error.__class__.__new__(error.__class__, *error.args)
    twin.args, twin.__cause__ = error.args, error.__cause__
    vars(twin).update(vars(error))
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
