"""One POST to somewhere else: no redirect is followed, no proxy asked, the answer read up to a bound."""

from __future__ import annotations

from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final
from urllib.parse import quote, urlsplit

import attrs

from ...errors import ConfigurationError

TIMEOUT: Final = 10.0
"""Seconds, as long as the sandbox waits itself (gap Y)."""

_LARGEST: Final = 1024 * 1024


@attrs.frozen
class Place:
    """An address that has been checked."""

    scheme: str
    host: str
    port: int | None
    path: str = attrs.field(repr=False)


def read_place(url: str, what: str, example: str = "http://127.0.0.1:8000/webhooks") -> Place:
    """The parts of an address; ConfigurationError, with an example, when it is not http://host/path."""
    wrong = f"{what} must be an address such as {example}"
    if not url.isascii() or not url.isprintable() or " " in url:
        raise ConfigurationError(wrong)
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ConfigurationError(wrong) from None
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        raise ConfigurationError(wrong)
    path = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
    return Place(parts.scheme, parts.hostname, port, quote(path, safe="%!$&'()*+,/:;=?@[]~"))


def post(place: Place, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
    """Status and body of the answer; OSError when there is none."""
    kind = HTTPSConnection if place.scheme == "https" else HTTPConnection
    connection = kind(place.host, place.port, timeout=TIMEOUT)
    try:
        connection.request("POST", place.path, body, dict(headers))
        answer = connection.getresponse()
        return answer.status, answer.read(_LARGEST)
    except HTTPException as broken:
        raise OSError(f"no readable answer ({type(broken).__name__})") from None
    finally:
        connection.close()
