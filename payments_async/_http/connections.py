"""Connections of aiohttp, as `direct` and `session` use them: check one, set it up, abort it, keep it idle.

A pooled connection is checked before it is used: aiohttp takes bytes that arrived on an idle connection for
the next answer. An attempt that ended early has its connection aborted, not closed: closing under TLS waits
for the peer, half a minute if it is silent, and would send what was given up.

Idle connections to one origin skip aiohttp's pool: the last one used is the next one used.
"""

from __future__ import annotations

from asyncio import BaseTransport, selector_events
from typing import Final

from aiohttp import ClientConnectionResetError
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from yarl import URL

from payments_async._runtime import Runtime, Timer

_RECEIVE: Final = 64 * 1024
"""asyncio allocates a read's buffer at full size; its 256 KiB cost each answer a system call for memory."""

_STOCK: Final = getattr(selector_events, "_SelectorSocketTransport", None)


def is_fresh(protocol: ResponseHandler | None) -> bool:
    """Whether a connection stands, and nothing has arrived on it before anything was asked.

    aiohttp hands out an idle connection without looking at what has come in meanwhile (a server's farewell
    before it hangs up, say) and would take that for the answer to the next request.
    """
    return protocol is not None and protocol.is_connected() and not protocol.should_close


def check_fresh(protocol: ResponseHandler | None) -> None:
    """Refuse a connection that is not fresh."""
    if not is_fresh(protocol):
        raise ClientConnectionResetError("the pooled connection was no longer usable")


def abort(connection: Connection) -> None:
    """Break a connection off.

    Closing it under TLS would say farewell first and wait for the peer's, half a minute if the peer is
    silent; and what is still in our buffers would be sent although the attempt has been given up.
    """
    transport = connection.transport
    if transport is not None:
        transport.abort()


def receive_less(transport: BaseTransport | None) -> None:
    """Have the stock loop read this connection into a smaller buffer."""
    if type(transport) is _STOCK:
        transport.max_size = _RECEIVE  # type: ignore[union-attr] # the stock transport's own, undeclared


REST: Final = 5.0
"""Seconds between two moments at which all that wait go back to the pool."""

LONGEST: Final = 15.0
"""Seconds that a connection may wait, here and in the pool: aiohttp's own figure."""


class IdleConnections:
    """The waiting connections of one loop, all to one origin. The last one used is the next one used."""

    __slots__ = ("_closed", "_ready", "_runtime", "_timer", "_url")

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._ready: list[tuple[Connection, ResponseHandler, float]] = []
        self._timer: Timer | None = None
        self._url: URL | None = None
        self._closed = False

    def take(self, url: URL) -> Connection | None:
        """One that can be written to; those that no longer can are closed on the way. None: ask the pool."""
        if url is not self._url:
            self._turn_to(url)
        ready = self._ready
        while ready:
            connection, protocol, since = ready.pop()
            if is_fresh(protocol) and self._runtime.monotonic() - since < LONGEST:
                return connection
            abort(connection)  # no farewell under TLS to a peer that may be silent
            connection.close()
        return None

    def keep(self, connection: Connection, protocol: ResponseHandler) -> None:
        """Have one wait whose answer has been read to its end, and nothing but that."""
        if self._closed:
            connection.release()
            return
        self._ready.append((connection, protocol, self._runtime.monotonic()))
        if self._timer is None:
            self._timer = self._runtime.call_later(REST, self._rest)

    def give_back(self) -> None:
        """Return all to the pool; no longer does anything where the pool is closed."""
        while self._ready:
            self._ready.pop()[0].release()

    def close(self) -> None:
        """Return all, and keep none from now on. On the loop itself."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self.give_back()

    def _rest(self) -> None:
        self._timer = None
        self.give_back()

    def _turn_to(self, url: URL) -> None:
        """A request to another address: of another origin, it has no use for what waits."""
        if self._url is not None and self._url.origin() != url.origin():
            self.give_back()
        self._url = url
