"""Checks a request's address, method and headers, and writes its head.

Error messages never repeat the refused text: it may be a secret.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from yarl import URL

from .addresses import PROXY_RULE, is_address, is_host
from .types import HTTPRequest, Secret

_METHOD: Final = re.compile(r"[A-Z]+")
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FORBIDDEN: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_CONTROL: Final = "a header's value holds a control character"
_FRAMING: Final = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "expect", "upgrade", "te", "trailer"}
)
"""Headers about the message's length and the connection, which only the transport may set."""


@lru_cache(maxsize=256)
def address(url: str) -> URL:
    """Parse an address, cached for the next request to it.

    Raises:
        ValueError: not an absolute, percent-encoded http(s) address without user name and fragment.
    """
    if not is_address(url):
        raise ValueError("a request needs an absolute, percent-encoded http(s) address")
    return URL(url, encoded=True)


def check_proxy(proxy: str) -> None:
    """Refuse a proxy address before it is needed, without repeating it: it may hold a password.

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


@lru_cache(maxsize=256)
def target(method: str, url: str) -> tuple[URL, str]:
    """The address of a request and the first lines of its head, cached. Raises ValueError, as `address`."""
    if _METHOD.fullmatch(method) is None:
        raise ValueError("a request's method is upper-case letters")
    to = address(url)
    return to, f"{method} {to.raw_path_qs} HTTP/1.1\r\nHost: {to.host_port_subcomponent}\r\n"


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
