"""One blocking call's way to the event loop and back, and what its caller learns from an interruption.

Whatever ends the wait, such as Ctrl-C, cancels the call, waits two seconds at most, and leaves with
`.outcome`, `.result` and a note on whether money may have moved. The wait is made of slices of 0.2 s: a
signal that arrives just before a lock is waited for does not end that wait.

The queue onto the loop takes no lock, so that the garbage collector may post in the middle of anything. One
wake-up serves all calls that came meanwhile.
"""

from __future__ import annotations

import asyncio
import threading
from _thread import allocate_lock
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextvars import copy_context
from typing import Any, Final, Generic, TypeVar

from payments_async.errors import OutcomeUnknown, PaymentsError

from ._traces import HAS_AGENT, traced

T = TypeVar("T")

GRACE: Final = 2.0
"""Seconds that an interrupted caller waits for its call to come to an end."""

PATIENCE: Final = 0.2
"""Seconds a wait lasts at a time. A signal that arrives just before a wait begins is seen only when it ends,
as is every one on Windows, and `_thread.interrupt_main` everywhere."""


class BlockingCall(Generic[T]):
    """A coroutine function with its arguments and its caller's context, to be run on another thread's loop.

    The caller waits for a plain lock: it is a third of the price of a future.
    """

    __slots__ = (
        *("_args", "_done", "_error", "_func", "_kwargs", "_raised", "_value"),
        *("context", "over", "task"),
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
        """It has ended, or will never begin; its caller may not have heard of it yet."""
        self.context = copy_context()
        self.task: asyncio.Task[None] | None = None
        """What runs it, once it has begun."""

    async def run(self, running: dict[BlockingCall[Any], asyncio.Task[None]]) -> None:
        """Run it, on the loop, as one of those that run; it is none of them when the caller hears of it."""
        try:
            if not self.over:
                self.task = running[self]
                self._value = await self._func(*self._args, **self._kwargs)
        except BaseException as error:
            self._error = error
        del running[self]
        if not self.over:
            self.over = True
            self._done.release()

    def cancel(self) -> None:
        """End it, on the loop: before it has begun, it never will."""
        if self.task is not None:
            self.task.cancel()
        elif not self.over:
            self.over = True
            self._error = asyncio.CancelledError()
            self._done.release()

    def wait(self) -> None:
        """Block until it has ended."""
        while not self._done.acquire(True, PATIENCE):  # by position: by name it costs as much as the queue
            pass

    def wait_briefly(self) -> bool:
        """Block until it has ended, for `GRACE` seconds at most; whether it has."""
        return self._done.acquire(timeout=GRACE)

    def abandon(self, line: CallQueue, stopped: BaseException) -> None:
        """The wait for it was interrupted: cancel it, and say on the exception what became of it.

        Twice Ctrl-C: wait no more.
        """
        try:
            line.cancel(self)
            ended = self.wait_briefly()
        except BaseException as again:
            line.cancel(self)
            self.account(again, ended=False)
            raise
        self.account(stopped, ended=ended)

    def result(self) -> T:
        """What came of it; raises what it raised, to be shown to `has_raised`."""
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
            del error  # an exception in its own traceback's frame would keep both alive

    def has_raised(self, stopped: BaseException) -> bool:
        """Whether an exception is the call's own, and no interruption of its caller. It is not kept then."""
        if id(stopped) != self._raised:
            return False
        self._error = None
        return True

    def account(self, stopped: BaseException, *, ended: bool) -> None:
        """Write on the interrupting exception what became of the call, and whether money may have moved.

        `stopped.outcome` is an OutcomeUnknown for `client.resolve`, or None. `stopped.result` is the record
        of a call that had succeeded when it was interrupted.
        """
        error = self._taken() if ended else None
        outcome = error if isinstance(error, OutcomeUnknown) else getattr(error, "outcome", None)
        stopped.outcome = outcome  # type: ignore[attr-defined] # it rides along, as on a CancelledError
        stopped.result = self._value  # type: ignore[attr-defined] # likewise
        stopped.add_note(_note(ended, error, outcome))

    def _ended(self, cancelled: asyncio.CancelledError) -> PaymentsError:
        """What a caller sees whose call the end of the process cancelled."""
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
            "The call had not stopped yet when it was left: money may have moved; "
            "look for its record before you make it again."
        )
    if outcome is not None:
        return (
            f"{outcome.operation} was sent and not answered yet: money may have moved; "
            "give this exception's .outcome to client.resolve() before you make it again."
        )
    if error is None:
        return "The call had just succeeded: what it was to do has happened, and its record is in .result."
    if isinstance(error, PaymentsError) and error.effect != "none":
        return f"The call had just failed, and money may have moved: {error}"
    return "The call was stopped before it could move money; it can be made again."


class CallQueue:
    """Takes hops to one event loop, from any thread. Made on that loop.

    Nothing here takes a lock, so that a garbage collector's finalizer may post in the middle of anything.
    What makes that safe is the order of steps: a poster appends a hop before it looks whether the line is
    closed, and the loop closes the line before it empties it.
    """

    __slots__ = ("_awake", "_hops", "_running", "closed", "loop")

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.closed = False
        """Nothing is taken any more: the loop is ending, or it is a parent process's."""
        self._hops: deque[BlockingCall[Any]] = deque()
        self._running: dict[BlockingCall[Any], asyncio.Task[None]] = {}
        self._awake = False

    def post(self, hop: BlockingCall[Any]) -> bool:
        """Have the hop run. False when the line is closed: it does not run."""
        if self.closed:
            return False
        self._hops.append(hop)
        if not self._awake:
            self._awake = True
            try:
                self.loop.call_soon_threadsafe(self._empty)
            except RuntimeError:  # the loop was closed a moment ago
                pass
            except BaseException:  # Ctrl-C just now: whoever came meanwhile counts on this wake-up
                self._awake = False
                self.tell(self._empty)
                raise
        return not self.closed or not self._withdrawn(hop)

    def leave(self, hop: BlockingCall[Any]) -> None:
        """Have a hop run whose end nobody waits for. A closed line just keeps it, and what it holds."""
        if not self.post(hop):
            self._hops.append(hop)

    def cancel(self, hop: BlockingCall[Any]) -> None:
        """End a hop, wherever it is; without a loop it runs nowhere."""
        if not self.tell(hop.cancel):
            hop.cancel()

    def tell(self, order: Callable[[], object]) -> bool:
        """Have the loop carry out a plain function, after whatever was posted before. False: it is gone."""
        try:
            self.loop.call_soon_threadsafe(order)
        except RuntimeError:
            return False
        return True

    async def cancel_others(self) -> None:
        """End every hop but the one that runs this."""
        current = asyncio.current_task()
        for hop in self._running:
            if hop.task is not current:
                hop.cancel()

    async def serve(self, until_stopped: Callable[[], Awaitable[None]]) -> None:
        """Take hops until told to stop; then let those under way come to their end."""
        threading.current_thread().name = "payments-sync"
        await until_stopped()
        self.closed = True
        self._empty()
        while self._running:
            await asyncio.wait(self._running.values())

    def _empty(self) -> None:
        self._awake = False
        hops = self._hops
        while hops:
            hop = hops.popleft()
            self._running[hop] = self.loop.create_task(hop.run(self._running), context=hop.context)

    def _withdrawn(self, hop: BlockingCall[Any]) -> bool:
        """Take a hop back, unless the loop has taken it first."""
        try:
            self._hops.remove(hop)
        except ValueError:
            return False
        return True
