"""The aiohttp transport: one `HTTPRequest` in, one `HTTPResponse` or one kind of failure out.

`direct` sends the request; `session` does so through a proxy, or with an aiohttp that `direct` does not know.
`failures` names the failure.

Deadlines: one timer serves all attempts of an event loop, instead of one for each. An attempt that is still
under way at its deadline, or when the connections are closed, has its task cancelled, the way
`asyncio.timeout` does it: the deadline recognises its own cancellation and takes it back. Another
cancellation stays in place.

Loops: each event loop has connections of its own, opened with its first request. An asynchronous generator
that stays suspended in the loop closes them when the loop shuts its generators down, as `asyncio.run` does,
so that a forgotten `aclose()` costs no warning. A loop that was closed otherwise is dropped when the next one
opens.

Sharing: transports made by `share` use the same connections. When one is closed and no other is open, the
connections close; also when all are dropped. One is open until it is closed, and again with its next request.
A connection has no state of a secret key: each request's head has its own, and no cookies are kept.

Fork: the child neither uses nor closes the parent's sockets. Closing them would also remove them from the
selector, which both processes share.

Secrets: a failure is raised as a new exception outside its handler, without cause or context, so that no
traceback reaches a frame that holds the headers. A cancellation leaves as a new `CancelledError` with the
same arguments.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import ssl
from asyncio import AbstractEventLoop, CancelledError, _get_running_loop
from collections.abc import AsyncGenerator, Callable
from copy import copy
from datetime import datetime
from typing import Final, Literal
from weakref import WeakSet, finalize

from aiohttp import ClientSession, ClientTimeout, TCPConnector, ThreadedResolver
from aiohttp.connector import Connection

from .._runtime import Runtime, Timer, event_loop, renewed_in_child
from .connections import LONGEST, REST, IdleConnections, end
from .direct import DirectSender, RawAnswer, is_patched, is_supported, target
from .failures import describe
from .session import SessionSender, is_stock
from .types import FailureKind, HTTPRequest, HTTPResponse, TransportError, check_head

MAX_BODY: Final = 4 * 1024 * 1024
"""Bytes of an answer's body, before and after decompression."""
TICK: Final = 0.01
"""Least seconds between two checks of the attempts: thousands of deadlines cost 100 checks a second."""

Verdict = Literal["undisturbed", "overdue", "closed", "cancelled"]
"""The end of an attempt: by itself, by its deadline, by closing connections, by cancelling the task."""


class Deadlines:
    """The deadlines of one loop and their one timer. Times are seconds of `runtime.monotonic()`."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._running: dict[asyncio.Task[object], tuple[float, int, Verdict, object]] = {}
        """For each attempt's task: deadline, how often it was cancelled before, how it ended, transport."""
        self._timer: Timer | None = None
        self._due = math.inf

    def start(
        self, seconds: float, loop: asyncio.AbstractEventLoop | None = None, transport: object = None
    ) -> asyncio.Task[object]:
        """Start a deadline for the running task, until `stop`. Finding the loop is a system call."""
        task = asyncio.current_task(loop)
        assert task is not None, "a transport is used from a task"
        at = self._runtime.monotonic() + seconds
        self._running[task] = (at, task.cancelling(), "undisturbed", transport)
        if at < self._due:
            self._set_timer(at, max(seconds, 0.0))
        return task

    def stop(self, task: asyncio.Task[object]) -> Verdict:
        """End a deadline; call once. Another cancellation wins, also one from before the attempt."""
        _, cancelling, verdict, _ = self._running.pop(task)
        if verdict != "undisturbed" and task.uncancel() <= cancelling:
            return verdict
        return "cancelled" if task.cancelling() else "undisturbed"

    def close(self, transport: object = None) -> None:
        """End the attempts under way, of one transport or all: their answers may never come now."""
        self._expire("closed", math.inf, transport)

    def _set_timer(self, due: float, delay: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._due = due
        self._timer = self._runtime.call_later(delay, self._check)

    def _check(self) -> None:
        """End overdue attempts and set the timer for the next deadline, if there is one."""
        now = max(self._runtime.monotonic(), self._due)  # a loop may run a timer a clock tick early
        self._timer, self._due = None, math.inf
        self._expire("overdue", now)
        due = min(
            (at for at, _, verdict, _ in self._running.values() if verdict == "undisturbed"), default=None
        )
        if due is not None:
            due = max(due, now + TICK)
            self._set_timer(due, due - now)

    def _expire(self, verdict: Verdict, until: float, transport: object = None) -> None:
        """Cancel the attempts with deadlines until then, of one transport or all, each once."""
        for task, (at, cancelling, ended, sender) in list(self._running.items()):
            if ended == "undisturbed" and at <= until and transport in (None, sender):
                self._running[task] = (at, cancelling, verdict, sender)
                task.cancel()


class Slots(asyncio.Semaphore):
    """How many requests may be under way."""

    def take(self) -> bool:
        """Take a slot without awaiting; False when none is free, or others wait for one."""
        if not self._value or self._waiters:
            return False
        self._value -= 1
        return True


class LoopConnections:
    """The connections of one event loop, their slots, and the deadlines of its attempts."""

    __slots__ = ("closing", "deadlines", "direct", "idle", "keeper", "session", "slots", "users")

    def __init__(self, session: ClientSession, max_connections: int, runtime: Runtime) -> None:
        self.session = session
        self.idle = IdleConnections(runtime)
        self.direct: DirectSender | None = None
        """Sends without aiohttp's requests and responses, where that is possible."""
        self.slots = Slots(max_connections)
        self.deadlines = Deadlines(runtime)
        self.keeper = self._keep()
        self.closing: asyncio.Task[None] | None = None
        self.users: WeakSet[AiohttpTransport] = WeakSet()
        """Those that sent requests since they were last closed on this loop."""

    async def _keep(self) -> AsyncGenerator[None, None]:
        """Wait, suspended, until the ending loop closes its generators; then close the connections."""
        _OPEN.add(self)
        try:
            yield
        finally:
            if self.closing is not None:
                await asyncio.wait([self.closing])
            await self.close()

    async def close(self) -> None:
        """Close the connections that are still open."""
        self.deadlines.close()
        self.idle.close()
        _OPEN.discard(self)
        await self.session.close()

    def disown(self) -> None:
        """Leave a parent's sockets alone, in a child that was copied from it.

        Closing them here would also take them out of the parent's selector, which a fork shares. They stay in
        `_OPEN` for as long as the child lives, so that the child does not finalize the parent's objects.
        """
        connector = self.session.connector
        assert connector is not None, "what is closed is not in `_OPEN`"
        self.session.detach()
        connector._closed = True  # otherwise its finalizer closes the connections
        self.idle.give_back()  # to a closed pool: nothing happens to them

    def close_soon(self) -> None:
        """Close on the running loop, after all transports were dropped.

        `_keep` cannot do it: the loop may be closing that generator at this moment.
        """
        self.closing = asyncio.ensure_future(self.close())


_OPEN: Final[set[LoopConnections]] = set()
"""Connections that are not yet closed. Held here as well as by the transport: when a transport is dropped in
a cycle, its session would be finalized, with a warning, before it could be closed."""


class SharedConnections:
    """The connections of each event loop, for all transports that share them."""

    __slots__ = ("__weakref__", "loops", "unclosed")

    def __init__(self) -> None:
        self.loops: dict[AbstractEventLoop, LoopConnections] = {}
        self.unclosed: WeakSet[AiohttpTransport] = WeakSet()
        """Those that were never closed."""
        finalize(self, _close_dropped, self.loops).atexit = False


def _close_dropped(loops: dict[AbstractEventLoop, LoopConnections]) -> None:
    """Close the connections of dropped transports, each on its own loop, unless that loop has ended."""
    for loop, opened in loops.items():
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(opened.close_soon)


class AiohttpTransport:
    """Sends requests over HTTP/1.1 with kept connections. Make it anywhere; use it from any event loop.

    Args:
        connect_timeout: seconds for a TCP and TLS connection.
        max_connections: connections, and so requests under way, per event loop; the rest wait their turn.
        proxy: address of an HTTP proxy; the environment's proxy variables are not read.
        ssl_context: replaces the system's certificate authorities and TLS settings.
        runtime: clock and timers.

    Raises:
        ValueError: the proxy's address is invalid.
    """

    def __init__(
        self,
        *,
        connect_timeout: float = 10.0,
        max_connections: int = 256,
        proxy: str | None = None,
        ssl_context: ssl.SSLContext | None = None,
        runtime: Runtime,
    ) -> None:
        self._sessions = SessionSender(proxy)
        self._is_direct = proxy is None and is_supported()
        self._timeout = ClientTimeout(total=None, sock_connect=connect_timeout)
        self._max_connections = max_connections
        self._ssl: ssl.SSLContext | bool = True if ssl_context is None else ssl_context
        self._runtime = runtime
        self._shared = SharedConnections()
        self._begin()

    def share(self) -> AiohttpTransport:
        """Make a transport that uses the same connections and is closed for itself."""
        other = copy(self)
        other._begin()
        return other

    def _begin(self) -> None:
        self._loops: dict[AbstractEventLoop, LoopConnections] = {}
        """The connections that this transport uses."""
        self._shared.unclosed.add(self)
        _TRANSPORTS.add(self)

    async def send(self, request: HTTPRequest) -> HTTPResponse:
        """Send a request. Redirects are not followed, informational answers are skipped.

        `request.sent` becomes true immediately before the first byte is written; a failure before that has
        sent nothing. Nothing is sent twice. A cancelled or failed attempt's connection is closed.

        Raises:
            TransportError: no usable answer. It has no cause and no context: those could show headers.
            asyncio.CancelledError: the task was cancelled; a new exception with the same arguments.
            BaseException: an interrupt, without the frames it came through.
            ValueError: the method, address or a header is invalid; nothing was sent.
            ConfigurationError: no asyncio event loop runs.
        """
        url, start = target(request.method, request.url)
        check_head(request)
        loop = _get_running_loop() or event_loop()
        opened = self._loops.get(loop) or await self._open(loop)
        slots, direct, limit = opened.slots, opened.direct, MAX_BODY
        connection: Connection | None = None
        outcome: HTTPResponse | RawAnswer | BaseException
        late: FailureKind = "pool"  # waiting for a slot comes first
        task = opened.deadlines.start(request.timeout, loop, self)
        try:
            if not slots.take():
                await slots.acquire()
            try:
                late = "timeout"
                if direct is None or is_patched():
                    outcome = await self._sessions.exchange(opened.session, url, request, limit)
                else:
                    connection, protocol = direct.idle.take(url) or await direct.connect(url)
                    direct.write(connection, protocol, start, request)
                    # No name for the raw answer: tracebacks print locals, and its headers may hold the key.
                    outcome = direct.usual(connection, protocol, await protocol.read(), limit)
                    if not isinstance(outcome, HTTPResponse):
                        outcome = await direct.read(connection, protocol, outcome, limit)
            finally:
                slots.release()
        except BaseException as exc:
            outcome = exc
            if connection is not None:
                end(connection)
        verdict = opened.deadlines.stop(task)
        if isinstance(outcome, HTTPResponse):
            return outcome
        assert isinstance(outcome, BaseException)
        outcome = _reported(outcome, verdict, request, late, self._runtime.now)
        try:
            raise outcome
        finally:
            del outcome  # an exception in its own traceback's frame would keep both alive

    async def aclose(self) -> None:
        """Close every connection of the running loop, unless another transport that shares them is open.

        Attempts under way fail, later ones reopen.
        """
        self._shared.unclosed.discard(self)
        loop = _get_running_loop()  # None under trio: nothing is open there
        if loop is None or (opened := self._shared.loops.get(loop)) is None:
            return
        self._loops.pop(loop, None)
        opened.users.discard(self)
        if opened.users or self._shared.unclosed:
            opened.deadlines.close(self)
        else:
            del self._shared.loops[loop]
            await opened.keeper.aclose()

    async def _open(self, loop: AbstractEventLoop) -> LoopConnections:
        shared = self._shared.loops.get(loop)
        opened = self._loops[loop] = shared or self._connections(loop)
        opened.users.add(self)
        if shared is None:
            await anext(opened.keeper)
        await self._drop_closed()
        return opened

    def _connections(self, loop: AbstractEventLoop) -> LoopConnections:
        connector = TCPConnector(
            limit=0, ssl=self._ssl, resolver=ThreadedResolver(), keepalive_timeout=LONGEST - REST
        )
        session = self._sessions.session(connector, self._timeout)
        opened = self._shared.loops[loop] = LoopConnections(session, self._max_connections, self._runtime)
        if self._is_direct and is_stock(session):
            opened.direct = DirectSender(session, opened.idle)
        return opened

    async def _drop_closed(self) -> None:
        """Forget loops that were closed without closing their generators (`asyncio.run` does close them)."""
        for loop in [*self._loops, *self._shared.loops]:  # a copy: other threads open theirs
            if not loop.is_closed():
                continue
            self._loops.pop(loop, None)
            if (opened := self._shared.loops.pop(loop, None)) is not None:
                _OPEN.discard(opened)
                await opened.session.close()
                opened.idle.give_back()


def _reported(
    exc: BaseException, verdict: Verdict, request: HTTPRequest, late: FailureKind, now: Callable[[], datetime]
) -> BaseException:
    """Make the exception to raise for the one that ended an attempt, without its traceback and headers.

    `late` is the failure of an overdue attempt. Closing the connections makes aiohttp cancel some tasks that
    wait for them; that is reported as a failure, because an unrequested cancellation would end a task
    silently.
    """
    if not isinstance(exc, (Exception, CancelledError)):  # an interrupt
        exc.__cause__ = exc.__context__ = None
        return exc.with_traceback(None)
    if verdict == "overdue":
        return TransportError(late, f"the attempt took longer than {request.timeout:g} s")
    if isinstance(exc, CancelledError) and verdict == "cancelled":
        return CancelledError(*exc.args)
    if verdict == "closed":
        return TransportError("closed", "the client was closed meanwhile")
    if isinstance(exc, CancelledError):
        return TransportError("reset" if request.sent else "connect", "the connections were closed")
    return describe(exc, now())


_TRANSPORTS: Final[WeakSet[AiohttpTransport]] = WeakSet()


@renewed_in_child
def _after_fork() -> None:
    for opened in list(_OPEN):
        opened.disown()
    for transport in list(_TRANSPORTS):
        transport._shared.loops.clear()
        transport._loops.clear()
