"""The rate limit of a fleet in PostgreSQL: one unlogged table, one statement for a reservation.

The statement is `store.reserve` in SQL, step by step: `tests/rate_limit/test_stores.py` compares the two.
An unlogged table is empty after a crash or a fail-over: a new state, which grants nothing extra.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final, LiteralString

import psycopg

from .._postgresql import (
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
from ..errors import ConfigurationError
from .store import CONSTANTS, PATIENCE, LimitRow, PermitRequest, Reservation, StoreUnavailable, figures_of

CONNECTING: Final = 3.0
"""Seconds to connect and to look for the table."""
CLOCK: Final = "extract(epoch FROM clock_timestamp())"
"""The store's time, seconds, as an expression in SQL."""
_REFUSED: Final = "28000"
_WEAK: Final = "require_auth"
_SHARED_SESSION: Final = ("26000", "42P05")
"""What prepared statements come to behind a pooler that gives each transaction another session."""

TABLE: Final = """
CREATE UNLOGGED TABLE IF NOT EXISTS payments.limits (
    address text, fingerprint text, kind text,
    born float8, at float8, tail float8, since float8, peak integer, peak_before integer,
    interactive float8, shut float8, opens float8, probe_until float8, pause float8,
    workers jsonb,
    answer float8[],
    PRIMARY KEY (address, fingerprint, kind)
) WITH (fillfactor = 50)
"""
"""Makes the table."""
_RIGHTS: Final = (
    "its user may not make or use the table payments.limits: as the database's owner, run "
    "CREATE SCHEMA IF NOT EXISTS payments; GRANT USAGE, CREATE ON SCHEMA payments TO that user"
)
_HAS_TABLE: Final = "SELECT to_regclass('payments.limits') IS NOT NULL"
_HAS_SCHEMA: Final = "SELECT to_regnamespace('payments') IS NOT NULL"
# a conflict locks the row and only then computes: an UPDATE computes first, and its WITH not again
_RESERVE: Final = """
INSERT INTO payments.limits AS old (address, fingerprint, kind)
VALUES (%(address)s, %(fingerprint)s, %(kind)s) ON CONFLICT (address, fingerprint, kind) DO UPDATE SET (
    born, at, tail, since, peak, peak_before, interactive, shut, opens, probe_until, pause, workers, answer
) = (
WITH ask AS MATERIALIZED (
    SELECT %(worker)s::text AS worker, %(limit)s::int AS "limit", %(wanted)s::int AS wanted,
        %(held)s::int AS held, %(lifetime)s::float8 AS lifetime, %(interactive)s::bool AS interactive,
        %(last_at)s::float8 AS last_at, %(last_born)s::float8 AS last_born, %(ago)s::float8 AS ago,
        %(last_peak)s::int AS last_peak, %(burst)s::int AS burst, %(half)s::int AS half, %(cap)s::int AS cap,
        ({clock})::float8 AS clock
), doubt AS MATERIALIZED (
    SELECT old.at IS NULL OR old.at - clock > {CLOCK_SLACK} OR coalesce(
        last_born >= old.born AND last_at - clock <= {CLOCK_SLACK} AND (
            (old.born, old.at) < (last_born, last_at) OR abs(clock - last_at - ago) > {CLOCK_STEP}
        ), false) AS new
    FROM ask
), state AS MATERIALIZED (
    SELECT clock AS born, clock AS now, clock AS tail, clock AS since, 0 AS peak, 0 AS peak_before,
        0::float8 AS interactive, 0::float8 AS shut, 0::float8 AS opens, 0::float8 AS probe_until,
        0::float8 AS pause, '{{}}'::jsonb AS workers
    FROM ask, doubt WHERE new
    UNION ALL
    SELECT old.born, greatest(clock, old.at), old.tail, old.since, old.peak, old.peak_before,
        old.interactive, old.shut, old.opens, old.probe_until, old.pause, old.workers
    FROM ask, doubt WHERE NOT new
), living AS MATERIALIZED (
    SELECT key AS name, (value->>0)::int AS alive, (value->>1)::float8 AS until, (value->>2)::float8 AS seen
    FROM state, jsonb_each(workers) WHERE (value->>1)::float8 >= now
), fleet AS MATERIALIZED (
    SELECT coalesce(sum(alive) FILTER (WHERE name <> worker), 0)::int AS others,
        max(alive) FILTER (WHERE name = worker) AS own,
        1 + count(*) FILTER (WHERE name <> worker AND now - seen < {ACTIVE}) AS active,
        coalesce(jsonb_object_agg(name, jsonb_build_array(alive, until, seen))
            FILTER (WHERE name <> worker), '{{}}') AS workers
    FROM ask CROSS JOIN state LEFT JOIN living ON true
), gate AS MATERIALIZED (
    SELECT NOT ask.interactive AND now - state.interactive < {ACTIVE} AS yields,
        CASE WHEN shut = 0 THEN 0 WHEN now < opens THEN opens - now
            ELSE greatest(least(probe_until - now, {PROBE_HINT}), 0) END AS blocked
    FROM ask, state
), offer AS MATERIALIZED (
    SELECT CASE WHEN blocked > 0 THEN 0 ELSE greatest(0, least(
            wanted,
            CASE WHEN shut <> 0 THEN 1
                ELSE (CASE WHEN yields THEN half ELSE burst END + active) / (active + 1) END,
            cap - others - greatest(held, coalesce(own, 0))
        )) END::int AS offered
    FROM ask, state, fleet, gate
), alive AS MATERIALIZED (
    SELECT greatest(others + held + offered,
            CASE WHEN last_born <> born AND ago < {WINDOW} THEN last_peak ELSE 0 END) AS alive,
        now - since AS counted
    FROM ask, state, fleet, offer
), peaks AS MATERIALIZED (
    SELECT CASE WHEN counted < {WINDOW} THEN since ELSE now END AS since,
        CASE WHEN counted < {WINDOW} THEN greatest(peak, alive) ELSE alive END AS peak,
        CASE WHEN counted < {WINDOW} THEN peak_before WHEN counted < 2 * {WINDOW} THEN peak ELSE 0 END
            AS peak_before
    FROM state, alive
), pace AS MATERIALIZED (
    SELECT ("limit" - 2 * burst - least(greatest(peaks.peak, peak_before), cap)) / {WINDOW}::float8 AS rate
    FROM ask, peaks
), before AS MATERIALIZED (
    SELECT CASE WHEN new
            THEN now + greatest(burst,
                least(greatest(peaks.peak, peaks.peak_before), burst + {FORGOTTEN})) / rate
            ELSE greatest(tail, now - burst / rate) END AS tail
    FROM ask, doubt, state, peaks, pace
), grants AS MATERIALIZED (
    SELECT CASE WHEN yields AND before.tail > now THEN 0 ELSE offered END AS granted
    FROM state, gate, offer, before
), line AS MATERIALIZED (
    SELECT before.tail + granted / rate AS tail FROM pace, before, grants
), turn AS MATERIALIZED (
    SELECT CASE WHEN granted > 0
            THEN greatest(now, line.tail + CASE WHEN yields THEN half / rate ELSE 0 END) - now
            WHEN blocked > 0 THEN blocked
            WHEN offered > 0 THEN greatest(line.tail - now, {LET_BY})
            ELSE {ASK_AGAIN} END AS wait,
        granted > 0 AND shut <> 0 AS probes
    FROM ask, state, gate, offer, pace, grants, line
)
SELECT born, now, line.tail, peaks.since, peaks.peak, peaks.peak_before,
    CASE WHEN ask.interactive AND wanted > 0 THEN now ELSE state.interactive END,
    shut, opens, CASE WHEN probes THEN now + wait + lifetime ELSE probe_until END, pause,
    fleet.workers || jsonb_build_object(worker, jsonb_build_array(
        held + granted,
        CASE WHEN held + granted > 0 THEN now + wait + lifetime ELSE now + {ACTIVE} END,
        now)),
    ARRAY[granted, wait, CASE WHEN probes THEN shut ELSE 0 END,
        CASE WHEN shut <> 0 THEN greatest(opens - now, 0) ELSE 0 END, pause,
        greatest(peaks.peak, peaks.peak_before), now, born]::float8[]
FROM ask, state, fleet, peaks, grants, line, turn
) RETURNING answer
"""
_CLOSE: Final = """
UPDATE payments.limits SET shut = clock.now, probe_until = 0, pause = %(pause)s,
    opens = greatest(CASE WHEN shut <> 0 THEN opens ELSE 0 END, clock.now + %(seconds)s)
FROM (SELECT ({clock})::float8 AS now) AS clock WHERE {ROW} AND at IS NOT NULL
"""
_END_PROBE: Final = """
UPDATE payments.limits SET shut = CASE WHEN %(answered)s THEN 0 ELSE shut END, probe_until = 0
WHERE {ROW} AND shut = %(probe)s
"""
_CONSTANTS: Final = {
    **CONSTANTS,
    "ROW": "address = %(address)s AND fingerprint = %(fingerprint)s AND kind = %(kind)s",
}


class PostgresLimitStore:
    """Rows in the table `payments.limits`, which is made when it is first used."""

    def __init__(self, url: str, *, insecure_database: bool = False, clock: str = CLOCK) -> None:
        """Take an address; `clock` is for tests. Raises ConfigurationError when it cannot be used.

        `insecure_database`: allow another host without `sslmode=verify-full`.
        """
        address = Address.of(url, ConfigurationError)
        self._parameters = {**address.parameters, "connect_timeout": 2}
        self._place = f"the limit store {address.label}"
        self._insecure_database = insecure_database
        self._require_private(address.exposure)
        self._reserve = _RESERVE.format(clock=clock, **_CONSTANTS)
        self._close = _CLOSE.format(clock=clock, **_CONSTANTS)
        self._end_probe = _END_PROBE.format(**_CONSTANTS)
        self._turn = asyncio.Lock()
        self._prepare_after: int | None = 0
        self._connection: Connection | None = None

    def _require_private(self, exposure: str | None) -> None:
        if not self._insecure_database and exposure is not None:
            raise ConfigurationError(f"{self._place}: {exposure}")

    async def reserve(self, row: LimitRow, request: PermitRequest) -> Reservation:
        """Reserve permits."""
        values = {**_place(row), **_values(request)}
        rows = await self._execute(self._reserve, values)
        if rows == [(None,)]:  # the row is new
            rows = await self._execute(self._reserve, values)
        return Reservation.of(rows[0][0])

    async def close_after_429(self, row: LimitRow, seconds: float, *, pause: float = 0.0) -> None:
        """Close the row for every process."""
        await self._execute(self._close, {**_place(row), "seconds": float(seconds), "pause": float(pause)})

    async def end_probe(self, row: LimitRow, probe: float, *, answered: bool) -> None:
        """End a probe."""
        await self._execute(self._end_probe, {**_place(row), "probe": probe, "answered": answered})

    async def aclose(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _execute(self, statement: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """Run one statement on the connection, which is made when there is none and dropped when it fails."""
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

    async def _send(self, statement: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        if self._connection is None:
            self._connection = await self._connect()
        async with _cut_after(self._connection, PATIENCE):
            cursor = await self._connection.execute(statement.encode(), values)
            return await cursor.fetchall() if cursor.description else []

    async def _connect(self) -> Connection:
        """Connect, and make the table when it is missing."""
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
        if await _one(connection, _HAS_TABLE):
            return
        async with connection.transaction():
            await connection.execute(MAKING_TABLES)
            if not await _one(connection, _HAS_SCHEMA):
                await connection.execute("CREATE SCHEMA payments")
            await connection.execute(TABLE)

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
                f"{self._place} has a table payments.limits of another version: drop it"
            )
        return StoreUnavailable(f"{self._place} cannot be reached, or did not answer in time ({code})")


def _code(error: psycopg.Error) -> str:
    """The SQLSTATE of an error, one of ours for a connection that was refused, or the error's name."""
    if asks_weakly(error):
        return _WEAK
    return _REFUSED if is_refusal(error) else error.sqlstate or type(error).__name__


def _place(row: LimitRow) -> dict[str, Any]:
    return {"address": row.address, "fingerprint": row.fingerprint, "kind": row.kind}


def _values(request: PermitRequest) -> dict[str, Any]:
    """The values of a reservation's statement."""
    figures, last = figures_of(request.limit), request.last
    return {
        "worker": request.worker,
        "limit": request.limit,
        "wanted": request.wanted,
        "held": request.held,
        "lifetime": float(request.lifetime),
        "interactive": request.interactive,
        "last_at": None if last is None else last.at,
        "last_born": None if last is None else last.born,
        "last_peak": 0 if last is None else last.peak,
        "ago": float(request.ago),
        "burst": figures.burst,
        "half": figures.half,
        "cap": figures.cap,
    }


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
