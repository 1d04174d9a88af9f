"""Sends requests by aiohttp's public interface: any aiohttp, any proxy. Slower than `direct`.

aiohttp's session makes a request and gives it a connection; the request writes itself and returns the
response to be read. Here the request writes bytes that were made beforehand (`head.serialize`, as `direct`
does), because aiohttp builds them from several mappings and, below Python 3.12, starts a task for the body.
aiohttp is given only method and address of such a request and must never write it: it would go out without
its idempotency key and body. So it has a header that no aiohttp agrees to write.

aiohttp writes the request itself when the body is long, when a proxy needs the whole address, when the
session is traced or replaced, and when this aiohttp makes its responses in an unknown way.

`sent` is set to true when the request has a connection and before it is written. It is never late. Where
aiohttp writes, it may be early by a few instructions: then an attempt that sent nothing counts as in doubt.
An unknown aiohttp may not call the request at all; with one, `sent` is set before aiohttp sees the request.
"""

from __future__ import annotations

import inspect
from contextvars import ContextVar
from functools import lru_cache
from types import FunctionType, SimpleNamespace
from typing import Any, Final

from aiohttp import (
    ClientConnectionResetError,
    ClientConnectorError,
    ClientRequest,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    TCPConnector,
)
from aiohttp.connector import Connection
from multidict import istr
from yarl import URL

from payments_async._http.body import read_answer
from payments_async._http.connections import abort, check_fresh, receive_less
from payments_async._http.head import BODILESS, serialize
from payments_async._http.types import HTTPRequest, HTTPResponse

_AUTOMATIC: Final = ("Accept", "Accept-Encoding", "User-Agent")
"""Headers that aiohttp adds by itself where they are missing, besides the type of a body."""

_SMALL: Final = 32 * 1024
"""Bytes of a body that a connection takes in without asking for a pause, even of a slow peer."""

_UNSENDABLE: Final = istr("X-Unsendable")  # no aiohttp writes a header whose value is a new line


class _PendingRequest:
    """A flight on its way through aiohttp; `message` is its bytes if the request writes them itself."""

    __slots__ = ("flight", "is_out", "message")

    def __init__(self, flight: HTTPRequest, message: bytes | None) -> None:
        self.flight = flight
        self.message = message
        self.is_out = False  # whether a request has been given a connection for it


_ERRAND: Final[ContextVar[_PendingRequest]] = ContextVar("_ERRAND")
"""The running task's: how a request, which aiohttp makes, learns what it is for."""


class SessionSender:
    """Opens sessions and flies over them, optionally through an HTTP proxy (`proxy` is its address)."""

    def __init__(self, proxy: str | None) -> None:
        self._proxy = None if proxy is None else URL(proxy)

    def session(self, connector: TCPConnector, timeout: ClientTimeout) -> ClientSession:
        """A session of the running loop, which owns the connector.

        It adds nothing of its own: no cookies, headers, decompression or environment.
        """
        return ClientSession(
            connector=connector,
            timeout=timeout,
            request_class=SessionRequest,
            response_class=AbortingResponse,
            cookie_jar=DummyCookieJar(),
            auto_decompress=False,
            raise_for_status=False,
            trust_env=False,
        )

    async def exchange(
        self, session: ClientSession, url: URL, flight: HTTPRequest, limit: int
    ) -> HTTPResponse:
        """Send the flight and read its answer of at most `limit` bytes."""
        by_itself = self._may_write(session, url, flight)
        if not by_itself and (is_replaced() or not _MARKED):
            flight.sent = True  # whoever answers in aiohttp's place does not say when
        token = _ERRAND.set(_PendingRequest(flight, serialize(url, flight) if by_itself else None))
        try:
            response = await session.request(
                flight.method,
                url,
                allow_redirects=False,
                proxy=self._proxy,
                **({} if by_itself else _stated(flight)),
            )
        except ClientConnectorError:
            flight.sent = False
            raise
        finally:
            _ERRAND.reset(token)
        try:
            return await read_answer(response.status, response.headers, response.content, limit)
        except BaseException:
            response.close()
            raise

    def _may_write(self, session: ClientSession, url: URL, flight: HTTPRequest) -> bool:
        """Whether a request may write itself: nobody else has anything to add or wants to see it."""
        return (
            _MARKED
            and _FAMILIAR
            and not is_patched()
            and not session.trace_configs
            and len(flight.body or b"") <= _SMALL
            and (self._proxy is None or url.scheme == "https")
        )


def _stated(flight: HTTPRequest) -> dict[str, Any]:
    """What aiohttp is told of a request that it is to write."""
    bodiless = flight.body is None and flight.method in BODILESS
    unwanted = _unwanted(tuple(flight.headers), bodiless)
    return {"data": flight.body, "headers": flight.headers, "skip_auto_headers": unwanted}


@lru_cache(maxsize=64)
def _unwanted(names: tuple[str, ...], bodiless: bool) -> tuple[str, ...] | None:
    """What aiohttp is kept from adding: what goes out is what the flight says. Asking for it takes time."""
    present = {name.lower() for name in names}
    automatic = _AUTOMATIC if bodiless else (*_AUTOMATIC, "Content-Type")
    missing = tuple(name for name in automatic if name.lower() not in present)
    return missing or None


class SessionRequest(ClientRequest):
    """aiohttp's request, which looks at its connection before using it, and is written once."""

    def __init__(self, method: str, url: URL, **options: Any) -> None:
        """aiohttp repeats a GET whose pooled connection was dead, out of our sight. Not with us."""
        errand = _ERRAND.get()
        if errand.is_out:
            raise ClientConnectionResetError("aiohttp would have sent it again")
        super().__init__(method, url, **options)
        if errand.message is not None:  # aiohttp knows neither body nor key then, and must never write it
            self.headers[_UNSENDABLE] = "\n"

    async def send(self, conn: Connection) -> ClientResponse:
        """Mark the flight and write the request; called by the session when it has a connection."""
        errand = _ERRAND.get()
        errand.is_out = True
        errand.flight.connection = conn.transport
        check_fresh(conn.protocol)
        receive_less(conn.transport)
        if errand.message is None:
            errand.flight.sent = True
            return await super().send(conn)
        response = self.response_class(  # made first: if this is not how, nothing is sent
            self.method,
            self.url,
            request_info=self.request_info,
            loop=self.loop,
            session=self.session,
            **_WRITTEN,
        )
        assert conn.transport is not None
        errand.flight.sent = True
        conn.transport.write(errand.message)
        return response


class AbortingResponse(ClientResponse):
    """aiohttp's response, which breaks its connection off when it ends before its time."""

    def close(self) -> None:
        """End the attempt; not called when an answer was read to its end."""
        if self.connection is not None:
            abort(self.connection)
        super().close()


def is_stock(session: ClientSession) -> bool:
    """Whether a session is as it was made here: without trace configs, over a connector of aiohttp's own.

    Agents that trace HTTP (OpenTelemetry's, Sentry's) add trace configs where a session is made.
    """
    return not session.trace_configs and type(session.connector).__module__ == TCPConnector.__module__


def is_replaced() -> bool:
    """Whether something stands in for aiohttp's session, as aioresponses and recorders of traffic do."""
    return ClientSession._request is not _REQUEST


def is_patched() -> bool:
    """Whether something stands in for aiohttp's session, or for its connector, as aiointercept does."""
    return ClientSession._request is not _REQUEST or TCPConnector._resolve_host is not _RESOLVE_HOST


def _own(method: object, neighbour: object) -> object:
    """aiohttp's own method, told by a neighbour's file; None where something stood in for it at import."""
    source = _source(method)
    return method if source is not None and source == _source(neighbour) else None


def _source(method: object) -> str | None:
    return method.__code__.co_filename if isinstance(method, FunctionType) else None


_REQUEST: Final = _own(ClientSession._request, ClientSession.close)

_RESOLVE_HOST: Final = _own(TCPConnector._resolve_host, TCPConnector.close)

_MARKED: Final = list(inspect.signature(ClientRequest.send).parameters) == ["self", "conn"]
"""Whether this aiohttp hands its requests the connection, as far as can be seen."""

_ARGUMENTS: Final = frozenset(inspect.signature(ClientResponse).parameters)

_FAMILIAR: Final = _ARGUMENTS - {"stream_writer"} == frozenset(
    ("method", "url", "request_info", "loop", "session", "writer", "continue100", "timer", "traces")
)
"""Whether this aiohttp's responses are made of what they were when this was written."""

_WRITTEN: Final[dict[str, Any]] = dict.fromkeys(("writer", "continue100", "timer")) | {"traces": []}
"""What a response is told of a request that has been written: there is nothing to wait for."""

if "stream_writer" in _ARGUMENTS:  # pragma: no branch - aiohttp 3.14 wants to know
    _WRITTEN["stream_writer"] = SimpleNamespace(output_size=0)
