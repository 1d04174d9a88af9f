"""The one event loop that serves every `Payments` client of a process, and the way of calls to it.

    caller's thread                                 the thread "payments-sync"
    Bridge.call ── BlockingCall ──▶ CallQueue ── one wake-up for all that wait ──▶ a task for each
          ◀────────────────── a plain lock is released ◀──────────────────────────── its result

anyio's portal owns the thread and the loop. Each client has a lease on it from its first call until it is
closed or collected as garbage. When the last lease ends, the loop ends after the calls under way. A collected
client's lease ends in a thread of its own: a loop cannot wait for its own end.

Exit: `atexit` cancels the calls that daemon threads still have under way and closes every client. A hook that
blocks the loop delays the exit by two seconds at most.

Fork: each door compares the pid. A child then closes its copy of the parent's queue, and keeps the parent's
portal, loop and sockets alive and untouched. Each client's next call takes a new lease on a new portal.

Other loops: in a thread that runs another event loop (Jupyter) calls work, with one `RuntimeWarning`. On this
loop itself, and where gevent or eventlet has replaced threads, they raise `ConfigurationError`.
"""

from __future__ import annotations

import _thread
import atexit
import sys
import threading
import warnings
from asyncio import AbstractEventLoop, _get_running_loop, new_event_loop
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import Future
from importlib.util import find_spec
from typing import Any, Final, ParamSpec, TypeVar
from weakref import WeakSet, finalize

from anyio.from_thread import BlockingPortalProvider

from payments_async._guard import asking
from payments_async._runtime import check_process, renewed_in_child
from payments_async.errors import ConfigurationError, PaymentsError

from ._blocking_call import BlockingCall, CallQueue

P = ParamSpec("P")
T = TypeVar("T")
Close = Callable[[], Coroutine[Any, Any, None]]


class LoopThread:
    """The portal of this process, its queue, and the leases on it."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        """Re-entrant: the garbage collector may have a client closed while its own thread holds the lock."""
        self.queue: CallQueue | None = None
        self.bridges: WeakSet[Bridge] = WeakSet()
        """Those that have had a lease."""
        self._leases = 0
        self._provider = BlockingPortalProvider("asyncio", {"loop_factory": _new_loop})

    def lease(self) -> CallQueue:
        """The queue, started with the first lease. Call it under the lock, and `give_back` once for each.

        Raises ConfigurationError where a greenlet would run the loop; PaymentsError where no thread can be
        started, as at the end of the process.
        """
        _refuse_greenlets()
        if sys.is_finalizing():  # a thread would be started, and never run
            raise PaymentsError(_NO_THREAD)
        if not self._leases:
            self._start()
        assert self.queue is not None
        self._leases += 1
        return self.queue

    def _start(self) -> None:
        try:
            portal = _uninterrupted(self._provider.__enter__)
        except RuntimeError as error:
            raise PaymentsError(f"{_NO_THREAD} ({error})") from error
        queue = portal.call(_new_queue)
        if self._leases:  # a signal handler's call has started it meanwhile
            self._end_portal()
            return
        self.queue = queue
        portal.start_task_soon(queue.serve, portal.sleep_until_stopped)

    def _end_portal(self) -> None:
        self._provider.__exit__(None, None, None)

    def give_back(self) -> None:
        """End one lease; the last one waits for the loop's end. Not on the loop, and not under the lock."""
        with self.lock:
            self._leases -= 1
            is_last = not self._leases
        if is_last:
            self._end_portal()

    def inherited(self) -> None:
        """Keep all of this as it is in a forked child, and never use it again: it is the parent's."""
        if self.queue is not None:
            self.queue.closed = True
        _INHERITED.append(self)

    def end(self) -> None:
        """Cancel all calls and close all clients at the end of the process, unless a hook blocks the loop."""
        with self.lock:
            queue, bridges = self.queue, [*self.bridges]
        if queue is None:
            return
        stop = BlockingCall(queue.cancel_others, (), {})
        if queue.post(stop) and stop.wait_briefly():
            for bridge in bridges:
                bridge.close()


class Bridge:
    """Runs one client's calls on the loop, from any thread.

    `close` is the client's coroutine function that closes its connections on the running loop. `base` is the
    bridge of a client whose connections this one shares: until that is closed, the loop and they stay.
    """

    __slots__ = ("__weakref__", "_base", "_close", "_finalizer", "_is_closed", "_joined", "_loop_thread")

    def __init__(self, close: Close, base: Bridge | None = None) -> None:
        self._close, self._base = close, base
        self._is_closed = False
        self._joined: CallQueue | None = None

    def call(self, func: Callable[P, Coroutine[Any, Any, T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a coroutine function on the loop, in the caller's context, and return what it returns.

        An exception that ends the wait, such as KeyboardInterrupt, cancels the call. It then has `.outcome`,
        `.result` and a note on whether money may have moved (see `BlockingCall.annotate`).

        Raises:
            ConfigurationError: called on the loop itself, which would wait for itself for ever; or gevent or
                eventlet has replaced threads.
        """
        call = BlockingCall(func, args, kwargs)
        del args, kwargs  # tracebacks print locals
        self._refuse_own_loop()
        return self._run(self._queue(), call)

    def iterate(
        self, func: Callable[P, AsyncGenerator[T, None]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Iterator[T]:
        """Yield the items of an asynchronous generator, each fetched when it is needed.

        When the iteration ends early, the generator is closed without waiting for it.

        Raises:
            ConfigurationError: the client was closed, or the process forked, during the iteration: the end of
                the items cannot be known then.
        """
        self._refuse_own_loop()
        queue, items = self._queue(), func(*args, **kwargs)
        try:
            while not isinstance(item := self.call(_next, items), _End):
                yield item
            if queue.closed:
                raise ConfigurationError("the client was closed during this iteration: begin it again")
        finally:
            queue.post_unwaited(BlockingCall(items.aclose, (), {}))

    def call_plainly(self, func: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a plain function where it is called."""
        try:
            return func(*args, **kwargs)
        finally:
            del args, kwargs  # tracebacks print locals

    def close(self) -> None:
        """Close the client, and end its lease; a later call takes a new one.

        The last client to close waits for the calls that other threads have under way.

        Raises:
            ConfigurationError: called on the loop itself.
        """
        self._refuse_own_loop()
        with _loop_thread.lock:
            queue, self._joined, self._is_closed = self._leased(), None, True
            if queue is None:
                return
            self._finalizer.detach()
        try:
            self._run(queue, BlockingCall(self._close, (), {}))
        finally:
            self._loop_thread.give_back()

    def _refuse_own_loop(self) -> None:
        """Raise ConfigurationError on the bridge's own loop. Warn once on another one."""
        check_process()
        if _get_running_loop() is not None:
            _check_not_in_loop()

    def _run(self, queue: CallQueue, call: BlockingCall[T]) -> T:
        try:
            while not queue.post(call):
                queue = self._queue()
            call.wait()
            return call.result()
        except BaseException as stopped:
            if call.has_raised(stopped):
                raise
            if call.over:  # it ended as the signal came: the lock can be taken only once
                call.annotate(stopped, ended=True)
            else:
                call.cancel_and_wait(queue, stopped)
            raise

    def _queue(self) -> CallQueue:
        queue = self._joined
        if queue is None or queue.closed:
            with _loop_thread.lock:
                queue = self._leased() or self._join()
        return queue

    def _leased(self) -> CallQueue | None:
        """The queue of its lease; None if there is none, or it is a parent process's."""
        queue = self._joined
        return None if queue is None or queue.closed else queue

    def _join(self) -> CallQueue:
        queue = _loop_thread.lease()
        if (joined := self._leased()) is not None:  # by a signal handler's call meanwhile
            _loop_thread.give_back()
            return joined
        self._joined, self._loop_thread, self._is_closed = queue, _loop_thread, False
        self._finalizer = finalize(self, _collected, _loop_thread, queue, self._close)
        self._finalizer.atexit = False  # LoopThread.end closes what is left
        _loop_thread.bridges.add(self)
        if self._base is not None and not self._base._is_closed:
            self._base._queue()
        return queue


def _uninterrupted(func: Callable[[], T]) -> T:
    """Run a function in a thread of its own, where no signal handler of this one can interrupt it.

    A handler that calls a client, or raises, would have anyio's start of a portal wait for ever.
    """
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(func())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, name="payments-sync-starting", daemon=True).start()
    return done.result()


def _new_loop() -> AbstractEventLoop:
    """uvloop's, where it is installed."""
    if find_spec("uvloop") is None:
        return new_event_loop()
    from ._uvloop import ForkSafeLoop

    return ForkSafeLoop()


class _End:
    """Marks the end of an asynchronous iteration."""


_END: Final = _End()


async def _next(items: AsyncIterator[T]) -> T | _End:
    return await anext(items, _END)


def _refuse_greenlets() -> None:
    """Refuse threads that a library has replaced: a loop in one of those would block the thread it serves."""
    library = (_thread.start_new_thread.__module__ or "").partition(".")[0]
    if library in ("gevent", "eventlet"):
        raise ConfigurationError(
            f"{library} has replaced this process's threads, and the event loop behind a Payments client "
            "needs one of the system's: use a worker with threads (gunicorn's gthread), or AsyncPayments "
            "under asyncio"
        )


async def _new_queue() -> CallQueue:
    return CallQueue()


def _collected(loop_thread: LoopThread, queue: CallQueue, close: Close) -> None:
    """Close a collected client. As the garbage collector calls it anywhere, it takes no lock and never waits.

    In a forked child nothing is closed: it is the parent's, and is kept.
    """
    closing = BlockingCall(_close_in_background, (loop_thread, close), {})
    if not queue.post(closing):
        _INHERITED.append(closing)


async def _close_in_background(loop_thread: LoopThread, close: Close) -> None:
    try:
        await close()
    finally:  # the loop cannot wait for its own end
        threading.Thread(target=loop_thread.give_back, name="payments-sync-closing").start()


def _check_not_in_loop() -> None:
    """Refuse a call from our own loop, which would deadlock. Warn of one that blocks another loop."""
    global _warned
    if _loop_thread.queue is not None and _get_running_loop() is _loop_thread.queue.loop:
        raise ConfigurationError(
            "a Payments client was called on its own event loop, from an on_event hook or the like: "
            "hand the work to another thread"
        )
    if not _warned:
        _warned = True
        warnings.warn(
            "a Payments client blocks the event loop that runs in this thread; await AsyncPayments instead",
            RuntimeWarning,
            stacklevel=5,
        )


def asker() -> asking.Run | None:
    """What runs a function in the thread that waits for the current task's call; None outside one."""
    queue = _loop_thread.queue
    return None if queue is None else queue.asker()


def _at_exit() -> None:
    check_process()
    _loop_thread.end()  # looked up now: a fork changes it


@renewed_in_child
def _after_fork() -> None:
    global _loop_thread
    _loop_thread.inherited()
    _loop_thread = LoopThread()


_INHERITED: Final[list[object]] = []
"""Objects of the parent process, kept so that a forked child never finalizes them."""
_loop_thread = LoopThread()
_warned = False
_NO_THREAD: Final = (
    "the process is ending, or may start no more threads, and the call needs one: nothing was sent; "
    "make calls before the program's end"
)

atexit.register(_at_exit)
asking.finders.append(asker)
