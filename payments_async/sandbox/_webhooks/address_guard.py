"""The addresses that webhooks may be sent to: this machine and private networks, and no others.

A simulated "completed" must never reach production. An address is read strictly, in one way only: what
another reader might take for another host is refused. A name under `.test` or `.localhost` is this machine,
whatever any name service says, and is never looked up. Any other name is refused by itself, without a look-up
that would tell it to a name service, unless it is allowed: then it is looked up once for each try, and what
is connected to is the address that was found, not the name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import quote, urlsplit

import attrs

LOOPBACK = ("127.0.0.1", "::1")
"""The addresses of `localhost` and `.test`, in the order they are tried."""

_OWN = ("localhost", "test")

_NETWORKS = tuple(
    ip_network(text)
    for text in ("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "::1/128", "fc00::/7")
)
"""Allowed networks. Not 0.0.0.0, link-local or carrier networks: hosts there are not the developer's own."""

_PORTS = {"http": 80, "https": 443}
_SUSPICIOUS = re.compile(r"[\x00-\x20\x7f\\]")
_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*\.?")
_NUMBER = re.compile(r"(?:0x[0-9a-f]*|\d)\.?\Z")
"""The end of a number: one digit tells it, and a search for more would be quadratic."""
_KEPT = "%!$&'()*+,/:;=?@[]~"


class NotSent(Exception):
    """A delivery was not sent; the text gives the reason, and how to allow it."""


@attrs.frozen
class DeliveryAddress:
    scheme: str
    host: str  # in small letters, without brackets or a final dot
    port: int
    path: str = attrs.field(repr=False)
    """With the query string; it may hold a receiver's token."""
    addresses: tuple[str, ...] = ()
    """The addresses to connect to; empty when the name is allowed and must be looked up first."""

    @property
    def authority(self) -> str:
        """The value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


def read_allowed(names: Iterable[str]) -> frozenset[str]:
    """Hosts that deliveries may go to, wherever they are; TypeError or ValueError for no bare host."""
    if isinstance(names, str):
        raise TypeError('allow_webhooks_to is a collection of hosts: ("shop.example",)')
    return frozenset(_bare(name) for name in names)


def _bare(name: object) -> str:
    if not isinstance(name, str):
        raise TypeError(f"a host in allow_webhooks_to must be a string, not {type(name).__name__}")
    host = name.lower().removeprefix("[").removesuffix("]").removesuffix(".")
    if not _NAME.fullmatch(host) and _literal(host) is None:
        raise ValueError(f"{name!r} in allow_webhooks_to is not a bare host such as 'shop.example'")
    return host


def read_target(url: str, allowed: frozenset[str] = frozenset()) -> DeliveryAddress:
    """Read and check the address of a delivery, without looking a name up; `NotSent`."""
    target = _parsed(url)
    literal = _literal(target.host)
    if literal is not None:
        return attrs.evolve(target, addresses=check_addresses(target.host, [str(literal)], allowed))
    if _NUMBER.search(target.host.rpartition(".")[2]) or not _NAME.fullmatch(target.host):
        raise NotSent(f"{target.host!r} is neither a name nor an address in its usual form")
    if any(target.host == name or target.host.endswith(f".{name}") for name in _OWN):
        return attrs.evolve(target, addresses=LOOPBACK)
    if target.host not in allowed:
        raise NotSent(f"{target.host} is no name of this machine; {_advice(target.host)}")
    return target


def check_addresses(
    host: str, addresses: Iterable[str], allowed: frozenset[str] = frozenset()
) -> tuple[str, ...]:
    """The addresses of `host`, if the sandbox may send to all of them; else `NotSent`."""
    hosts = [_unwrapped(ip_address(address)) for address in addresses]
    if not hosts:
        raise NotSent(f"{host} has no address")
    outside = [address for address in hosts if not any(address in network for network in _NETWORKS)]
    if outside and host not in allowed:
        where = "" if str(outside[0]) == host else f" ({outside[0]})"
        raise NotSent(f"{host}{where} is neither this machine nor a private network; {_advice(host)}")
    return tuple(str(address) for address in hosts)


def _advice(host: str) -> str:
    return f"allow it with Sandbox(allow_webhooks_to=({host!r},))"


def _parsed(url: str) -> DeliveryAddress:
    if _SUSPICIOUS.search(url):
        raise NotSent("the address holds spaces, control characters or backslashes")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise NotSent("the address cannot be read") from None
    if parts.scheme not in _PORTS or not parts.hostname:
        raise NotSent("the address is not of the form http://host/path or https://host/path")
    if "@" in parts.netloc or "%" in parts.netloc:
        raise NotSent("the address holds user information or escapes before its path")
    path = quote(f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/", safe=_KEPT)
    host = parts.hostname.removesuffix(".")
    return DeliveryAddress(parts.scheme, host, _PORTS[parts.scheme] if port is None else port, path)


def _literal(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _unwrapped(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """The IPv4 address of one that is written as IPv6; any other as it is."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
