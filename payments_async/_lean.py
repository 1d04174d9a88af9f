"""Requests with aiohttp's own machinery for requests left out: a head and a body written in one go.

aiohttp's request builds headers through several mappings and starts a task to write the body. A call of
this client is a few hundred bytes that are known beforehand, so `LeanRequest` takes the flight as it is. That
leans on parts of aiohttp that are not its public interface; `lean_supported` compares them with what this
module was written for, and on any difference `_plain` is used instead.
"""

from __future__ import annotations

import inspect
from asyncio import AbstractEventLoop, Transport, selector_events
from collections.abc import Awaitable, Callable
from functools import cache
from typing import TYPE_CHECKING, Final, cast

from aiohttp import (
    ClientConnectionResetError,
    ClientRequest,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    RequestInfo,
    TCPConnector,
)
from aiohttp.abc import AbstractStreamWriter
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from payments_async._plain import check_fresh, new_session
from payments_async._wire import Flight

if TYPE_CHECKING:
    from aiohttp.helpers import BaseTimerContext
    from aiohttp.tracing import Trace

_BODILESS: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
"""Methods for which no body needs no `Content-Length: 0`."""

_NO_HEADERS: Final = CIMultiDictProxy(CIMultiDict[str]())

_RECEIVE: Final = 64 * 1024
"""asyncio allocates a read's buffer at full size; its 256 KiB cost each answer a system call for memory."""

_STOCK: Final = getattr(selector_events, "_SelectorSocketTransport", None)


def serialize(method: str, url: URL, flight: Flight) -> bytes:
    """The bytes aiohttp would write: Host first, then the flight's headers, then the length."""
    body = flight.body
    lines = [f"{method} {url.raw_path_qs} HTTP/1.1\r\nHost: {url.host_port_subcomponent}\r\n"]
    lines += [f"{name}: {value}\r\n" for name, value in flight.headers.items()]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}\r\n")
    elif method not in _BODILESS:
        lines.append("Content-Length: 0\r\n")
    lines.append("\r\n")
    head = "".join(lines).encode()
    return head + body if body else head


class _Written:
    """Stands for the writer of a request that is already written; a response asks it nothing but this."""

    output_size = 0


class LeanRequest(ClientRequest):
    """One flight. Holds no headers that an exception of aiohttp could show."""

    proxy = None
    proxy_auth = None
    proxy_headers = None

    def __init__(
        self,
        method: str,
        url: URL,
        *,
        data: Flight | None,
        loop: AbstractEventLoop,
        response_class: type[ClientResponse],
        session: ClientSession,
        timer: BaseTimerContext,
        traces: list[Trace],
        **_unused: object,
    ) -> None:
        self.method = method
        self.url = self.original_url = url
        self.loop = loop
        self.response_class = response_class
        self.server_hostname = None
        self._flight = data
        self._session = session
        self._ssl = True  # the connector's own setting decides
        self._timer = timer
        self._traces = traces

    @property
    def request_info(self) -> RequestInfo:
        """What aiohttp puts into its exceptions: no headers, since one of them is the secret key."""
        return RequestInfo(self.url, self.method, _NO_HEADERS, self.url)

    async def send(self, conn: Connection) -> ClientResponse:
        """Write the request; called by the session when it has a connection.

        Raises:
            ClientConnectionResetError: nothing was written (the connection is stale), or it was before.
        """
        flight, protocol = self._flight, conn.protocol
        check_fresh(protocol)
        if flight is None or flight.sent:  # what a session that repeats requests would pass on
            raise ClientConnectionResetError("aiohttp would have sent it again")
        message = serialize(self.method, self.url, flight)
        assert protocol is not None
        assert protocol.transport is not None
        _write(protocol, protocol.transport, message, flight)
        return self.response_class(
            self.method,
            self.url,
            writer=None,
            continue100=None,
            timer=self._timer,
            request_info=self.request_info,
            traces=self._traces,
            loop=self.loop,
            session=self._session,
            stream_writer=cast(AbstractStreamWriter, _Written),
        )


def _write(protocol: ResponseHandler, transport: Transport, message: bytes, flight: Flight) -> None:
    """Mark, then write. A peer too slow for a large body gets no second request on this connection."""
    if type(transport) is _STOCK:
        transport.max_size = _RECEIVE  # type: ignore[attr-defined] # the stock transport's own, undeclared
    flight.sent = True
    transport.write(message)
    if protocol.writing_paused:
        protocol.force_close()


class Lean:
    """Opens sessions and requests without a proxy."""

    def session(self, connector: TCPConnector, timeout: ClientTimeout) -> ClientSession:
        """A session of the running loop; it owns the connector."""
        session = new_session(connector, timeout, LeanRequest)
        session._retry_connection = False  # aiohttp would repeat a GET on a dead pooled connection
        return session

    def request(self, session: ClientSession, url: URL, flight: Flight) -> Awaitable[ClientResponse]:
        """Start the request; the response's body is not read yet."""
        return session.request(flight.method, url, data=flight, allow_redirects=False)


REQUEST_PARAMETERS: Final = frozenset(
    (
        *("self", "method", "url", "params", "headers", "skip_auto_headers", "data", "cookies", "auth"),
        *("version", "compress", "chunked", "expect100", "loop", "response_class", "proxy", "proxy_auth"),
        *("timer", "session", "ssl", "proxy_headers", "traces", "trust_env", "server_hostname"),
    )
)
RESPONSE_PARAMETERS: Final = frozenset(
    (
        *("self", "method", "url", "writer", "continue100", "timer", "request_info", "traces", "loop"),
        *("session", "stream_writer"),
    )
)


@cache
def lean_supported() -> bool:
    """Whether the installed aiohttp has the internals this module was written for."""
    return (
        _parameters(ClientRequest.__init__) == REQUEST_PARAMETERS
        and _parameters(ClientResponse.__init__) == RESPONSE_PARAMETERS
        and _parameters(getattr(ClientRequest, "send", None)) == {"self", "conn"}
        and "_retry_connection" in getattr(ClientSession, "ATTRS", ())
        and all(hasattr(ResponseHandler, name) for name in ("should_close", "force_close", "writing_paused"))
    )


def _parameters(function: Callable[..., object] | None) -> frozenset[str]:
    return frozenset(inspect.signature(function).parameters if function else ())
