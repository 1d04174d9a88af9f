"""Sums in PostgreSQL, for the processes of many hosts: three tables in the schema `payments`.

A transaction holds its guard's row until it ends, at most two seconds after its process was stopped.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final, LiteralString

import psycopg

from .._postgresql import check_server, store_address, store_fault, tables_made
from .._runtime import Runtime
from .clocks import Clocks, clocks_of
from .state import StateUnavailable, SumsState
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
_MAKE: Final = tables_made("guards", ";\n".join(TABLES))
_TOLD: Final = {
    "42501": "its user may not make or use the tables of guards: as the database's owner, run CREATE SCHEMA "
    "IF NOT EXISTS payments; GRANT USAGE, CREATE ON SCHEMA payments TO that user",
    "42703": "its tables of guards are of another version: drop payments.guards and payments.guard_amounts, "
    "and begin the guard anew (payments guard begin)",
}
"""What an operator is to put right, by SQLSTATE."""


class DatabaseState(SumsState):
    """Sums in tables that are made when they are first used."""

    def __init__(self, url: str, runtime: Runtime, *, insecure_database: bool = False) -> None:
        """Take an address. Raises ConfigurationError when it cannot be used.

        `insecure_database`: allow another host without `sslmode=verify-full`.
        """
        super().__init__(runtime)
        self.place, parameters = store_address(url, "", insecure_database=insecure_database)
        self._parameters = {**parameters, "connect_timeout": 5}
        self._insecure_database = insecure_database

    def clocks(self) -> Clocks:
        """The clocks now, that of the database among them."""
        (now,) = self._connection.execute(f"SELECT {CLOCK}").fetchone()
        return clocks_of(self._runtime, float(now))

    def _begin(self) -> None:
        if self._connection is None:
            # without prepared statements, which a pooler would lose between two transactions
            self._connection = psycopg.connect(autocommit=True, prepare_threshold=None, **self._parameters)
            check_server(self._connection.info, self.place, insecure_database=self._insecure_database)
            self._connection.execute(_MAKE)
        self._connection.execute(_BEGIN)

    def _run(self, statement: str, **values: Any) -> Any:
        return self._connection.execute(_with_percents(statement), values)

    def _told(self, error: BaseException) -> BaseException:
        if isinstance(error, psycopg.Error):
            return store_fault(error, self.place, _TOLD, StateUnavailable)
        return super()._told(error)


@cache
def _with_percents(statement: LiteralString) -> LiteralString:
    """A statement of ours with its values as psycopg writes them."""
    return re.sub(r":(\w+)", r"%(\1)s", statement)
