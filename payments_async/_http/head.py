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
from .types import HTTPRequest

BODILESS: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
"""Methods that need no `Content-Length` when there is no body."""

_METHOD: Final = re.compile(r"[A-Z]+")
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FORBIDDEN: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
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


def check_head(request: HTTPRequest) -> None:
    """Refuse a method or header that could end a header early or contradict the message's framing.

    Raises:
        ValueError: a method or header name that is not a token, a value with a control character, or a
            header that is the transport's to set.
    """
    if not "".join(request.headers.values()).isprintable() and _holds_control(request.headers):
        raise ValueError("a header's value holds a control character")
    _check_names(request.method, tuple(request.headers))


def _holds_control(headers: Mapping[str, str]) -> bool:
    return _FORBIDDEN.search("".join(headers.values())) is not None


@lru_cache(maxsize=64)
def _check_names(method: str, names: tuple[str, ...]) -> None:
    if _METHOD.fullmatch(method) is None:
        raise ValueError("a request's method is upper-case letters")
    for name in names:
        if _NAME.fullmatch(name) is None or name.lower() in _FRAMING:
            raise ValueError("a header's name is not a token, or names what the transport sets itself")


def serialize(url: URL, request: HTTPRequest) -> bytes:
    """Write the bytes that aiohttp would: Host first, then the request's headers, then the length."""
    body = request.body
    lines = [f"{request.method} {url.raw_path_qs} HTTP/1.1", f"Host: {url.host_port_subcomponent}"]
    lines += map(": ".join, request.headers.items())
    if body is not None or request.method not in BODILESS:
        lines.append(f"Content-Length: {len(body or b'')}")
    head = "\r\n".join([*lines, "\r\n"]).encode()
    return head + body if body else head
