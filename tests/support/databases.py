"""Ledgers in PostgreSQL for tests: planned batches, workers, and ways to make the server fail."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import Any, TypeVar
from unittest.mock import patch
from urllib.parse import urlsplit

import attrs
import psycopg
import pytest

from payments_async._runtime import SYSTEM, Runtime
from payments_async.bulk._ledger.postgresql import database, granting, session
from payments_async.bulk._ledger.postgresql.database import Database
from payments_async.bulk._ledger.postgresql.leased_chunks import LeasedChunks
from payments_async.bulk._ledger.postgresql.leases import Lease, Work
from payments_async.bulk._ledger.postgresql.ledger import PostgresLedger
from payments_async.bulk._ledger.postgresql.work import due_work, open_batches
from payments_async.bulk._ledger.postgresql.worker_registry import Worker
from payments_async.bulk._protocol.records import LedgerRow, NewRow, RowOutcome
from payments_async.bulk._protocol.row_state import confirm
from payments_async.bulk._protocol.stop_rules import Account, StopRules
from tests.support.ledgers import BINDING, Clock, imported, new_row, new_rows
from tests.support.servers import CutProxy, of_batches

T = TypeVar("T")

ACCOUNT = Account(BINDING.environment, BINDING.base_url, BINDING.key_fingerprint)


def worker(number: int = 1, **changes: Any) -> Worker:
    """One of several workers."""
    made = Worker(bytes([number]) * 16, f"host-{number}", os.getpid(), "0", 2, ACCOUNT)
    return attrs.evolve(made, **changes)


@contextlib.asynccontextmanager
async def connected(url: str, runtime: Runtime = SYSTEM, **options: Any) -> AsyncIterator[Database]:
    """Context of an open database."""
    database = await Database.open(url, runtime, **options)
    try:
        yield database
    finally:
        await database.close()


class OpenDatabases:
    """Databases that are opened from now on. They are patient until nothing is to succeed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        opened = self._opened = list[Any]()
        begin = Database.__init__

        def noted(database: Database, *args: Any, **options: Any) -> None:
            begin(database, *args, **options)
            opened.append(database)

        monkeypatch.setattr(Database, "__init__", noted)

    def lose_patience(self) -> None:
        """Give a lost database up within a second, in a transaction that is under way too."""
        for each in self._opened:
            each.patience, each._answer = 0.2, 1.0


@contextlib.asynccontextmanager
async def batch(
    url: str,
    rows: int | Iterable[NewRow] = 5,
    *,
    rules: StopRules | None = StopRules(),  # noqa: B008 - frozen
    **options: Any,
) -> AsyncIterator[PostgresLedger]:
    """Context of a batch that was imported and, with `rules`, planned."""
    async with connected(url, **options) as database:
        ledger = await unimported(database)
        await imported(ledger, new_rows(rows) if isinstance(rows, int) else rows)
        if rules is not None:
            await ledger.plan(rules)
            await ledger.refresh()
        yield ledger


async def unimported(database: Database) -> PostgresLedger:
    """The ledger of a batch that need not be there."""
    options: Any = {"clock": Clock(), "create": True, "must_exist": False}
    return await PostgresLedger.open(database, BINDING.batch_id, **options)


async def grant(
    database: Database,
    worker: Worker,
    *,
    kind: Work = Work.SEND,
    batch: int | None = None,
    chunk: int | None = None,
) -> list[Lease]:
    """Leases of the most urgent work of a kind; none when there is nothing to do."""
    found = {each.batch_id: each for each in await open_batches(database, worker, batch)}
    if chunk is not None and found:
        return await granting.grant(database, worker, *found.values(), kind=kind, chunk=chunk)
    for work in await due_work(database, [each.batch for each in found.values()], [kind], 9) if found else ():
        return await granting.grant(
            database, worker, found[work.batch_id], kind=kind, chunk=work.chunk or None
        )
    return []


async def leased(database: Database, number: int = 1, **asked: Any) -> tuple[LeasedChunks, list[Lease]]:
    """The chunks of a new lease of a worker."""
    leases = await grant(database, worker(number), **asked)
    return await LeasedChunks.under(database, leases, clock=Clock(f"worker-{number}")), leases


def spread(*counts: int) -> Iterator[NewRow]:
    """Rows of several chunks, so many of each."""
    return (
        new_row(500 * chunk + number) for chunk, count in enumerate(counts) for number in range(1, count + 1)
    )


def paid(row: LedgerRow) -> RowOutcome:
    """The row's payout is made."""
    return RowOutcome(row.number, confirm(row.known, f"po_{row.number}"), "PENDING")


def run(url: str, *statements: str | tuple[str, Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Run statements on a connection of its own. Returns what the last one finds."""
    found: list[tuple[Any, ...]] = []
    with psycopg.connect(url, autocommit=True) as connection:
        for each in statements:
            sql, values = (each, None) if isinstance(each, str) else each
            cursor = connection.execute(of_batches(connection, sql).encode(), values)
            found = cursor.fetchall() if cursor.description else []
    return found


def name_of(url: str) -> str:
    """The database's name."""
    return urlsplit(url).path.removeprefix("/")


@contextlib.contextmanager
def in_step(runtime: Runtime) -> Iterator[None]:
    """Context in which every database has the time of a runtime, and none passes otherwise."""
    real = session.sent

    async def sent(connection: Any, statements: Sequence[tuple[str, Any]]) -> Any:
        now = f"to_timestamp({runtime.now().timestamp()})"
        return await real(connection, [(sql.replace("clock_timestamp()", now), to) for sql, to in statements])

    with patch.object(session, "sent", sent), patch.object(database, "sent", sent):
        yield


def expire_leases(url: str) -> None:
    """Let all leases run out."""
    run(url, "UPDATE payments.chunks SET expires = clock_timestamp() - interval '1 s'")


def fail(url: str, code: str, *, times: int = 1, table: str = "entries", secret: str = "") -> None:
    """Let the next inserts into a table fail with this SQLSTATE, with a secret in every part of the error."""
    run(
        url,
        "DROP SEQUENCE IF EXISTS public.faults CASCADE",
        "CREATE SEQUENCE public.faults",
        "CREATE OR REPLACE FUNCTION public.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"IF nextval('public.faults') <= {times} THEN RAISE EXCEPTION '{secret}' USING "
        f"ERRCODE = '{code}', DETAIL = '{secret}', HINT = '{secret}'; END IF; RETURN NEW; END $$",
        f"CREATE OR REPLACE TRIGGER faults BEFORE INSERT ON payments.{table} "
        "FOR EACH ROW EXECUTE FUNCTION public.fail()",
    )


@contextlib.contextmanager
def held_commits(
    url: str, table: str = "entries", event: str = "INSERT"
) -> Iterator[psycopg.Connection[Any]]:
    """Context in which a COMMIT of changes of a table waits. The connection lets it go on."""
    run(
        url,
        "CREATE FUNCTION public.hold() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "PERFORM pg_advisory_xact_lock(7); RETURN NULL; END $$",
        f"CREATE CONSTRAINT TRIGGER held AFTER {event} ON payments.{table} DEFERRABLE INITIALLY DEFERRED "
        "FOR EACH ROW EXECUTE FUNCTION public.hold()",
    )
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(7)")
        yield connection


async def lose_answer(
    work: asyncio.Future[T], holder: psycopg.Connection[Any], proxy: CutProxy, *, is_committed: bool
) -> T:
    """Lose the answer to a COMMIT of `work` that `holder` holds: it takes place, or its session ends."""
    session = await waits_for_lock(holder)
    if is_committed:
        proxy.heal()  # cuts the connection: the session goes on to its end
        await waits_for_lock(holder, count=2)  # a new one asks how it ended
    else:
        holder.execute("SELECT pg_terminate_backend(%s)", (session,))
    holder.execute("SELECT pg_advisory_unlock(7)")
    return await work


async def waits_for_lock(connection: psycopg.Connection[Any], *, count: int = 1) -> int:
    """Wait until so many other sessions wait for a lock. Returns the process of the first of them."""
    waiting = (
        "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
        "AND datname = current_database() AND pid <> pg_backend_pid() ORDER BY query_start"
    )
    while len(found := connection.execute(waiting).fetchall()) < count:  # noqa: ASYNC110 - a server's
        await asyncio.sleep(0.005)
    return int(found[0][0])
