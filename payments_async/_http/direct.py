"""Sends requests over aiohttp's connections and parser, without aiohttp's requests and responses in between.

aiohttp's session builds a request through several mappings and starts a task to write its body. A call of
this client is a few hundred bytes that are known beforehand: this module takes a connection, writes them at
once, reads, and keeps the connection for the next request (`connections.IdleConnections`).

The module uses parts of aiohttp that are not public. `is_supported` compares them with those it was written
for. When they differ, `session` is used instead; the tests run with both.

Each request gets a new parser. An old one could hold half a message that came without a request, and take it
for the beginning of the next answer.

Only a connection whose answer came whole is kept. One whose answer came in pieces, or that the server wants
closed, goes back to aiohttp's pool.

aiohttp gets no headers this way, so its exceptions cannot contain any.
"""

from __future__ import annotations

import inspect
import re
from functools import cache, lru_cache
from types import MemberDescriptorType
from typing import Final

from aiohttp import ClientRequest, ClientSession, StreamReader
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.connector import BaseConnector, Connection, TCPConnector
from aiohttp.http_parser import RawResponseMessage
from yarl import URL

from .addresses import is_address
from .connections import IdleConnections, check_fresh, end, read_answer, receive_less, whole_answer
from .session import REQUEST, RESOLVE_HOST
from .types import HTTPRequest, HTTPResponse, TransportError, serialize, withheld

_SMALL: Final = 32 * 1024  # bytes that aiohttp reads without pausing the connection

RawAnswer = tuple[RawResponseMessage, StreamReader]
"""An answer's head and its body, as aiohttp reads them."""
_METHOD: Final = re.compile(r"[A-Z]+")


@lru_cache(maxsize=256)
def address(url: str) -> URL:
    """Parse an address, cached for the next request to it.

    Raises:
        ValueError: not an absolute, percent-encoded http(s) address without user name and fragment.
    """
    if not is_address(url):
        raise ValueError("a request needs an absolute, percent-encoded http(s) address")
    return URL(url, encoded=True)


@lru_cache(maxsize=256)
def target(method: str, url: str) -> tuple[URL, str]:
    """The address of a request and the first lines of its head, cached. Raises ValueError, as `address`."""
    if _METHOD.fullmatch(method) is None:
        raise ValueError("a request's method is upper-case letters")
    to = address(url)
    return to, f"{method} {to.raw_path_qs} HTTP/1.1\r\nHost: {to.host_port_subcomponent}\r\n"


class DirectSender:
    """Sends over the connections of one session, step by step: the transport awaits between them."""

    def __init__(self, session: ClientSession, idle: IdleConnections) -> None:
        self._session = session
        self.idle = idle

    async def connect(self, url: URL) -> tuple[Connection, ResponseHandler]:
        """Take a connection of aiohttp's pool, or open a new one."""
        connector = self._session.connector
        if connector is None or connector.closed:
            raise TransportError("connect", "the connections were closed")
        connection = await connector.connect(_destination(url), [], self._session.timeout)
        try:
            protocol = check_fresh(connection.protocol)
        except BaseException:
            end(connection)
            raise
        receive_less(connection.transport)
        return connection, protocol

    def write(
        self, connection: Connection, protocol: ResponseHandler, start: str, request: HTTPRequest
    ) -> None:
        """Mark a request as sent, and write it. After a slow large body, close the connection."""
        # A new parser for the answer, so that bytes that came without a request are forgotten.
        protocol.set_response_params(read_until_eof=True, auto_decompress=False)
        message = serialize(start, request)
        if request.may_send is not None and request.is_withheld:  # the usual request pays for no call
            connection.release()  # before it is aborted
            raise withheld()
        transport = protocol.transport
        assert transport is not None
        request.sent, request.connection = True, transport
        transport.write(message)
        if len(message) > _SMALL and protocol.writing_paused:
            protocol.force_close()

    def usual(
        self, connection: Connection, protocol: ResponseHandler, answer: RawAnswer, limit: int
    ) -> HTTPResponse | RawAnswer:
        """Take an answer whose body came with its head, as most do; returns another for `read`."""
        message, content = answer
        status = message.code
        if not content.is_eof() or status < 200:
            return answer
        response = whole_answer(status, message.headers, _at_hand(content), limit)
        if message.should_close:
            connection.release()
        else:
            self.idle.keep(connection, protocol)
        return response

    async def read(
        self, connection: Connection, protocol: ResponseHandler, answer: RawAnswer, limit: int
    ) -> HTTPResponse:
        """Skip informational answers, and read one of at most `limit` bytes that comes in pieces."""
        message, content = answer
        while 100 <= message.code < 200 and message.code != 101:
            message, content = answer = await protocol.read()
            usual = self.usual(connection, protocol, answer, limit)
            if isinstance(usual, HTTPResponse):
                return usual
        response = await read_answer(message.code, message.headers, content, limit)
        connection.release()
        return response


def _at_hand(content: StreamReader) -> bytes:
    """Take a body that came with its head.

    aiohttp's own method also resumes the parser, which small answers in one piece never pause.
    """
    if type(content) is not StreamReader or content._buffer_offset or content.exception() is not None:
        return content.read_nowait()
    pieces = content._buffer
    return pieces[0] if len(pieces) == 1 and len(pieces[0]) < _SMALL else content.read_nowait()


class _Destination(ClientRequest):
    """The address to connect to, as aiohttp's connector wants it. Shared by all requests to a URL."""

    proxy = None
    proxy_auth = None
    proxy_headers = None

    def __init__(self, url: URL) -> None:
        self.url = url
        self.server_hostname = None
        self._ssl = True  # the connector's own setting decides
        self._key = super().connection_key

    @property
    def connection_key(self) -> ConnectionKey:
        return self._key


_destination = lru_cache(maxsize=256)(_Destination)

SHAPES: Final[tuple[tuple[type, str, tuple[str, ...]], ...]] = (
    (BaseConnector, "connect", ("self", "req", "traces", "timeout")),
    (Connection, "close", ("self",)),
    (Connection, "release", ("self",)),
    (ResponseHandler, "force_close", ("self",)),
    (ResponseHandler, "is_connected", ("self",)),
    (ResponseHandler, "read", ("self",)),
    (
        ResponseHandler,
        "set_response_params",
        (
            *("self", "timer", "skip_payload", "read_until_eof", "auto_decompress", "read_timeout"),
            *("read_bufsize", "timeout_ceil_threshold", "max_line_size", "max_field_size", "max_headers"),
        ),
    ),
)
"""The methods of aiohttp used here and the parameters they had when this was written."""

PROPERTIES: Final[tuple[tuple[type, str], ...]] = (
    (ClientRequest, "connection_key"),
    (Connection, "protocol"),
    (Connection, "transport"),
    (ResponseHandler, "should_close"),
    (ResponseHandler, "writing_paused"),
)

MEMBERS: Final[tuple[tuple[type, str], ...]] = ((StreamReader, "_buffer"), (StreamReader, "_buffer_offset"))


def is_patched() -> bool:
    """Return whether aiohttp's session or its connector (as by aiointercept) is replaced."""
    return ClientSession._request is not REQUEST or TCPConnector._resolve_host is not RESOLVE_HOST


@cache
def is_supported() -> bool:
    """Return whether the installed aiohttp has the internals that this module was written for."""
    return (
        all(_parameters(owner, name) == names for owner, name, names in SHAPES)
        and all(isinstance(getattr(owner, name, None), property) for owner, name in PROPERTIES)
        and all(isinstance(getattr(owner, name, None), MemberDescriptorType) for owner, name in MEMBERS)
    )


def _parameters(owner: type, name: str) -> tuple[str, ...]:
    method = getattr(owner, name, None)
    return tuple(inspect.signature(method).parameters) if callable(method) else ()
