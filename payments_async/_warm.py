"""Connections between two requests to the same place: taken and left without asking aiohttp's pool.

The pool, asked before and after each request, is a sixteenth of what a call costs. So a connection whose
answer came whole waits here for the next request, and goes back to the pool, which closes what stays idle,
when none has come for a while.
"""

from __future__ import annotations

from typing import Final

from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from yarl import URL

from payments_async._http.connections import abort, is_fresh
from payments_async._runtime import Runtime, Timer

REST: Final = 5.0
"""Seconds between two moments at which all that wait go back to the pool."""

LONGEST: Final = 15.0
"""Seconds that a connection may wait, here and in the pool: aiohttp's own figure."""


class Warm:
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
