"""The transport a client gets when it is given none."""

from __future__ import annotations

import asyncio
import os
import ssl
import sys
import threading
from asyncio import AbstractEventLoop, _get_running_loop
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from ._runtime import Runtime
from ._wire import Answer, Flight, Transport, TransportFailure
from .errors import ConfigurationError

if TYPE_CHECKING:
    from ._transport import AiohttpTransport

_DOOR: Final = f"{__package__}._transport"

_IMPORTING: Final = threading.RLock()
"""Held while the library is imported. A fork waits for it: a child of a half-done import, whose thread it has
not got, would find Python's own locks on the modules held for ever. Re-entrant: an import may fork."""
_STATE: Final = threading.RLock()
"""Held for moments, by whoever looks at who loads and who waits, or changes it; a fork waits for that too."""
_FORK_PATIENCE: Final = 30.0
"""Seconds after which a fork waits no longer: whoever forks may be what the import waits for."""


def default_transport(
    runtime: Runtime,
    connect_timeout: float,
    max_connections: int,
    proxy: str | None,
    ssl_context: ssl.SSLContext | None,
) -> Transport:
    """aiohttp's. It is imported when a first client is made, which takes 0.2 s; on a running loop, later.

    Raises ConfigurationError for a proxy's address that is not one, which is not repeated, and, here or with
    each request, for an aiohttp that cannot be imported.
    """
    if proxy is not None and not _fit(proxy):
        raise ConfigurationError("proxy must be an absolute http(s) address, such as http://proxy.test:3128")

    def make() -> Transport:
        return _library()(
            connect_timeout=connect_timeout,
            max_connections=max_connections,
            proxy=proxy,
            ssl_context=ssl_context,
            runtime=runtime,
        )

    if hasattr(sys.modules.get(_DOOR), "AiohttpTransport"):
        return make()
    if _get_running_loop() is not None:
        return LateTransport(make, runtime)
    with _IMPORTING:
        return make()


def _library() -> type[AiohttpTransport]:
    """What is imported late. A broken installation may raise anything."""
    try:
        from ._transport import AiohttpTransport

        return AiohttpTransport
    except Exception as broken:
        problem = f"{type(broken).__name__}: {broken}"
    raise ConfigurationError(
        f"the HTTP library, aiohttp, cannot be imported ({problem}): install this package anew, "
        "or give the client a transport of your own"
    )


class _Waiter:
    """A request that waits for the library, on its loop."""

    __slots__ = ("closed", "loop", "outcome", "woken")

    def __init__(self) -> None:
        self.loop: AbstractEventLoop = asyncio.get_running_loop()
        self.woken: asyncio.Future[None] = self.loop.create_future()
        self.outcome: Transport | BaseException | None = None
        """What came of the import, once that is known."""
        self.closed = False
        """Whether its loop's connections were closed meanwhile."""

    def wake(self) -> None:
        """From any thread. Nobody waits on a loop that was closed."""
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self._look)

    def _look(self) -> None:
        if not self.woken.done():
            self.woken.set_result(None)


class LateTransport:
    """A transport whose library is imported with the first request, in a thread, while the loop goes on.

    The thread is its own: those of the loop's executor may all be busy.
    """

    def __init__(self, make: Callable[[], Transport], runtime: Runtime) -> None:
        self._make = make
        self._runtime = runtime
        self._transport: Transport | None = None
        self._thread: threading.Thread | None = None
        self._waiting: set[_Waiter] = set()

    def send(self, flight: Flight) -> Coroutine[Any, Any, Answer]:
        """As any transport; the import counts as a part of the attempt. Later it stands in nobody's way."""
        return self._send_late(flight) if self._transport is None else self._transport.send(flight)

    async def _send_late(self, flight: Flight) -> Answer:
        transport = await self._loaded(flight)
        return await transport.send(flight)

    async def aclose(self) -> None:
        """Close every connection of the running loop; what waits there for its first one fails, unsent."""
        loop = asyncio.get_running_loop()
        with _STATE:
            for waiter in self._waiting:
                if waiter.loop is loop:
                    waiter.closed = True
                    waiter.wake()
        if self._transport is not None:
            await self._transport.aclose()

    async def _loaded(self, flight: Flight) -> Transport:
        started, waiter = self._runtime.monotonic(), _Waiter()
        with _STATE:
            if self._transport is not None:  # since the caller looked
                return self._transport
            self._see_to_it_that_it_loads()
            self._waiting.add(waiter)
        try:
            await asyncio.wait([waiter.woken], timeout=flight.timeout)
        finally:
            with _STATE:
                self._waiting.discard(waiter)
        flight.timeout = max(0.0, flight.timeout - (self._runtime.monotonic() - started))
        return _loaded_for(waiter)

    def _see_to_it_that_it_loads(self) -> None:
        """With `_STATE` held. In a forked child the parent's thread is dead and its waiters are not ours."""
        if self._thread is None or not self._thread.is_alive():
            self._waiting.clear()
            thread = threading.Thread(target=self._load, name="payments-import")
            thread.start()
            self._thread = thread

    def _load(self) -> None:
        """In the thread: all who wait get the same one."""
        with _IMPORTING:
            outcome: Transport | BaseException
            try:
                outcome = self._make()
            except BaseException as failed:
                outcome = failed
            with _STATE:
                self._thread = None
                if not isinstance(outcome, BaseException):
                    self._transport = outcome
                for waiter in self._waiting:
                    waiter.outcome = outcome
                    waiter.wake()


def _loaded_for(waiter: _Waiter) -> Transport:
    """What a request gets that has waited."""
    if waiter.closed:
        raise TransportFailure("closed", "the client was closed meanwhile")
    if waiter.outcome is None:
        raise TransportFailure("timeout", "the HTTP library was not loaded in time")
    if isinstance(waiter.outcome, BaseException):
        raise waiter.outcome.with_traceback(None)  # it is raised for each who waited
    return waiter.outcome


def _before_fork() -> None:
    _IMPORTING.acquire(timeout=_FORK_PATIENCE)
    _STATE.acquire()


def _after_fork() -> None:
    _STATE.release()
    with suppress(RuntimeError):  # it was not to be had
        _IMPORTING.release()


if hasattr(os, "register_at_fork"):  # pragma: no branch  # Windows has no fork
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


def _fit(proxy: str) -> bool:
    from ._head import check_proxy

    try:
        check_proxy(proxy)
    except (TypeError, ValueError):
        return False
    return True
