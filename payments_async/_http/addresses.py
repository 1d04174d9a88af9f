"""Validates and compares the addresses of services. Pure (Limits; Authentication)."""

from __future__ import annotations

import re
from ipaddress import IPv6Address
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

_HERE: Final = frozenset({"", "localhost", "127.0.0.1", "::1"})
_DEFAULT_PORTS: Final = {"https": 443, "http": 80}

PROXY_RULE: Final = (
    "proxy must be an absolute http(s) address, such as http://proxy.test:3128, that ends with its port; "
    "percent-encode the special characters of a password"
)
"""Why a proxy's address is refused. It holds no address: that may hold a password."""

LOOPBACK: Final = re.compile(r"localhost|127(?:\.\d{1,3}){3}|::1")
"""Hosts that plain http may go to."""
_ADDRESS: Final = re.compile(r'https?://[A-Za-z0-9.:\[\]_-]+(?:/[!"$-~]*)?')


def is_address(text: str) -> bool:
    """Return whether requests can be sent to an address: absolute, percent-encoded, no user or fragment."""
    return _ADDRESS.fullmatch(text) is not None


def is_host(name: str) -> bool:
    """Return whether a host's name can be looked up: it has no empty part, and none over 63 characters."""
    try:
        name.encode("idna")  # as `socket` does, which lets the error through
    except UnicodeError:
        return False
    return True


def is_here(hosts: str) -> bool:
    """Return whether each of these hosts is this machine: a loopback name, a socket's path, or none given."""
    return all(host in _HERE or host.startswith(("/", "@")) for host in hosts.split(","))


def exposed_by(setting: str) -> str:
    """Say why others could read or change what is sent to a database or limit store."""
    return f"it is on another host, and {setting}; insecure_database=True (--insecure-database) allows it"


def has_raw_signs(url: str, signs: str) -> bool:
    """Return whether a user or password has one of these signs, not percent-encoded.

    A part of the password would then be taken for a host, a port or a name, which messages show.
    """
    user_info, _, _ = url.partition("//")[2].rpartition("@")
    return any(sign in user_info for sign in signs)


def decoded(path: str) -> str:
    """A path without percent-encoding, however often it was encoded."""
    while (plain := unquote(path)) != path:
        path = plain
    return path


def same_service(one: str, other: str) -> bool:
    return one == other or normal(one) == normal(other)


def normal(address: str) -> str:
    """Normalise a base URL, for comparing, not for sending.

    Scheme and host are in lower case, an IPv6 address is shortened; a default port, a dot after the host and
    a slash at the end are left out. A path keeps its case. Text that is no address stays unchanged.
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


def host_and_port(address: str) -> str:
    """Host and port of an address, without its user: `api.test:443`."""
    parts = urlsplit(address)
    return f"{_host(parts)}:{parts.port or _DEFAULT_PORTS.get(parts.scheme, 80)}"


def _host(parts: SplitResult) -> str:
    """The host in lower case, without the dot that ends a full domain name."""
    host = (parts.hostname or "").removesuffix(".")
    if ":" not in host:
        return host
    return f"[{IPv6Address(host).compressed}]"
