"""A shared limit in PostgreSQL: one row for each limit, one statement for a reservation.

The table is unlogged: it is empty after a crash or a fail-over, and new rows have nothing saved up.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final, LiteralString

import attrs
import psycopg

from .._postgresql import Connection, check_server, cut, store_address, store_fault, tables_made
from .store import PATIENCE, BlockRequest, BlockStore, Reservation, StoreUnavailable

CONNECTING: Final = 3.0  # seconds to connect and to make the table
# `granted` and `lead` are the answer to the last reservation, since RETURNING shows new values only.
_MAKE: Final = tables_made(
    "limits",
    """CREATE UNLOGGED TABLE limits (
        row_name text PRIMARY KEY, arrival float8 NOT NULL, granted int, lead float8
    ) WITH (fillfactor = 50)""",
)
# A new or lost row has nothing saved up.
_ADD: Final = """
INSERT INTO payments.limits (row_name, arrival)
VALUES (%(row_name)s, extract(epoch FROM clock_timestamp()) + %(saved)s)
ON CONFLICT DO NOTHING
"""
# Reserve. All is computed from `this` inside SET, so that it holds for the row as it is once it is locked. A
# row whose permits arrive more than a minute from now is from before the clock was set back: none does so.
_RESERVE: Final = """
UPDATE payments.limits AS this SET (arrival, granted, lead) = (
    SELECT now + least(lead + number * %(step)s, 60), number, lead
    FROM (SELECT extract(epoch FROM clock_timestamp())::float8 AS now) AS clock
    CROSS JOIN LATERAL (
        SELECT greatest(CASE WHEN this.arrival <= now + 60 THEN this.arrival - now END, %(pause)s)
    ) AS first (lead)
    CROSS JOIN LATERAL (
        SELECT greatest(least(floor((%(saved)s + %(ahead)s - lead) / %(step)s), %(wanted)s), 0)
    ) AS block (number)
) WHERE row_name = %(row_name)s
RETURNING granted, lead
"""
_VERSION: Final = "its table payments.limits is of another version: drop it, it is made anew"
_TOLD: Final = {
    "42501": "its user may not make or use the table payments.limits: as the database's owner, run "
    "CREATE SCHEMA IF NOT EXISTS payments; GRANT USAGE, CREATE ON SCHEMA payments TO that user",
    "42703": _VERSION,
    "42804": _VERSION,
}
"""What an operator is to put right, by SQLSTATE. The server's own message is never shown."""


class PostgresBlockStore(BlockStore):
    """Rows of the table `payments.limits`, which is made when first used."""

    def __init__(self, url: str, *, insecure_database: bool = False) -> None:
        """Take an address. Raises ConfigurationError when it cannot be used.

        `insecure_database`: allow another host without `sslmode=verify-full`.
        """
        place, parameters = store_address(url, "the limit store ", insecure_database=insecure_database)
        super().__init__(place)
        self._parameters = {**parameters, "connect_timeout": 2}
        self._insecure_database = insecure_database
        self._connection: Connection | None = None

    async def reserve(self, row: str, request: BlockRequest) -> Reservation:
        values = {"row_name": row, **attrs.asdict(request)}
        while not (found := await self._execute(_RESERVE, values)):
            await self._execute(_ADD, values)
        granted, lead = found[0]
        return Reservation.of(request, granted, lead)

    async def aclose(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _execute(self, statement: LiteralString, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """Run a statement on the connection, which is made when there is none and dropped when it fails."""
        try:
            if self._connection is None:
                self._connection = await self._connect()
            async with _cut_after(self._connection, PATIENCE):
                cursor = await self._connection.execute(statement, values)
                return [] if cursor.description is None else await cursor.fetchall()
        except BaseException as error:
            await self.aclose()
            if not isinstance(error, psycopg.Error | TimeoutError):
                raise
            fault = store_fault(error, self._place, _TOLD, StoreUnavailable)
        raise fault  # here: the frames of psycopg's error may hold the address

    async def _connect(self) -> Connection:
        """Connect, and make a missing table. Nothing is prepared: a pooler may change the session."""
        async with asyncio.timeout(CONNECTING):
            connection = await psycopg.AsyncConnection.connect(
                autocommit=True, prepare_threshold=None, **self._parameters
            )
        try:
            check_server(connection.info, self._place, insecure_database=self._insecure_database)
            async with _cut_after(connection, CONNECTING):
                await connection.execute(_MAKE)
        except BaseException:
            await connection.close()
            raise
        return connection


@contextlib.asynccontextmanager
async def _cut_after(connection: Connection, seconds: float) -> AsyncIterator[None]:
    """Cut a connection that does not answer. A cancelled statement of psycopg would wait for the server."""
    timer = asyncio.get_running_loop().call_later(seconds, cut, connection)
    try:
        yield
    finally:
        timer.cancel()
