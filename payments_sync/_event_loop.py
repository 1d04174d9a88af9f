"""How blocking calls reach the one event loop that serves every `Payments` client of a process.

    caller's thread                                 the thread "payments-sync"
    Bridge.call ── BlockingCall ──▶ CallQueue ── one wake-up for all that wait ──▶ a task for each
          ◀────────────────── a plain lock is released ◀──────────────────────────── its result

anyio's portal owns the thread and the loop. Each client holds a lease on it from its first call until it is
closed or forgotten; the last lease to go ends the loop, once the calls under way have ended. A lease that is
forgotten ends from a thread of its own: a loop cannot wait for its own end.

Exit: `atexit` cancels the calls that daemon threads still have under way and closes every client; a hook that
blocks the loop delays the exit by two seconds at most.

Fork: the child closes the parent's queue in its own memory and keeps the parent's portal, loop and sockets
alive and untouched. Each client takes a new lease on a new portal with its next call.

Other loops: in a thread that runs another event loop (Jupyter) calls work, with one `RuntimeWarning`. On this
loop itself, and where gevent or eventlet has replaced threads, they raise `ConfigurationError`.

The only module that imports anyio.
"""

from __future__ import annotations

import _thread
import atexit
import os
import threading
import warnings
from asyncio import _get_running_loop
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from importlib.util import find_spec
from typing import Any, Final, ParamSpec, TypeVar
from weakref import WeakSet, finalize

from anyio.from_thread import BlockingPortal, BlockingPortalProvider

from payments_async.errors import ConfigurationError

from ._blocking_call import BlockingCall, CallQueue

P = ParamSpec("P")
T = TypeVar("T")
Close = Callable[[], Coroutine[Any, Any, None]]

_HAS_UVLOOP: Final = find_spec("uvloop") is not None


class LoopThread:
    """The portal of this process, its line, and the bridges that hold a lease on it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.line: CallQueue | None = None
        self.bridges: WeakSet[Bridge] = WeakSet()
        self._portal: BlockingPortal | None = None
        self._provider = BlockingPortalProvider("asyncio", {"use_uvloop": _HAS_UVLOOP})

    def lease(self) -> CallQueue:
        """The line, started when nobody had one. Under the lock, and ended by one `give_back`.

        Raises ConfigurationError where a greenlet would run the loop.
        """
        _refuse_greenlets()
        portal = self._provider.__enter__()
        if self.line is None or portal is not self._portal:
            self.line, self._portal = portal.call(_new_line), portal
            portal.start_task_soon(self.line.serve, portal.sleep_until_stopped)
        return self.line

    def give_back(self) -> None:
        """End one lease; with the last one, wait for the loop's end. Not on the loop, not under the lock."""
        self._provider.__exit__(None, None, None)

    def inherited(self) -> None:
        """In a forked child: all of this is the parent's. Kept as it is, and never touched again."""
        if self.line is not None:
            self.line.closed = True
        _INHERITED.append(self)

    def end(self) -> None:
        """The process ends: stop all calls and close all clients, unless a hook of theirs blocks the loop."""
        with self.lock:
            line, bridges = self.line, list(self.bridges)
        if line is None:
            return
        stop = BlockingCall(line.cancel_others, (), {})
        if line.post(stop) and stop.wait_briefly():
            for bridge in bridges:
                bridge.close()


class _Lease:
    """One client's hold on the line. A client that is forgotten gives it back, and its connections, too."""

    __slots__ = ("_exchange", "_forgetting", "line")

    def __init__(self, bridge: Bridge, exchange: LoopThread, close: Close) -> None:
        self.line = exchange.lease()
        self._exchange = exchange
        self._forgetting = finalize(bridge, _forgotten, exchange, self.line, close)
        self._forgetting.atexit = False  # Exchange.end closes what is left
        exchange.bridges.add(bridge)

    def end(self) -> None:
        """Give the hold back."""
        self._forgetting.detach()
        self._exchange.give_back()


class Bridge:
    """One client's way to the loop, usable from any thread.

    `close` is the client's coroutine function that closes its connections on the running loop.
    """

    __slots__ = ("__weakref__", "_close", "_lease")

    def __init__(self, close: Close) -> None:
        self._close = close
        self._lease: _Lease | None = None

    def call(self, func: Callable[P, Coroutine[Any, Any, T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a coroutine function on the loop, in the caller's context, and give what it gives.

        An exception that ends the wait, such as KeyboardInterrupt, cancels the call, and leaves with
        `.outcome`, `.result` and a note on whether money may have moved (see `BlockingCall.account`).

        Raises:
            ConfigurationError: called on the loop itself, which would wait for itself for ever; or gevent or
                eventlet has replaced threads.
        """
        hop = BlockingCall(func, args, kwargs)
        del args, kwargs  # tracebacks print locals
        self._refuse_own_loop()
        return self._run(self._line(), hop)

    def iterate(
        self, func: Callable[P, AsyncIterator[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Iterator[T]:
        """Give the items of an asynchronous generator, each asked for when it is needed.

        The generator is closed, without waiting for it, when the iteration is given up.

        Raises:
            ConfigurationError: the client was closed, or the process forked, in the middle: the
                generator's end cannot be told from its being cut off.
        """
        self._refuse_own_loop()
        line, items = self._line(), func(*args, **kwargs)
        try:
            while not isinstance(item := self.call(_next, items), _End):
                yield item
            if line.closed:
                raise ConfigurationError("the client was closed during this iteration: begin it again")
        finally:
            if isinstance(items, AsyncGenerator):
                line.leave(BlockingCall(items.aclose, (), {}))

    def close(self) -> None:
        """Close the client's connections and end its lease; a later call takes a new one.

        The last client to close waits for the calls that other threads have under way.

        Raises:
            ConfigurationError: called on the loop itself.
        """
        self._refuse_own_loop()
        with _exchange.lock:
            lease, self._lease = self._lease, None
        if lease is None or lease.line.closed:  # never used, or a parent process's
            return
        try:
            self._run(lease.line, BlockingCall(self._close, (), {}))
        finally:
            lease.end()

    def _refuse_own_loop(self) -> None:
        """Raise ConfigurationError on the bridge's own loop; warn once on another one."""
        if _get_running_loop() is not None:
            _check_not_in_loop()

    def _run(self, line: CallQueue, hop: BlockingCall[T]) -> T:
        try:
            while not line.post(hop):
                line = self._line()
            hop.wait()
            return hop.result()
        except BaseException as stopped:
            if hop.has_raised(stopped):
                raise
            if hop.over:  # it ended while the signal came: the lock can be taken once only
                hop.account(stopped, ended=True)
            else:
                hop.abandon(line, stopped)
            raise

    def _line(self) -> CallQueue:
        lease = self._lease
        if lease is None or lease.line.closed:
            with _exchange.lock:
                lease = self._lease
                if lease is None or lease.line.closed:
                    lease = self._lease = _Lease(self, _exchange, self._close)
        return lease.line


class _End:
    """Stands for the end of an asynchronous iteration."""


_END: Final = _End()


async def _next(items: AsyncIterator[T]) -> T | _End:
    return await anext(items, _END)


def _refuse_greenlets() -> None:
    """Refuse threads that a library has replaced: a loop in one would hold up the thread it serves."""
    library = (_thread.start_new_thread.__module__ or "").partition(".")[0]
    if library in ("gevent", "eventlet"):
        raise ConfigurationError(
            f"{library} has replaced this process's threads, and the event loop behind a Payments client "
            "needs one of the system's: use a worker with threads (gunicorn's gthread), or AsyncPayments "
            "under asyncio"
        )


async def _new_line() -> CallQueue:
    return CallQueue()


def _forgotten(exchange: LoopThread, line: CallQueue, close: Close) -> None:
    """Called by the garbage collector, in any thread, in the middle of anything: no lock, no waiting.

    In a forked child nothing runs: what is to be closed is the parent's, and kept.
    """
    farewell = BlockingCall(_close_in_background, (exchange, close), {})
    if not line.post(farewell):
        _INHERITED.append(farewell)


async def _close_in_background(exchange: LoopThread, close: Close) -> None:
    try:
        await close()
    finally:  # the loop cannot wait for its own end
        threading.Thread(target=exchange.give_back, name="payments-sync-farewell").start()


def _check_not_in_loop() -> None:
    """A loop runs in the caller's thread: ours would deadlock, another one stands still meanwhile."""
    global _warned
    if _exchange.line is not None and _get_running_loop() is _exchange.line.loop:
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


def _after_fork() -> None:
    global _exchange
    _exchange.inherited()
    _exchange = LoopThread()


_INHERITED: Final[list[object]] = []
"""Kept for as long as a forked child lives, so that nothing of its parent's is finalized in it."""
_exchange = LoopThread()
_warned = False

atexit.register(lambda: _exchange.end())  # whichever it is by then: a fork changes it
if hasattr(os, "register_at_fork"):  # pragma: no branch  # Windows has no fork
    os.register_at_fork(after_in_child=_after_fork)
