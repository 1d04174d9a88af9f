"""Checks, sets up, aborts and keeps aiohttp's connections, for `direct` and `session`.

A pooled connection is checked before use: aiohttp takes bytes that arrived on an idle connection for the next
answer. When an attempt ends early, its connection is aborted, not closed: closing under TLS waits for the
peer, half a minute if it is silent, and would still send the cancelled request.

Idle connections to one origin skip aiohttp's pool; the last one used is the next one used.
"""

from __future__ import annotations

from asyncio import BaseTransport, selector_events
from typing import Final

from aiohttp import ClientConnectionResetError
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from yarl import URL

from .._runtime import Runtime, Timer

_RECEIVE: Final = 64 * 1024
"""Bytes of a read buffer. asyncio's 256 KiB, allocated for each read, cost each answer a system call."""

_STOCK: Final = getattr(selector_events, "_SelectorSocketTransport", None)


def is_fresh(protocol: ResponseHandler | None) -> bool:
    """Return whether a connection is open and no bytes arrived on it while it was idle.

    aiohttp would take bytes that came in meanwhile (such as a server's last words before it closes) for the
    answer to the next request.
    """
    return protocol is not None and protocol.is_connected() and not protocol.should_close


def check_fresh(protocol: ResponseHandler | None) -> ResponseHandler:
    """Raise for a connection that is not fresh."""
    if protocol is None or not is_fresh(protocol):
        raise ClientConnectionResetError("the pooled connection was no longer usable")
    return protocol


def abort(connection: Connection) -> None:
    """Abort a connection.

    Closing under TLS would wait for the peer's closing message, half a minute if the peer is silent; and
    bytes still in our buffers would be sent although the attempt was given up.
    """
    transport = connection.transport
    if transport is not None:
        transport.abort()


def end(connection: Connection) -> None:
    """Abort a connection, and take it from aiohttp's."""
    abort(connection)  # no TLS closing message to a peer that may be silent
    connection.close()


def receive_less(transport: BaseTransport | None) -> None:
    """Make asyncio's own event loop read this connection into a smaller buffer."""
    if type(transport) is _STOCK:
        transport.max_size = _RECEIVE  # type: ignore[union-attr] # the stock transport's own, undeclared


REST: Final = 5.0  # seconds after which all idle connections return to the pool

LONGEST: Final = 15.0
"""Seconds that a connection may stay idle, here and in the pool: aiohttp's own figure."""


class IdleConnections:
    """The idle connections of one event loop, all to one origin. The last one used is the next one used."""

    __slots__ = ("_closed", "_monotonic", "_ready", "_runtime", "_timer", "_url")

    def __init__(self, runtime: Runtime) -> None:
        self._runtime, self._monotonic = runtime, runtime.monotonic
        self._ready: list[tuple[Connection, ResponseHandler, float]] = []
        self._timer: Timer | None = None
        self._url: URL | None = None
        self._closed = False

    def take(self, url: URL) -> tuple[Connection, ResponseHandler] | None:
        """Take a usable connection; None when there is none. Unusable ones on the way are aborted."""
        if url is not self._url:
            if self._url is not None and self._url.origin() != url.origin():
                self.give_back()
            self._url = url
        ready = self._ready
        while ready:
            connection, protocol, since = ready.pop()
            if is_fresh(protocol) and self._monotonic() - since < LONGEST:
                return connection, protocol
            end(connection)
        return None

    def keep(self, connection: Connection, protocol: ResponseHandler) -> None:
        """Keep a connection whose answer was read to its end, with no bytes after it."""
        if self._closed:
            connection.release()
            return
        self._ready.append((connection, protocol, self._monotonic()))
        if self._timer is None:
            self._timer = self._runtime.call_later(REST, self._rest)

    def give_back(self) -> None:
        """Return all connections to the pool; no effect when the pool is closed."""
        while self._ready:
            self._ready.pop()[0].release()

    def close(self) -> None:
        """Return all connections and keep none from now on. Call on the loop itself."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self.give_back()

    def _rest(self) -> None:
        self._timer = None
        self.give_back()
