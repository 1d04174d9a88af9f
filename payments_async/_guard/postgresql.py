"""Sums in PostgreSQL, for the processes of many hosts: three tables in the schema `payments`.

A transaction holds its guard's row until it ends, at most two seconds after its process was stopped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, Final, LiteralString

import psycopg

from .._postgresql import MAKING_TABLES, OLDEST, WEAK_AUTH, Address, asks_weakly, exposure, is_refusal
from .._runtime import Runtime
from ..errors import ConfigurationError
from .clocks import Clocks, clocks_of
from .state import Run, StateUnavailable, SumsState
from .sums import TABLES

CLOCK: LiteralString = "extract(epoch FROM clock_timestamp())"
"""The database's clock, seconds."""
_BEGIN: Final = """
BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL search_path = payments;
SET LOCAL synchronous_commit = on;
SET LOCAL statement_timeout = '4s';
SET LOCAL idle_in_transaction_session_timeout = '2s'
"""
_HAS_TABLES: Final = "SELECT to_regclass('payments.guards') IS NOT NULL"
_HAS_SCHEMA: Final = "SELECT to_regnamespace('payments') IS NOT NULL"
_RIGHTS: Final = (
    "its user may not make or use the tables of guards: as the database's owner, run CREATE SCHEMA IF NOT "
    "EXISTS payments; GRANT USAGE, CREATE ON SCHEMA payments TO that user"
)


class DatabaseState(SumsState):
    """Sums in tables that are made when they are first used."""

    def __init__(self, url: str, runtime: Runtime, *, insecure_database: bool = False) -> None:
        """Take an address. Raises ConfigurationError when it cannot be used.

        `insecure_database`: allow another host without `sslmode=verify-full`.
        """
        super().__init__()
        address = Address.of(url, ConfigurationError)
        self.place: str = address.label
        self._parameters = {**address.parameters, "connect_timeout": 5}
        self._runtime, self._insecure_database = runtime, insecure_database
        self._require_private(address.exposure)

    @contextmanager
    def transaction(self, *, keeps: bool) -> Iterator[Run]:
        """Context of one transaction. A failure ends it with its connection."""
        try:
            connection = self._connected()
            connection.execute(_BEGIN)
            yield self._run
            connection.execute("COMMIT" if keeps else "ROLLBACK")
        except psycopg.Error as error:
            self.close()
            raise self._error(error) from None
        except BaseException:
            self.close()
            raise

    def clocks(self) -> Clocks:
        return clocks_of(self._runtime, float(self._one(f"SELECT {CLOCK}")))

    def _run(self, statement: str, values: Mapping[str, Any]) -> Any:
        return self._connection.execute(_with_percents(statement), values)

    def _one(self, question: LiteralString) -> Any:
        (answer,) = self._connection.execute(question).fetchone() or (None,)
        return answer

    def _require_private(self, problem: str | None) -> None:
        if problem is not None and not self._insecure_database:
            raise ConfigurationError(f"{self.place}: {problem}")

    def _connected(self) -> Any:
        if self._connection is None:
            # without prepared statements, which a pooler would lose between two transactions
            self._connection = psycopg.connect(autocommit=True, prepare_threshold=None, **self._parameters)
            self._require_private(exposure(self._connection.info.get_parameters()))
            if self._connection.info.server_version < OLDEST:
                raise ConfigurationError(f"{self.place} is older than PostgreSQL {OLDEST // 10_000}")
            if not self._one(_HAS_TABLES):
                self._make_tables(self._connection)
        return self._connection

    def _make_tables(self, connection: Any) -> None:
        with connection.transaction():
            connection.execute(MAKING_TABLES)
            if not self._one(_HAS_SCHEMA):
                connection.execute("CREATE SCHEMA payments")
            if not self._one(_HAS_TABLES):  # nor by another process meanwhile
                connection.execute("SET LOCAL search_path = payments")
                for table in TABLES:
                    connection.execute(table)

    def _error(self, error: psycopg.Error) -> Exception:
        """The error for one of the server's, whose own message is never part of it."""
        if is_refusal(error):
            return ConfigurationError(f"{self.place} refuses the user, the password or the database's name")
        if asks_weakly(error):
            return ConfigurationError(f"{self.place}: {WEAK_AUTH}")
        if error.sqlstate == "42501":
            return ConfigurationError(f"{self.place}: {_RIGHTS}")
        code = error.sqlstate or type(error).__name__
        return StateUnavailable(f"{self.place} cannot be reached, or did not answer in time ({code})")


@cache
def _with_percents(statement: LiteralString) -> LiteralString:
    """A statement of ours with its values as psycopg writes them."""
    return re.sub(r":(\w+)", r"%(\1)s", statement)
