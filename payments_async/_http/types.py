"""HTTP requests, responses and failures as values, and the protocol of a transport.

The pipeline makes a `HTTPRequest`, the transport has its head checked and written, and sends it. Nothing here
does I/O, so any transport works: aiohttp's, or the in-process one of `payments_async.testing`.

Error messages never repeat a refused header: it may be a secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, Literal, NoReturn, Protocol, SupportsIndex

FailureKind = Literal[
    "pool",
    "dns",
    "connect",
    "tls",
    "timeout",
    "reset",
    "protocol",
    "too_large",
    "closed",
    "withheld",
    "unexpected",
]


class Secret(str):
    """Text that is sent unchanged and that its repr hides (tracebacks print reprs of local variables)."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"

    def __getitem__(self, index: SupportsIndex | slice[Any, Any, Any]) -> Secret:
        return Secret(super().__getitem__(index))  # code that shortens a long text prints a part of it

    def __deepcopy__(self, _: object) -> Secret:
        return self

    def __reduce_ex__(self, _: SupportsIndex) -> NoReturn:
        """Refuse a pickle, and what vcrpy writes in its place."""
        raise TypeError(
            "a secret is written to no file: with vcrpy pass filter_headers=['authorization'] "
            "(docs/testing.md, Other stand-ins, and recording)"
        )


class Connection(Protocol):
    """The connection that carried a request: an `asyncio` transport."""

    def abort(self) -> None:
        """Close at once."""


class CommonHeaders:
    """Headers that many requests have in common; `own` names one more, whose value each request has."""

    __slots__ = ("headers", "lines", "own")

    def __init__(self, headers: Mapping[str, str], own: str | None) -> None:
        self.headers: Mapping[str, str] = headers
        self.own: str | None = own
        self.lines: Secret | None = None
        """These headers as they are sent, once the transport has checked them."""


class HTTPRequest:
    """One attempt to send one request. `sent` becomes true before the first byte is sent."""

    __slots__ = (
        *("_headers", "body", "common", "connection", "may_send", "method", "own", "sent", "timeout", "url"),
    )

    def __init__(
        self,
        method: str,
        url: str,
        headers: dict[str, str] | None,
        body: bytes | None,
        timeout: float,
        may_send: Callable[[], bool] | None = None,
        common: CommonHeaders | None = None,
        own: str = "",
    ) -> None:
        self.method = method
        self.url = url  # absolute, already percent-encoded
        self._headers = headers
        self.body = body
        self.timeout = timeout
        """Seconds for the whole attempt: connection, request, answer."""
        self.may_send: Callable[[], bool] | None = may_send
        """Asked right before the first byte is sent; must not raise. False: it fails as `withheld`."""
        self.common: CommonHeaders | None = common  # in place of headers
        self.own = own
        """The request's own value for the header that `common.own` names."""
        self.sent = False
        self.connection: Connection | None = None
        """The connection that carried the request; None when the transport does not say."""

    @property
    def headers(self) -> dict[str, str]:
        """The headers that are sent; made when asked for, since the transport does without."""
        if (common := self.common) is not None:
            last = {} if common.own is None else {common.own: self.own}
            self._headers, self.common = {**common.headers, **last}, None
        assert self._headers is not None
        return self._headers

    @headers.setter
    def headers(self, headers: dict[str, str]) -> None:
        self._headers, self.common = headers, None

    @property
    def is_withheld(self) -> bool:
        return self.may_send is not None and not self.may_send()


class HTTPResponse:
    """The service's answer. Header names compare without case."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.status = status
        self.headers: Mapping[str, str] = headers
        self.body = body


class TransportError(Exception):
    """No usable answer came. `request.sent` says whether the request may have been carried out.

    `original` is the exception behind an `unexpected` failure, without its traceback and its past. Its text
    is not masked.
    """

    def __init__(self, kind: FailureKind, detail: str, original: Exception | None = None) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind: FailureKind = kind
        self.detail = detail
        self.original = original


def withheld() -> TransportError:
    """Make the failure of a request that must not be sent (`HTTPRequest.may_send`)."""
    return TransportError("withheld", "the permission to send it had ended")


class Transport(Protocol):
    """Sends requests. Usable from any event loop; each loop has its own connections.

    With a method `share`, too, `with_options(api_key=...)` can be used: it returns a transport on the same
    connections that is closed for itself.
    """

    async def send(self, request: HTTPRequest) -> HTTPResponse:
        """Send a request; any status is an answer. Raises `TransportError` when none came."""

    async def aclose(self) -> None:
        """Close every connection of the running loop."""


# The head of a request

_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FORBIDDEN: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_CONTROL: Final = "a header's value holds a control character"
_FRAMING: Final = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "expect", "upgrade", "te", "trailer"}
)
"""Headers about the message's length and the connection, which only the transport may set."""


def check_head(request: HTTPRequest) -> None:
    """Refuse a header that could end early or contradict the message's framing. Common ones: once.

    Raises:
        ValueError: a header name that is not a token, a value with a control character, or a header that is
            the transport's to set.
    """
    common, problem = request.common, None
    if common is None:
        problem = _fault(request.headers)
    elif common.lines is None and (problem := _fault(common.headers)) is None:
        common.lines = Secret(_lines(common.headers) + (f"{common.own}: " if common.own else ""))
    if problem or _holds_control(request.own):
        raise ValueError(problem or _CONTROL)


def _fault(headers: Mapping[str, str]) -> str | None:
    """The fault of some headers. Tracebacks print locals, so nothing is raised where they hold a secret."""
    return _CONTROL if any(map(_holds_control, headers.values())) else _fault_of_names(tuple(headers))


def _holds_control(value: str) -> bool:
    return not value.isprintable() and _FORBIDDEN.search(value) is not None


@lru_cache(maxsize=64)
def _fault_of_names(names: tuple[str, ...]) -> str | None:
    if all(_NAME.fullmatch(name) and name.lower() not in _FRAMING for name in names):
        return None
    return "a header's name is not a token, or names what the transport sets itself"


def serialize(start: str, request: HTTPRequest) -> bytes:
    """Write the bytes that aiohttp would: `target`'s lines, the request's headers, the length."""
    common, body = request.common, request.body
    if common is None or common.lines is None:
        lines, own = _lines(request.headers), ""
    else:
        lines, own = common.lines, f"{request.own}\r\n" if common.own else ""
    length = "" if body is None and request.method == "GET" else f"Content-Length: {len(body or b'')}\r\n"
    head = "".join((start, lines, own, length, "\r\n")).encode()
    return head + body if body else head


def _lines(headers: Mapping[str, str]) -> str:
    return "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
