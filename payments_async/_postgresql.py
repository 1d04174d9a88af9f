"""What all connections to PostgreSQL have in common: addresses, the oldest version, refusals, how one is cut.

An address is parsed here, with the part that messages may show, and the rule for encryption.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import socket
from collections.abc import Mapping
from typing import Any, Final

import attrs
from psycopg import AsyncConnection, Error
from psycopg.conninfo import conninfo_to_dict

from ._http.addresses import has_raw_signs, is_host
from .errors import PaymentsError

Connection = AsyncConnection[tuple[Any, ...]]
OLDEST: Final = 140_000
"""The oldest version of PostgreSQL that has all that is used here."""
MAKING_TABLES: Final = "SELECT pg_advisory_xact_lock(hashtextextended('payments.tables', 0))"
"""Locks the making of tables: of processes that find none, ledgers and limit stores, one makes them."""
# its warnings about lost connections would be printed in programs that set up no logging
logging.getLogger("psycopg").addHandler(logging.NullHandler())
_SHOWN: Final = re.compile(r"[A-Za-z0-9_.:,/\[\]-]{0,200}", re.ASCII)
_PORTS: Final = re.compile(r"[0-9,]*", re.ASCII)
_LOCAL: Final = frozenset({"", "localhost", "127.0.0.1", "::1"})
_NOT_GIVEN: Final = "no password supplied"  # libpq's own words
_REFUSALS: Final = (
    *("authentication failed", _NOT_GIVEN, "pg_hba.conf", "not permitted to log in"),
    *('" does not exist', "no such user", "no such database", "permission denied for database"),
)
"""A server's or pooler's words for what it refuses when it is connected to."""
_SESSION: Final[Mapping[str, Any]] = {
    "application_name": "payments-sdk",
    "client_encoding": "utf8",
    "connect_timeout": 10,
    "keepalives_idle": 5,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
"""Settings of a connection that the address may replace."""
_ENVIRONMENT: Final = {
    "host": "PGHOST",
    "hostaddr": "PGHOSTADDR",
    "port": "PGPORT",
    "dbname": "PGDATABASE",
    "sslmode": "PGSSLMODE",
}
"""The variables from which libpq takes what an address leaves open."""


@attrs.frozen
class Address:
    """The address of a database."""

    label: str
    """Scheme, host, port and name of the database, for messages."""
    exposure: str | None
    """Why others could read or change what is sent to this address; None when they cannot."""
    parameters: Mapping[str, Any] = attrs.field(repr=False)
    """libpq's parameters, the password among them."""

    @classmethod
    def of(cls, url: str, error: type[PaymentsError]) -> Address:
        """Parse `postgresql://…`. What it leaves open comes from libpq's environment variables.

        Raises `error`, without showing the address, when it cannot be parsed, or not with certainty.
        """
        given = None
        with contextlib.suppress(Error):
            given = conninfo_to_dict(url)
        known = {**{name: os.environ.get(place) for name, place in _ENVIRONMENT.items()}, **(given or {})}
        if given is None or has_raw_signs(url, "/@") or not _can_be_reached(given):
            raise error(  # here: the frames of psycopg's error hold the address
                "the database's address cannot be read: write postgresql://user@host:port/database, with "
                "special characters percent-encoded"
            )
        if not _can_be_reached(known):
            raise error("PGHOST or PGPORT, which complete the database's address, cannot be read")
        parameters = {**_SESSION, **given}
        if "," in _text(parameters, "host"):
            parameters.setdefault("target_session_attrs", "read-write")
        return cls(_label(known), exposure(known), parameters)


def _can_be_reached(parameters: Mapping[str, Any]) -> bool:
    """Return whether ports are numbers, and hosts names that can be looked up, or sockets."""
    hosts = _text(parameters, "host").split(",")
    names = [host for host in hosts if not host.startswith(("/", "@"))]
    return all(map(is_host, names)) and _PORTS.fullmatch(_text(parameters, "port")) is not None


def exposure(parameters: Mapping[str, Any]) -> str | None:
    """Describe why others could read or change what is sent with these parameters; None when they cannot."""
    hosts = _text(parameters, "hostaddr") or _text(parameters, "host")
    if all(host in _LOCAL or host.startswith(("/", "@")) for host in hosts.split(",")):
        return None
    if parameters.get("sslmode") == "verify-full":
        return None
    return "it is on another host, and sslmode=verify-full is not set"


def is_refusal(error: Error) -> bool:
    """Return whether a server refused the user, the password or the database's name.

    libpq hands on no SQLSTATE of a failed connection, only the words: a refusal that is not in English is
    not recognised.
    """
    answers = [line for line in str(error).splitlines() if "FATAL: " in line or _NOT_GIVEN in line]
    return error.sqlstate is None and any(words in line for line in answers[-1:] for words in _REFUSALS)


def cut(connection: Connection) -> None:
    """End a connection that does not answer: what waits for it then fails."""
    with contextlib.suppress(OSError, Error):
        line = socket.fromfd(connection.fileno(), socket.AF_INET, socket.SOCK_STREAM)
        with line:
            line.shutdown(socket.SHUT_RDWR)


def _text(parameters: Mapping[str, Any], name: str) -> str:
    return str(parameters.get(name) or "")


def _label(parameters: Mapping[str, Any]) -> str:
    host = _text(parameters, "host") or _text(parameters, "hostaddr") or "localhost"
    port, name = _text(parameters, "port").strip(",") or "5432", _text(parameters, "dbname")
    host, name = (part if _SHOWN.fullmatch(part) else "***" for part in (host, name))
    return f"postgresql://{host}:{port}/{name}"
