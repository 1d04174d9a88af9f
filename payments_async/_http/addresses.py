"""Which text is an address, and when two base URLs are one service. Pure (Limits; Authentication)."""

from __future__ import annotations

import re
from ipaddress import IPv6Address
from typing import Final
from urllib.parse import SplitResult, urlsplit

_DEFAULT_PORTS: Final = {"https": 443, "http": 80}

_ADDRESS: Final = re.compile(r'https?://[A-Za-z0-9.:\[\]_-]+(?:/[!"$-~]*)?')


def is_address(text: str) -> bool:
    """Whether a request can go there: absolute, percent-encoded, without user name and fragment."""
    return _ADDRESS.fullmatch(text) is not None


def same_service(one: str, other: str) -> bool:
    """Whether two base URLs lead to the same service."""
    return one == other or normal(one) == normal(other)


def normal(address: str) -> str:
    """The one form that all spellings of a base URL share; for comparing, not for sending.

    Scheme and host in lower case, an IPv6 address in its short form, no default port, no dot after the host,
    no slash at the end. A path keeps its case. Text that is no address stays as it is.
    """
    try:
        parts = urlsplit(address)
        port = parts.port
        host = _host(parts)
    except ValueError:
        return address
    explicit = "" if port in (None, _DEFAULT_PORTS.get(parts.scheme)) else f":{port}"
    user, at, _ = parts.netloc.rpartition("@")
    return parts._replace(netloc=user + at + host + explicit).geturl().rstrip("/")


def _host(parts: SplitResult) -> str:
    """The host in lower case, without the dot that ends a full domain name."""
    host = (parts.hostname or "").removesuffix(".")
    if ":" not in host:
        return host
    return f"[{IPv6Address(host).compressed}]"
