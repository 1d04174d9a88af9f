"""Tables and rights: made once, by whoever may; what is missing is said as SQL; what is unfit is reported."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from urllib.parse import urlsplit

import psycopg
import pytest

from payments_async._postgresql import MAKING_TABLES
from payments_async._rate_limit.store import LimitRow, PermitRequest
from payments_async._rate_limit.store_client import open_store
from payments_async.bulk._ledger.operators import Role
from payments_async.bulk._ledger.postgresql import batches, schema, setup
from payments_async.bulk._ledger.postgresql.ledger import PostgresLedger
from payments_async.bulk._ledger.tables import FIGURES
from payments_async.bulk._protocol.attempts import RowAttempt
from payments_async.bulk._protocol.outcomes import Outcome
from payments_async.bulk.ledger_errors import (
    LedgerDamaged,
    LedgerMissing,
    LedgerNewer,
    LedgerOlder,
    LedgerRefused,
    RightsMissing,
)
from tests.support.databases import batch, connected, grant, leased, run, unimported, waits_for_lock, worker
from tests.support.ledgers import Clock, counts, created, imported, new_rows
from tests.support.servers import PostgresServer, postgres_server

USER = "clerk"
ROW = LimitRow("https://api.example/v1", "3f9a", "write")
ASK = PermitRequest(worker="worker", limit=60_000, wanted=1, held=0, lifetime=35.0)


@pytest.fixture
def clerk(database: str) -> Iterator[str]:
    """The database's address for a user without rights."""
    run(database, f"CREATE ROLE {USER} LOGIN")
    yield database.replace("postgres:", f"{USER}:")
    writable = "SET default_transaction_read_only = off"
    run(database, writable, f"DROP OWNED BY {USER}", f"DROP ROLE {USER}")


async def test_tables_are_made_once_by_processes_that_begin_at_the_same_time(database: str) -> None:
    async with connected(database) as one, connected(database) as two:
        made = await asyncio.gather(setup.make_tables(one), setup.make_tables(two))
        assert sorted(made) == [False, True]
        assert await setup.tables_version(one) == schema.SCHEMA
        assert not await setup.make_tables(one)
    assert run(database, "SELECT count(*) FROM payments.meta") == [(1,)]


@pytest.mark.parametrize("second", ["ledger", "limit store"])
async def test_a_ledger_and_a_limit_store_make_the_schema_one_after_the_other(
    database: str, second: str
) -> None:
    store = open_store(database)
    async with connected(database) as opened:
        with psycopg.connect(database, autocommit=True) as looking, psycopg.connect(database) as first:
            first.execute(MAKING_TABLES)
            first.execute("CREATE SCHEMA payments")
            making: asyncio.Future[object] = asyncio.ensure_future(
                setup.make_tables(opened) if second == "ledger" else store.reserve(ROW, ASK)
            )
            await waits_for_lock(looking)
        await making
        await store.reserve(ROW, ASK)
        await setup.make_tables(opened)
    await store.aclose()


async def test_a_database_without_tables_holds_no_batch(database: str) -> None:
    async with connected(database) as opened:
        with pytest.raises(LedgerMissing, match="holds no ledger's tables"):
            await PostgresLedger.open(opened, "batch-1", clock=Clock())
        with pytest.raises(LedgerMissing, match="holds no ledger's tables"):
            await setup.upgrade(opened)
        await setup.make_tables(opened)
        with pytest.raises(LedgerMissing, match="there is no such batch"):
            await PostgresLedger.open(opened, "batch-1", clock=Clock())


async def test_a_user_who_may_not_make_tables_is_told_the_right(clerk: str) -> None:
    async with connected(clerk) as opened:
        with pytest.raises(RightsMissing) as caught:
            await unimported(opened)
        name = urlsplit(clerk).path.removeprefix("/")
        assert caught.value.grants == (f"GRANT CREATE ON DATABASE {name} TO clerk",)


@pytest.mark.parametrize("rights", ["", "USAGE", "CREATE"])
async def test_a_schema_of_another_owner_is_no_place_for_tables_without_rights_on_it(
    database: str, clerk: str, rights: str
) -> None:
    name = urlsplit(clerk).path.removeprefix("/")
    run(database, f"GRANT CREATE ON DATABASE {name} TO clerk", "CREATE SCHEMA payments")
    if rights:
        run(database, f"GRANT {rights} ON SCHEMA payments TO clerk")
    async with connected(clerk) as opened:
        report = await setup.inspect(opened)
        assert (report.tables, report.problems) == (None, ("its user lacks rights",))
        with pytest.raises(RightsMissing) as caught:
            await setup.make_tables(opened)
        assert caught.value.grants == report.grants
        run(database, *report.grants)
        assert await setup.make_tables(opened)


async def test_missing_rights_are_said_as_sql_and_are_enough(database: str, clerk: str) -> None:
    async with connected(database) as opened:
        await setup.make_tables(opened)
    async with connected(clerk) as opened:
        with pytest.raises(RightsMissing) as caught:
            await PostgresLedger.open(opened, "batch-1", clock=Clock())
        assert caught.value.grants[0] == "GRANT USAGE ON SCHEMA payments TO clerk"
        assert "GRANT SELECT ON payments.batches TO clerk" in str(caught.value)
        run(database, *caught.value.grants)
        with pytest.raises(RightsMissing) as caught:
            await unimported(opened)
        assert "GRANT CREATE ON SCHEMA payments TO clerk" in caught.value.grants
        run(database, *caught.value.grants)
        ledger = await unimported(opened)
        await imported(ledger, new_rows(3))
        assert counts(ledger) == {"not_started": 3}


async def test_a_worker_needs_less_than_a_planner(database: str, clerk: str) -> None:
    async with batch(database, 3), connected(clerk) as opened:
        run(database, *setup.grants(Role.READER, USER))
        with pytest.raises(RightsMissing):
            await setup.require_rights(opened, Role.WORKER)
        run(database, *setup.grants(Role.WORKER, USER))
        await setup.require_rights(opened, Role.WORKER)
        lacking = await setup.missing_row_rights(opened)  # the batch was imported before the grant
        assert len(lacking) == len(schema.RIGHTS)
        run(database, *lacking)
        assert await setup.missing_row_rights(opened) == ()
        chunk, _ = await leased(opened)
        await chunk.record(map(created, (await chunk.claim(3)).rows))
        assert counts(chunk) == {"created": 3}
        with pytest.raises(RightsMissing, match="GRANT CREATE ON SCHEMA payments TO clerk"):
            await setup.require_rights(opened, Role.PLANNER)


async def test_a_right_that_is_missing_in_the_middle_is_named_by_its_code(database: str, clerk: str) -> None:
    async with batch(database, 3), connected(clerk) as opened:
        run(database, *setup.grants(Role.READER, USER))
        status = await PostgresLedger.open(opened, "batch-1", clock=Clock())
        assert counts(status) == {"not_started": 3}
        with pytest.raises(RightsMissing, match="lacks rights; let an owner"):
            await status.first()


async def test_tables_of_the_first_version_are_brought_up_to_date(database: str) -> None:
    made = (
        "SELECT c.attname, pg_get_expr(d.adbin, d.adrelid) FROM pg_attribute c LEFT JOIN pg_attrdef d "
        "ON d.adrelid = c.attrelid AND d.adnum = c.attnum "
        "WHERE c.attrelid = 'payments.chunks'::regclass AND NOT c.attisdropped AND c.attnum > 0 ORDER BY 1",
        "SELECT indexdef FROM pg_indexes WHERE tablename = 'chunks' ORDER BY 1",
    )
    async with batch(database, 3) as ledger:
        as_new = [run(database, each) for each in made]
        run(database, "CREATE TABLE kept AS SELECT hash_key FROM payments.batches")
        run(database, *before_the_sixth(ledger))
        tables = ", ".join(f'"payments".{name}' for name in (*FIGURES, "attempts"))
        columns = (
            "ALTER TABLE payments.workers DROP COLUMN trouble",
            "ALTER TABLE payments.chunks ADD COLUMN finals text",
            "ALTER TABLE payments.chunks RENAME COLUMN not_final TO awaited",
            "ALTER TABLE payments.batches DROP COLUMN extra",
            "ALTER TABLE payments.chunks DROP COLUMN stage",
        )
        run(database, f"DROP TABLE {tables}", *columns, "UPDATE payments.meta SET version = 1")
        with pytest.raises(LedgerOlder):
            await setup.require_tables(ledger.database, create=True)
        assert await setup.upgrade(ledger.database) == 1
        await setup.require_tables(ledger.database, create=False)
        run(database, "UPDATE payments.batches SET hash_key = kept.hash_key FROM kept")
        assert (await ledger.series()).buckets == ()
        await ledger.refresh()
        assert (await ledger.check()).findings == ()
        assert run(database, "SELECT trouble FROM payments.workers") == []
        assert [run(database, each) for each in made] == as_new
        assert len(await grant(ledger.database, worker(1))) == 1


def before_the_sixth(ledger: PostgresLedger) -> Iterator[str]:
    """Statements that bring the tables to their fifth form, in which batches shared two of them."""
    for kind, key in (("entries", "batch, chunk, number"), ("attempts", "batch, number")):
        table = schema.table_of(kind, ledger.facts.batch.batch)
        fill = " WITH (fillfactor = 50)" if kind == "attempts" else ""
        # quoted, it is the shared table (`of_batches`)
        yield f'CREATE TABLE "payments".{kind} (LIKE {table}, PRIMARY KEY ({key})){fill}'
        yield f'INSERT INTO "payments".{kind} SELECT * FROM {table}'
        yield f"DROP TABLE {table}"
    yield "DROP TABLE payments.forgotten_references"
    for column in ("hash_key", "closed", "certificate", "forgotten"):
        yield f"ALTER TABLE payments.batches DROP COLUMN {column}"


async def test_entries_and_attempts_of_batches_get_tables_of_their_own(database: str, clerk: str) -> None:
    made = (
        "SELECT relname, relacl::text, relkind, relnatts FROM pg_class "
        "WHERE relname ~ '^(entries|attempts)' ORDER BY 1"
    )
    closed = "SELECT closed::jsonb, state FROM payments.batches"
    async with batch(database, 3) as ledger, connected(clerk) as opened:
        run(database, *setup.grants(Role.WORKER, USER), *await setup.missing_row_rights(opened))
        chunk, _ = await leased(opened)
        await chunk.record(map(created, (await chunk.claim(3)).rows))
        ledger.recorder.attempt(2, RowAttempt(ledger.now(), "503", 0.2))
        await ledger.save_figures()
        assert await batches.close(ledger.database, ledger.facts.batch, Clock(), {"clean": True})
        as_new, before = run(database, made), run(database, closed)
        run(database, "CREATE TABLE kept AS SELECT hash_key FROM payments.batches")
        run(database, *before_the_sixth(ledger), "UPDATE payments.meta SET version = 5")
        assert await setup.upgrade(ledger.database) == 5
        run(database, "UPDATE payments.batches SET hash_key = kept.hash_key FROM kept")
        assert (run(database, made), run(database, closed)) == (as_new, before)
        await ledger.refresh()
        assert (await ledger.check()).findings == ()
        assert (await ledger.attempts([2]))[2].made == 1
        assert await setup.missing_row_rights(opened) == ()


async def test_tables_of_another_version_are_refused(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with batch(database, 3) as ledger:
        run(database, "UPDATE payments.meta SET version = 7")
        for work in (setup.require_tables(ledger.database, create=True), setup.upgrade(ledger.database)):
            with pytest.raises(LedgerNewer) as caught:
                await work
            assert (caught.value.found, caught.value.known) == (7, schema.SCHEMA)
        run(database, "UPDATE payments.meta SET version = 1")
        monkeypatch.setattr(setup, "SCHEMA", 3)
        with pytest.raises(LedgerOlder, match=r"ledger upgrade.*") as older:
            await setup.require_tables(ledger.database, create=True)
        assert (older.value.found, older.value.known) == (1, 3)
        steps = {
            1: ("ALTER TABLE payments.batches ADD COLUMN note text",),
            2: ("UPDATE payments.batches SET note = 'two'",),
        }
        monkeypatch.setattr(setup, "UPGRADES", steps)
        assert await setup.upgrade(ledger.database) == 1
        assert await setup.upgrade(ledger.database) == 3
        assert run(database, "SELECT note FROM payments.batches") == [("two",)]


async def test_tables_are_not_upgraded_under_a_batch_that_this_version_cannot_pay(database: str) -> None:
    async with batch(database, 3) as ledger:
        number = ledger.facts.batch.batch
        run(database, *before_the_sixth(ledger), "UPDATE payments.meta SET version = 5")
        run(database, "UPDATE payments.batches SET schema = 4")
        words = r"batch batch-1 is number 4, and this version works with 5; finish .* upgrade then; nothing"
        with pytest.raises(LedgerRefused, match=words):
            await setup.upgrade(ledger.database)
        assert run(database, "SELECT version FROM payments.meta") == [(5,)]
        assert run(database, f"SELECT to_regclass('{schema.table_of('entries', number)}')") == [(None,)]
        run(database, "UPDATE payments.batches SET state = 'closed'")
        assert await setup.upgrade(ledger.database) == 5


@pytest.mark.parametrize(
    "version", ["4 WHERE false", "NULL::int", "0", "'x'::text", "4 FROM generate_series(1, 2)"]
)
async def test_a_table_of_another_under_our_name_is_no_ledger(database: str, version: str) -> None:
    names_as = "SELECT v.version FROM (SELECT {}) v (version)"
    run(database, "CREATE SCHEMA payments", f"CREATE TABLE payments.meta AS {names_as.format(version)}")
    async with connected(database) as opened:
        for work in (setup.tables_version, setup.upgrade, setup.inspect):
            with pytest.raises(LedgerDamaged, match=r"payments\.meta cannot be read"):
                await work(opened)


async def test_an_inspection_finds_nothing_wrong_with_a_good_database(database: str) -> None:
    async with connected(database) as opened:
        before = await setup.inspect(opened)
        assert (before.tables, before.grants, before.problems) == (None, (), ())
        await setup.make_tables(opened)
        report = await setup.inspect(opened)
        assert (report.tables, report.grants, report.problems) == (schema.SCHEMA, (), ())
        assert report.label == opened.label
        assert report.server_version.startswith("18.")
        assert not report.is_encrypted
        assert abs(report.clock_ahead) < 2.0
        assert report.settings["max_connections"] == "100"
        assert report.warnings == ("fsync is off: after a power cut the ledger may be damaged",)  # in tests


async def test_an_inspection_reports_what_is_wrong(database: str, clerk: str) -> None:
    name = urlsplit(database).path.removeprefix("/")
    async with connected(clerk) as opened:
        assert (await setup.inspect(opened)).grants == (f"GRANT CREATE ON DATABASE {name} TO clerk",)
        async with connected(database) as owned:
            await setup.make_tables(owned)
        lacking = await setup.inspect(opened)
        assert (lacking.tables, lacking.problems) == (None, ("its user lacks rights",))
        assert "GRANT USAGE, CREATE ON SCHEMA payments TO clerk" in lacking.grants
    run(
        database,
        "UPDATE payments.meta SET version = 7",
        f'ALTER DATABASE "{name}" SET default_transaction_read_only = on',
        f'ALTER DATABASE "{name}" SET synchronous_commit = off',
    )
    async with connected(database) as opened:
        opened.runtime = _Slow(opened.runtime)  # type: ignore[assignment] # a runtime that wraps one
        report = await setup.inspect(opened)
        assert report.problems == (
            "it takes no changes: it is read-only",
            f"its tables are number 7, and this version works with {schema.SCHEMA}",
        )
        assert "synchronous_commit is off for this user: sessions of the ledger turn it on" in report.warnings
        assert re.fullmatch(
            r"its clock differs from this machine's by \+3[56]\d\d\.\d s; the database's decides",
            report.warnings[-1],
        )


class _Slow:
    """A machine whose clock is an hour slow."""

    def __init__(self, runtime: object) -> None:
        self._runtime = runtime

    def __getattr__(self, name: str) -> object:
        return getattr(self._runtime, name)

    def now(self) -> object:
        from datetime import timedelta

        return self._runtime.now() - timedelta(hours=1)  # type: ignore[attr-defined] # held as object


async def test_an_older_server_does_as_well() -> None:
    with postgres_server(version=16) as server:
        await _pays(server)


async def _pays(server: PostgresServer) -> None:
    async with batch(server.url(server.make_database()), 700) as ledger:
        assert ledger.database.server.version // 10_000 == 16
        for _ in range(2):
            chunk, _ = await leased(ledger.database)
            while rows := (await chunk.claim(300)).rows:
                await chunk.record(map(created, rows))
        await ledger.refresh()
        assert ledger.totals[Outcome.NOT_FINAL, "XOF"][0] == 700
        assert (await ledger.check()).findings == ()
        assert (await setup.inspect(ledger.database)).server_version.startswith("16.")
