"""Sends requests by aiohttp's public interface: any aiohttp, any proxy. Slower than `direct`.

`sent` becomes true when the request has a connection and before aiohttp writes it, never later. It may be
early by a few instructions: then an attempt that sent nothing counts as in doubt. With an unknown aiohttp,
which may not call the request, `sent` becomes true before aiohttp gets the request.
"""

from __future__ import annotations

import inspect
from contextvars import ContextVar
from functools import lru_cache
from types import FunctionType
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
from yarl import URL

from .addresses import PROXY_RULE, is_host
from .connections import abort, check_fresh, read_answer, receive_less
from .types import HTTPRequest, HTTPResponse, withheld

_AUTOMATIC: Final = ("Accept", "Accept-Encoding", "User-Agent")
"""Headers that aiohttp adds when they are missing, besides the content type."""


class _PendingRequest:
    """A request that aiohttp is sending."""

    __slots__ = ("has_connection", "request")

    def __init__(self, request: HTTPRequest) -> None:
        self.request = request
        self.has_connection = False


_PENDING: Final[ContextVar[_PendingRequest]] = ContextVar("_PENDING")
"""The running task's request, so that aiohttp's request finds ours."""


def proxy_address(proxy: str) -> URL:
    """Parse a proxy's address; one that is refused is not repeated, as it may hold a password.

    A password with `/`, `?` or `#` in it, unescaped, would be taken for a port and a path.

    Raises:
        ValueError: not an absolute http(s) address, or more than an origin.
    """
    try:
        url = URL(proxy)
        host, is_origin = url.raw_host, url.raw_path_qs == "/" and "#" not in proxy
        fit = url.scheme in ("http", "https") and host is not None and is_host(host) and is_origin
    except ValueError:
        fit = False
    if not fit:
        raise ValueError(PROXY_RULE)
    return url


class SessionSender:
    """Opens sessions and sends over them, optionally through an HTTP proxy (`proxy` is its address)."""

    def __init__(self, proxy: str | None) -> None:
        """Raises ValueError for a proxy's address that is invalid."""
        self._proxy = None if proxy is None else proxy_address(proxy)

    def session(self, connector: TCPConnector, timeout: ClientTimeout) -> ClientSession:
        """Open a session on the running loop; it owns the connector.

        The session adds no cookies, headers, decompression or proxy settings of its own.
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
        self, session: ClientSession, url: URL, request: HTTPRequest, limit: int
    ) -> HTTPResponse:
        """Send a request and read its answer of at most `limit` bytes."""
        if is_replaced() or not _ASKS_REQUESTS_TO_SEND:
            if request.is_withheld:
                raise withheld()
            request.sent = True  # a replacement of aiohttp does not say when it sends
        token = _PENDING.set(_PendingRequest(request))
        try:
            response = await session.request(
                request.method,
                url,
                data=request.body,
                headers=request.headers,
                skip_auto_headers=_unwanted(
                    tuple(request.headers), request.body is None and request.method == "GET"
                ),
                allow_redirects=False,
                proxy=self._proxy,
            )
        except ClientConnectorError:
            request.sent = False
            raise
        finally:
            _PENDING.reset(token)
        try:
            return await read_answer(response.status, response.headers, response.content, limit)
        except BaseException:
            response.close()
            raise


@lru_cache(maxsize=64)
def _unwanted(names: tuple[str, ...], bodiless: bool) -> tuple[str, ...] | None:
    """The headers that aiohttp must not add to those of our request. Cached."""
    present = {name.lower() for name in names}
    automatic = _AUTOMATIC if bodiless else (*_AUTOMATIC, "Content-Type")
    missing = tuple(name for name in automatic if name.lower() not in present)
    return missing or None


class SessionRequest(ClientRequest):
    """aiohttp's request, extended: it checks its connection before use, and is written only once."""

    def __init__(self, method: str, url: URL, **options: Any) -> None:
        """Turn off aiohttp's own repeat of a GET whose pooled connection was dead."""
        if _PENDING.get().has_connection:
            raise ClientConnectionResetError("aiohttp would have sent it again")
        super().__init__(method, url, **options)

    async def send(self, conn: Connection) -> ClientResponse:
        """Mark our request as sent and have aiohttp write it; called when there is a connection."""
        pending = _PENDING.get()
        pending.has_connection = True
        pending.request.connection = conn.transport
        check_fresh(conn.protocol)
        receive_less(conn.transport)
        if pending.request.is_withheld:
            conn.release()  # before aiohttp closes it
            raise withheld()
        pending.request.sent = True
        return await super().send(conn)


class AbortingResponse(ClientResponse):
    """aiohttp's response, extended: it aborts its connection when it is closed early."""

    def close(self) -> None:
        """End the attempt; not called when an answer was read to its end."""
        if self.connection is not None:
            abort(self.connection)
        super().close()


def is_stock(session: ClientSession) -> bool:
    """Return whether a session is as made here: no trace configs, and aiohttp's own connector.

    Agents that trace HTTP (OpenTelemetry's, Sentry's) add trace configs when a session is made.
    """
    return not session.trace_configs and type(session.connector).__module__ == TCPConnector.__module__


def is_replaced() -> bool:
    """Return whether aiohttp's session is replaced, as by aioresponses and traffic recorders."""
    return ClientSession._request is not REQUEST


def _own(method: object, neighbour: object) -> object:
    """aiohttp's own method; None when it was replaced before import, which shows by a neighbour's file."""
    source = _source(method)
    return method if source is not None and source == _source(neighbour) else None


def _source(method: object) -> str | None:
    return method.__code__.co_filename if isinstance(method, FunctionType) else None


REQUEST: Final = _own(ClientSession._request, ClientSession.close)

RESOLVE_HOST: Final = _own(TCPConnector._resolve_host, TCPConnector.close)

_ASKS_REQUESTS_TO_SEND: Final = list(inspect.signature(ClientRequest.send).parameters) == ["self", "conn"]
"""True if the requests of this aiohttp send themselves over a connection, by their signature."""
