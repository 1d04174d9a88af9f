"""Rows of a fleet in PostgreSQL: one table, one statement that compares and sets."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final, LiteralString

import attrs
import psycopg

from ..._postgresql import (
    MAKING_TABLES,
    OLDEST,
    WEAK_AUTH,
    Address,
    Connection,
    asks_weakly,
    cut,
    exposure,
    is_refusal,
)
from ..._rate_limit.store import PATIENCE, LimitRow, StoreUnavailable
from ...errors import ConfigurationError
from .compare_and_set import CompareAndSetStore, RowRead, RowWrite

CONNECTING: Final = 3.0
"""Seconds to connect and to look for the tables."""
CLOCK: Final = "extract(epoch FROM clock_timestamp())"
"""The store's time, seconds, as an expression in SQL."""
_REFUSED: Final = "28000"
_WEAK: Final = "require_auth"
_SHARED_SESSION: Final = ("26000", "42P05")
"""What prepared statements come to behind a pooler that gives each transaction another session."""

_FORM: Final = """(
    address text, fingerprint text, kind text,
    version text, content text, requests jsonb,
    PRIMARY KEY (address, fingerprint, kind)
) WITH (fillfactor = 50)"""
TABLES: Final = (f"CREATE TABLE IF NOT EXISTS payments.budgets {_FORM}",)
"""Make the tables."""
_RIGHTS: Final = (
    "its user may not make or use the table payments.budgets: as the database's owner, "
    "run CREATE SCHEMA IF NOT EXISTS payments; GRANT USAGE, CREATE ON SCHEMA payments TO that user"
)
_HAS_TABLES: Final = "SELECT to_regclass('payments.budgets') IS NOT NULL"
_HAS_SCHEMA: Final = "SELECT to_regnamespace('payments') IS NOT NULL"
# a conflict locks the row and only then compares, for as long as this one statement takes
_EXCHANGE: Final = """
INSERT INTO payments.{table} AS row (address, fingerprint, kind, version, content, requests) VALUES (
    %(address)s, %(fingerprint)s, %(kind)s, %(version)s, '',
    jsonb_build_object(%(sender)s::text, jsonb_build_array({clock}, %(request)s::text))
) ON CONFLICT (address, fingerprint, kind) DO UPDATE SET (version, content, requests) = (
    SELECT %(version)s, %(content)s, row.requests - %(served)s::text[] WHERE row.version = %(based_on)s
    UNION ALL
    SELECT row.version, row.content, row.requests || excluded.requests WHERE row.version <> %(based_on)s
) RETURNING version, content, requests, ({clock})::float8,
    CASE current_setting('synchronous_commit')
    WHEN 'off' THEN set_config('synchronous_commit', 'on', true) END
"""


class PostgresLimitStore(CompareAndSetStore):
    """Rows in the table `payments.budgets`, which is made when first used."""

    def __init__(self, url: str, *, insecure_database: bool = False, clock: str = CLOCK) -> None:
        """Take an address; `clock` is for tests. Raises ConfigurationError when it cannot be used.

        `insecure_database`: allow another host without `sslmode=verify-full`.
        """
        address = Address.of(url, ConfigurationError)
        super().__init__(f"the limit store {address.label}")
        self._parameters = {**address.parameters, "connect_timeout": 2}
        self._insecure_database = insecure_database
        self._require_private(address.exposure)
        self._clock = clock
        self._turn = asyncio.Lock()
        self._prepare_after: int | None = 0
        self._connection: Connection | None = None

    def _require_private(self, exposure: str | None) -> None:
        if not self._insecure_database and exposure is not None:
            raise ConfigurationError(f"{self._place}: {exposure}")

    async def exchange(self, row: LimitRow, write: RowWrite) -> RowRead:
        """Run the statement on one row."""
        values = {**attrs.asdict(row), **attrs.asdict(write), "served": list(write.served)}
        statement = _EXCHANGE.format(table="budgets", clock=self._clock)
        version, content, requests, now, _ = await self._execute(statement, values)
        return RowRead(
            version, content, {sender: (came, text) for sender, (came, text) in requests.items()}, now
        )

    async def aclose(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _execute(self, statement: str, values: Mapping[str, Any]) -> tuple[Any, ...]:
        """Run the statement on the connection, which is made when there is none and dropped when it fails."""
        async with self._turn:
            while True:
                try:
                    return await self._send(statement, values)
                except psycopg.Error as error:
                    code = _code(error)
                except TimeoutError as error:
                    code = type(error).__name__
                except BaseException:
                    await self.aclose()
                    raise
                await self.aclose()
                if code not in _SHARED_SESSION or self._prepare_after is None:
                    raise self._error(code)
                self._prepare_after = None

    async def _send(self, statement: str, values: Mapping[str, Any]) -> tuple[Any, ...]:
        if self._connection is None:
            self._connection = await self._connect()
        async with _cut_after(self._connection, PATIENCE):
            cursor = await self._connection.execute(statement.encode(), values)
            [row] = await cursor.fetchall()
        return row

    async def _connect(self) -> Connection:
        """Connect, and make the tables when one is missing."""
        async with asyncio.timeout(CONNECTING):
            connection = await psycopg.AsyncConnection.connect(
                autocommit=True, prepare_threshold=self._prepare_after, **self._parameters
            )
        try:
            self._require_private(exposure(connection.info.get_parameters()))
            async with _cut_after(connection, CONNECTING):
                await self._prepare(connection)
        except BaseException:
            await connection.close()
            raise
        return connection

    async def _prepare(self, connection: Connection) -> None:
        if connection.info.server_version < OLDEST:
            raise ConfigurationError(f"{self._place} is older than PostgreSQL {OLDEST // 10_000}")
        if await _one(connection, _HAS_TABLES):
            return
        async with connection.transaction():
            await connection.execute(MAKING_TABLES)
            if not await _one(connection, _HAS_SCHEMA):
                await connection.execute("CREATE SCHEMA payments")
            for table in TABLES:
                await connection.execute(table.encode())

    def _error(self, code: str) -> Exception:
        """The error for a SQLSTATE, or an error's name. The server's own message is never part of it."""
        if code == _REFUSED:
            return ConfigurationError(f"{self._place} refuses the user, the password or the database's name")
        if code == _WEAK:
            return ConfigurationError(f"{self._place}: {WEAK_AUTH}")
        if code == "42501":
            return ConfigurationError(f"{self._place}: {_RIGHTS}")
        if code in ("42703", "42804"):
            return ConfigurationError(
                f"{self._place} has a table payments.budgets of another version: rename "
                "it, and begin without what it counted"
            )
        return StoreUnavailable(f"{self._place} cannot be reached, or did not answer in time ({code})")


def _code(error: psycopg.Error) -> str:
    """The SQLSTATE of an error, one of ours for a connection that was refused, or the error's name."""
    if asks_weakly(error):
        return _WEAK
    return _REFUSED if is_refusal(error) else error.sqlstate or type(error).__name__


async def _one(connection: Connection, question: LiteralString) -> bool:
    """The answer to a question of yes or no."""
    found = await (await connection.execute(question)).fetchone()
    return found == (True,)


@contextlib.asynccontextmanager
async def _cut_after(connection: Connection, seconds: float) -> AsyncIterator[None]:
    """Cut a connection that does not answer. A cancelled statement of psycopg would wait for the server."""
    timer = asyncio.get_running_loop().call_later(seconds, cut, connection)
    try:
        yield
    finally:
        timer.cancel()
