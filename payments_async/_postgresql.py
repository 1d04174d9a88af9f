"""What all connections to PostgreSQL have in common: addresses, the oldest version, refusals, how one is cut.

An address is parsed here, with what the environment and a service file add, the part that messages may show,
and the rule for encryption.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import socket
import stat
from collections.abc import Mapping
from typing import Any, Final, LiteralString

import attrs
from psycopg import AsyncConnection, ConnectionInfo, Error
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import PGconn, version

from ._http.addresses import exposed_by, has_raw_signs, is_here, is_host
from .errors import ConfigurationError, PaymentsError

Connection = AsyncConnection[tuple[Any, ...]]
OLDEST: Final = 140_000
"""The oldest version of PostgreSQL that has all that is used here."""
# its warnings about lost connections would be printed in programs that set up no logging
logging.getLogger("psycopg").addHandler(logging.NullHandler())
_SHOWN: Final = re.compile(r"[A-Za-z0-9_.:,/\[\]-]{0,200}", re.ASCII)
_PORTS: Final = re.compile(r"[0-9,]*", re.ASCII)
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
_NO_CONNECTION: Final = {"target_session_attrs": "no connection"}
"""A value that libpq refuses once it has all settings, and before it looks a host up."""
_KEEPS_PASSWORDS: Final = {"require_auth": "!password,!md5"}
"""Lets libpq give no server the password, nor a hash that stands for it: only a proof that it is known."""
_KNOWS_AUTH: Final = version() >= 160_000
WEAK_AUTH: Final = (
    "it asks for the password in a form that an impostor could use: let it ask for SCRAM "
    "(password_encryption = scram-sha-256), or set sslmode=verify-full, or require_auth in the address"
)
"""What is said of a server that `_KEEPS_PASSWORDS` gives no password."""


@attrs.frozen
class Address:
    label: str  # scheme, host, port and name of the database, for messages
    exposure: str | None
    """Why others could read or change what is sent to this address; None when they cannot."""
    parameters: Mapping[str, Any] = attrs.field(repr=False)
    """libpq's parameters, the password among them."""

    @classmethod
    def of(cls, url: str, error: type[PaymentsError]) -> Address:
        """Parse `postgresql://…`. What it leaves open comes from libpq's variables and service file.

        Nothing is connected to. Raises `error`, without showing the address, when it cannot be parsed, or not
        with certainty.
        """
        given = None
        with contextlib.suppress(Error):
            given = conninfo_to_dict(url)
        if given is None or has_raw_signs(url, "/@") or not _can_be_reached(given):
            raise error(  # here: the frames of psycopg's error hold the address
                "the database's address cannot be read: write postgresql://user@host:port/database, with "
                "special characters percent-encoded"
            )
        known = {**given, **_completed(given)}
        if not _can_be_reached(known):
            raise error(
                "PGHOST, PGPORT or the service file, which complete the database's address, cannot be read"
            )
        parameters = {**_SESSION, **(_KEEPS_PASSWORDS if _needs_proof(known) else {}), **given}
        if "," in _text(parameters, "host"):
            parameters.setdefault("target_session_attrs", "read-write")
        return cls(_label(known), exposure(known), parameters)


def _completed(given: Mapping[str, Any]) -> dict[str, str]:
    """Read libpq's parameters with those that its environment variables and its service file add."""
    begun = PGconn.connect_start(make_conninfo(**{**given, **_NO_CONNECTION}).encode())
    options = [(option.keyword.decode(), option.val) for option in begun.info]
    begun.finish()
    return {name: value.decode() for name, value in options if value and name not in _NO_CONNECTION}


def _needs_proof(known: Mapping[str, Any]) -> bool:
    """Return whether an impostor could answer, and nobody has said which kinds of passwords it may get."""
    is_own = all(map(_is_kept, _hosts(known).split(",")))
    is_free = not (is_own or known.get("sslmode") == "verify-full" or known.get("require_auth"))
    return is_free and _KNOWS_AUTH


def _is_kept(host: str) -> bool:
    """Return whether a host is a socket in a folder where not everybody may put one."""
    with contextlib.suppress(OSError):
        return host.startswith("/") and not os.stat(host).st_mode & stat.S_IWOTH
    return False


def _can_be_reached(parameters: Mapping[str, Any]) -> bool:
    """Return whether ports are numbers, and hosts names that can be looked up, or sockets."""
    hosts = _text(parameters, "host").split(",")
    names = [host for host in hosts if not host.startswith(("/", "@"))]
    return all(map(is_host, names)) and _PORTS.fullmatch(_text(parameters, "port")) is not None


def exposure(parameters: Mapping[str, Any]) -> str | None:
    """Describe why others could read or change what is sent with these parameters; None when they cannot."""
    if is_here(_hosts(parameters)) or parameters.get("sslmode") == "verify-full":
        return None
    return exposed_by("sslmode=verify-full is not set")


def is_refusal(error: Error) -> bool:
    """Return whether a server refused the user, the password or the database's name.

    libpq hands on no SQLSTATE of a failed connection, only the words: a refusal that is not in English is
    not recognised.
    """
    answers = [line for line in str(error).splitlines() if "FATAL: " in line or _NOT_GIVEN in line]
    return error.sqlstate is None and any(words in line for line in answers[-1:] for words in _REFUSALS)


def asks_weakly(error: Error) -> bool:
    """Return whether a server asked for a password that is not given away (`WEAK_AUTH`). Ours, in English."""
    return "authentication method requirement" in str(error)


# A limit store, and the sums of a guard


def store_address(url: str, what: str, *, insecure_database: bool) -> tuple[str, Mapping[str, Any]]:
    """Parse a store's address: its name for messages, which begins with `what`, and libpq's parameters.

    `insecure_database`: allow another host without `sslmode=verify-full`. Raises ConfigurationError.
    """
    address = Address.of(url, ConfigurationError)
    place = what + address.label
    if address.exposure is not None and not insecure_database:
        raise ConfigurationError(f"{place}: {address.exposure}")
    return place, address.parameters


def check_server(info: ConnectionInfo, place: str, *, insecure_database: bool) -> None:
    """Check the server of a new connection. Raises ConfigurationError for one that cannot be used."""
    if not insecure_database and (problem := exposure(info.get_parameters())) is not None:
        raise ConfigurationError(f"{place}: {problem}")
    if info.server_version < OLDEST:
        raise ConfigurationError(f"{place} is older than PostgreSQL {OLDEST // 10_000}")


def tables_made(first: LiteralString, statements: LiteralString) -> LiteralString:
    """The statement that makes a store's tables in the schema `payments`, unless the first is there.

    Of processes that find none one makes them: the others wait for its lock, and find them then.
    """
    return f"""
DO $$ BEGIN
IF to_regclass('payments.{first}') IS NULL THEN
    PERFORM pg_advisory_xact_lock(hashtextextended('payments.tables', 0));
    IF to_regnamespace('payments') IS NULL THEN CREATE SCHEMA payments; END IF;
    IF to_regclass('payments.{first}') IS NULL THEN
        SET LOCAL search_path = payments;
        {statements};
    END IF;
END IF;
END $$
"""


def store_fault(
    error: Error | TimeoutError, place: str, told: Mapping[str, str], unavailable: type[Exception]
) -> Exception:
    """The error for one of a store's. The server's own message is never part of it.

    `told`: what an operator is to put right, by SQLSTATE.
    """
    code = getattr(error, "sqlstate", None) or type(error).__name__
    if isinstance(error, Error) and asks_weakly(error):
        return ConfigurationError(f"{place}: {WEAK_AUTH}")
    if isinstance(error, Error) and is_refusal(error):
        return ConfigurationError(f"{place} refuses the user, the password or the database's name")
    if code in told:
        return ConfigurationError(f"{place}: {told[code]}")
    return unavailable(f"{place} cannot be reached, or did not answer in time ({code})")


def cut(connection: Connection) -> None:
    """End a connection that does not answer: what waits for it then fails."""
    with contextlib.suppress(OSError, Error):
        line = socket.fromfd(connection.fileno(), socket.AF_INET, socket.SOCK_STREAM)
        with line:
            line.shutdown(socket.SHUT_RDWR)


def _hosts(parameters: Mapping[str, Any]) -> str:
    return _text(parameters, "hostaddr") or _text(parameters, "host")


def _text(parameters: Mapping[str, Any], name: str) -> str:
    return str(parameters.get(name) or "")


def _label(parameters: Mapping[str, Any]) -> str:
    host = _text(parameters, "host") or _text(parameters, "hostaddr") or "localhost"
    port, name = _text(parameters, "port").strip(",") or "5432", _text(parameters, "dbname")
    host, name = (part if _SHOWN.fullmatch(part) else "***" for part in (host, name))
    return f"postgresql://{host}:{port}/{name}"
