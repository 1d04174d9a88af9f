"""Blocking calls, the queue that carries them to the event loop, and their interruption.

An exception that ends the wait, such as KeyboardInterrupt, cancels the call and waits for it, two seconds at
most. It then carries `.outcome`, `.result` and a note on whether money may have moved. The wait is made of
slices of 0.2 s: a signal that arrives just before a lock is waited for does not end that wait.

A call may ask its caller's thread to run a plain function meanwhile. The lock then only wakes the caller:
`question` and `over`, which are set before it is released, say what for.

The queue takes no lock, so that the garbage collector may post in the middle of anything. One wake-up serves
all calls that came meanwhile.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from _thread import allocate_lock
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractContextManager, suppress
from contextvars import copy_context
from functools import partial
from typing import Any, Final, Generic, TypeVar

from payments_async.errors import ConfigurationError, OutcomeUnknown, PaymentsError
from payments_async.resources._signatures import implemented_by

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
AsyncCall = Callable[..., Coroutine[Any, Any, T]]

GRACE: Final = 2.0
"""Seconds that an interrupted caller waits for its call to end."""

WAIT_SLICE: Final = 0.2
"""Seconds that one wait lasts. A signal that arrives just before a wait is seen only when the wait ends. On
Windows that is true of every signal, and of `_thread.interrupt_main` everywhere."""

HAS_AGENT: Final = "newrelic.agent" in sys.modules
"""True if New Relic's agent was loaded before this package, as it has to be. It keeps the current trace by
thread and by task; other agents keep it in context variables, which a call copies."""


class BlockingCall(Generic[T]):
    """A coroutine function, its arguments and its caller's context, to be run on the loop of another thread.

    The caller waits for a plain lock, which costs a third of what a future costs.
    """

    __slots__ = (
        *("_args", "_done", "_error", "_func", "_kwargs", "_raised", "_value"),
        *("context", "over", "question", "task"),
    )

    def __init__(
        self, func: Callable[..., Coroutine[Any, Any, T]], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> None:
        self._func = traced(func) if HAS_AGENT else func
        self._args = args
        self._kwargs = kwargs
        self._error: BaseException | None = None
        self._value: Any = None
        self._raised: int | None = None
        self._done = allocate_lock()
        self._done.acquire()
        self.over = False
        """True if the call has ended or will never begin. Its caller may not have woken up yet."""
        self.question: Callable[[], None] | None = None
        """What the caller's thread is to run, until it begins."""
        self.context = copy_context()
        self.task: asyncio.Task[None] | None = None
        """The task that runs it, once it has begun."""

    async def run(self, running: dict[BlockingCall[Any], asyncio.Task[None]]) -> None:
        """Run the call, on the loop. It leaves `running` before its caller wakes up."""
        try:
            if not self.over:
                self.task = running[self]
                self._value = await self._func(*self._args, **self._kwargs)
        except BaseException as error:
            self._error = error
        del running[self]
        if not self.over:
            self.over = True
            try:  # noqa: SIM105 - `suppress` costs more than the release
                self._done.release()
            except RuntimeError:  # released for a question that the caller has not seen yet
                pass

    def cancel(self) -> None:
        """Cancel the call, on the loop. If it has not begun, it never will."""
        if self.task is not None:
            self.task.cancel()
        elif not self.over:
            self.over = True
            self._error = asyncio.CancelledError()
            self._done.release()

    def ask(self, queue: CallQueue, func: Callable[..., object], *args: object) -> asyncio.Future[object]:
        """Have the caller's thread run a plain function that raises no Exception. On the loop."""
        answered: asyncio.Future[object] = queue.loop.create_future()
        self.question = partial(_answer, queue, answered, func, args)
        with suppress(RuntimeError):  # released for an earlier question that the caller has not seen yet
            self._done.release()
        return answered

    def wait(self) -> None:
        """Block until it has ended, and run here what it asks meanwhile."""
        # by position: by name it costs as much as the queue
        while not (self._done.acquire(True, WAIT_SLICE) and self.over):
            if (question := self.question) is not None:
                self.question = None
                question()

    def wait_briefly(self, seconds: float | None = None) -> bool:
        """Block until it has ended, for about so many seconds (`GRACE`). Returns whether it has."""
        left = GRACE if seconds is None else seconds
        while left > 0:
            if self._done.acquire(timeout=min(left, WAIT_SLICE)) and self.over:
                return True
            left -= WAIT_SLICE
        return False

    def cancel_and_wait(self, queue: CallQueue, stopped: BaseException) -> None:
        """Cancel the call after its wait was interrupted, and annotate the exception with the outcome.

        A second interruption ends this wait too.
        """
        try:
            queue.cancel(self)
            ended = self.wait_briefly()
        except BaseException as again:
            queue.cancel(self)
            self.annotate(again, ended=False)
            raise
        self.annotate(stopped, ended=ended)

    def result(self) -> T:
        """The call's return value. Raises the call's exception; `has_raised` then recognises it."""
        error = self._error
        if error is None:
            value: T = self._value
            return value
        if isinstance(error, asyncio.CancelledError):
            error = self._ended(error)
        self._raised = id(error)
        try:
            raise error
        finally:
            del error  # an exception in a frame of its own traceback would keep both alive

    def has_raised(self, stopped: BaseException) -> bool:
        """Return whether the call itself raised this exception. If so, the call no longer keeps it."""
        if id(stopped) != self._raised:
            return False
        self._error = None
        return True

    def annotate(self, stopped: BaseException, *, ended: bool) -> None:
        """Note on the interrupting exception the call's outcome, and whether money may have moved.

        `stopped.outcome` is an OutcomeUnknown for `client.resolve`, or None. `stopped.result` is the record
        of a call that had succeeded when it was interrupted.
        """
        error = self._taken() if ended else None
        outcome = error if isinstance(error, OutcomeUnknown) else getattr(error, "outcome", None)
        stopped.outcome = outcome  # type: ignore[attr-defined] # as on a CancelledError
        stopped.result = self._value  # type: ignore[attr-defined] # likewise
        stopped.add_note(_note(ended, error, outcome))

    def _ended(self, cancelled: asyncio.CancelledError) -> PaymentsError:
        """The error for a caller whose call was cancelled because the process ends."""
        outcome: OutcomeUnknown | None = getattr(cancelled, "outcome", None)
        return outcome or PaymentsError(
            "the process is ending: the call was stopped before it could move money"
        )

    def _taken(self) -> BaseException | None:
        error, self._error = self._error, None
        return error


def _note(ended: bool, error: BaseException | None, outcome: OutcomeUnknown | None) -> str:
    if not ended:
        return (
            "The call had not stopped yet when its caller stopped waiting: money may have moved; "
            "look for its record before you make it again."
        )
    if outcome is not None:
        return (
            f"{outcome.operation} was sent and not answered yet: money may have moved; "
            "give this exception's .outcome to client.resolve() before you make it again."
        )
    if error is None:
        return "The call had just succeeded, and its record is in .result."
    if isinstance(error, PaymentsError) and error.effect != "none":
        return f"The call had just failed, and money may have moved: {error}"
    return "The call was stopped before it could move money; it can be made again."


def _answer(
    queue: CallQueue, answered: asyncio.Future[object], func: Callable[..., object], args: tuple[object, ...]
) -> None:
    """Run a question's function in the caller's thread, unless nothing waits for its answer any more."""
    if answered.done():
        return
    process = os.getpid()
    value = func(*args)
    if os.getpid() != process:
        raise ConfigurationError("the question forked this process: the call is the parent's, and ends there")
    queue.call_soon(partial(_settle, answered, value))


def _settle(answered: asyncio.Future[object], value: object) -> None:
    if not answered.done():
        answered.set_result(value)


def traced(func: AsyncCall[T]) -> AsyncCall[T]:
    """The coroutine function under its caller's trace; the function itself where there is none."""
    try:
        from newrelic.agent import current_trace
        from newrelic.core.context import ContextOf
    except ImportError:  # an agent of another version, whose parts are elsewhere
        return func
    trace = current_trace()
    return func if trace is None else partial(_under, ContextOf(trace=trace), func)


async def _under(trace: AbstractContextManager[Any], func: AsyncCall[T], *args: Any, **kwargs: Any) -> T:
    with trace:
        return await func(*args, **kwargs)


class CallQueue:
    """Carries calls from any thread to one event loop. It is made on that loop.

    Nothing here takes a lock, so that a finalizer may post in the middle of anything. The order of steps
    makes that safe: a thread appends a call before it checks whether the queue is closed, and the loop closes
    the queue before it empties it.
    """

    __slots__ = ("_awake", "_calls", "_running", "closed", "loop")

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.closed = False
        """True if the queue takes no more calls: the loop is ending, or belongs to a parent process."""
        self._calls: deque[BlockingCall[Any]] = deque()
        self._running: dict[BlockingCall[Any], asyncio.Task[None]] = {}
        self._awake = False

    def post(self, call: BlockingCall[Any]) -> bool:
        """Run a call on the loop. Returns False, and does not run it, when the queue is closed."""
        if self.closed:
            return False
        self._calls.append(call)
        if not self._awake:
            self._awake = True
            try:
                self.loop.call_soon_threadsafe(self._empty)
            except RuntimeError:  # the loop was closed meanwhile
                pass
            except BaseException:  # Ctrl-C just now: calls that came meanwhile need this wake-up
                self._awake = False
                self.call_soon(self._empty)
                raise
        return not self.closed or not self._take_back(call)

    def post_unwaited(self, call: BlockingCall[Any]) -> None:
        """Run a call that no thread waits for. A closed queue keeps it, and all it refers to, as it is."""
        if not self.post(call):
            self._calls.append(call)

    def cancel(self, call: BlockingCall[Any]) -> None:
        """Cancel a call, also when the loop is gone."""
        if not self.call_soon(call.cancel):
            call.cancel()

    def call_soon(self, func: Callable[[], object]) -> bool:
        """Run a plain function on the loop, after what was posted before. False when the loop is gone."""
        try:
            self.loop.call_soon_threadsafe(func)
        except RuntimeError:
            return False
        return True

    def asker(self) -> Callable[..., asyncio.Future[object]] | None:
        """What runs a function in the thread that waits for the current task's call; None outside one."""
        if asyncio.get_running_loop() is not self.loop:
            return None
        current = asyncio.current_task()
        calls = (call for call in self._running if call.task is current)
        return next((partial(call.ask, self) for call in calls), None)

    async def cancel_others(self) -> None:
        """Cancel every call but the one that runs this."""
        current = asyncio.current_task()
        for call in self._running:
            if call.task is not current:
                call.cancel()

    async def serve(self, until_stopped: Callable[[], Awaitable[None]]) -> None:
        """Take calls until `until_stopped` returns, then wait for those under way."""
        threading.current_thread().name = "payments-sync"
        await until_stopped()
        self.closed = True
        self._empty()
        while self._running:
            await asyncio.wait(self._running.values())

    def _empty(self) -> None:
        self._awake = False
        calls = self._calls
        while calls:
            call = calls.popleft()
            self._running[call] = self.loop.create_task(call.run(self._running), context=call.context)

    def _take_back(self, call: BlockingCall[Any]) -> bool:
        """Take a call out of the queue. Returns False when the loop has taken it first."""
        try:
            self._calls.remove(call)
        except ValueError:
            return False
        return True


def forwarded(way: Callable[..., Any]) -> Callable[[F], F]:
    """Decorate a signature, written by `tools/mirror`, with a call of the twin's method, a `way` of `Bridge`.

    As the function takes `**arguments`, a failed call empties the only dict of what was given.
    """

    def named(written: F) -> F:
        name = written.__name__

        def run(self: Any, *args: Any, **arguments: Any) -> Any:
            try:
                return way(self._bridge, getattr(self._async, name), *args, **arguments)
            finally:
                del args, arguments  # tracebacks print locals

        return implemented_by(run)(written)

    return named
