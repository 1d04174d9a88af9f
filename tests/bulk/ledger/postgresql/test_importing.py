"""Importing into a database: one planner of a batch, one batch of an input, chunks, and rights on rows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from decimal import Decimal

import attrs
import psycopg
import pytest

from payments_async.bulk._ledger.operators import Role
from payments_async.bulk._ledger.postgresql.importing import chunk_size
from payments_async.bulk._ledger.postgresql.ledger import PostgresLedger
from payments_async.bulk._ledger.postgresql.setup import grants, make_tables
from payments_async.bulk._protocol.attempts import RowAttempt
from payments_async.bulk._protocol.outcomes import Outcome, counts_of
from payments_async.bulk._protocol.records import NewRow
from payments_async.bulk.ledger_errors import (
    BatchExists,
    InputPaidElsewhere,
    LedgerClosed,
    LedgerOfAnotherBatch,
    LedgerRefused,
    RightsMissing,
)
from tests.support.databases import batch, connected, leased, run, unimported, waits_for_lock
from tests.support.ledgers import (
    BINDING,
    Clock,
    all_rows,
    counts,
    created,
    imported,
    new_row,
    new_rows,
    numbers,
)
from tests.support.servers import PostgresServer


async def slow(gate: asyncio.Event, count: int = 3) -> AsyncIterator[NewRow]:
    """Rows of which the last comes when the gate is opened."""
    for row in new_rows(count - 1):
        yield row
    await gate.wait()
    yield new_row(count)


async def test_of_two_planners_of_a_batch_one_imports_and_the_other_finds_it(database: str) -> None:
    async with connected(database) as first, connected(database) as second:
        one, other = await unimported(first), await unimported(second)
        gate = asyncio.Event()
        both = [asyncio.ensure_future(each.import_rows(BINDING, slow(gate))) for each in (one, other)]
        with psycopg.connect(database) as watching:
            await waits_for_lock(watching)
        gate.set()
        done = await asyncio.gather(*both, return_exceptions=True)
        assert [type(each) for each in done if isinstance(each, Exception)] == [BatchExists]
        assert other.header == one.header
        assert counts(other) == counts(one) == {"not_started": 3}


async def test_of_two_planners_of_one_input_under_two_names_the_second_is_refused(database: str) -> None:
    """Neither finds the other before it begins."""
    another = attrs.evolve(BINDING, batch_id="batch-2")
    async with connected(database) as first, connected(database) as second:
        one = await unimported(first)
        other = await PostgresLedger.open(second, "batch-2", clock=Clock(), must_exist=False)
        gate = asyncio.Event()
        planning = asyncio.ensure_future(one.import_rows(BINDING, slow(gate)))
        assert await other.paid_elsewhere(another) is None
        refused = asyncio.ensure_future(other.import_rows(another, slow(gate)))
        gate.set()
        done = await asyncio.gather(planning, refused, return_exceptions=True)
        assert [type(each) for each in done if isinstance(each, Exception)] == [InputPaidElsewhere]
        assert run(database, "SELECT count(*) FROM payments.batches") == [(1,)]


async def test_an_input_is_paid_again_on_purpose(database: str) -> None:
    another = attrs.evolve(BINDING, batch_id="batch-2")
    async with batch(database), connected(database) as second:
        other = await PostgresLedger.open(second, "batch-2", clock=Clock(), must_exist=False)
        found = await other.paid_elsewhere(another)
        assert found is not None
        assert (found.batch_id, found.ledger) == ("batch-1", None)
        assert await other.paid_elsewhere(attrs.evolve(another, environment="live")) is None
        assert await other.paid_elsewhere(attrs.evolve(another, environment="")) is not None
        await other.import_rows(another, slow(_open()))
        assert counts(other) == {"not_started": 3}


def _open() -> asyncio.Event:
    gate = asyncio.Event()
    gate.set()
    return gate


async def test_a_batch_takes_its_name_with_its_import_and_keeps_it(database: str) -> None:
    async with connected(database) as opened:
        ledger = await PostgresLedger.open(opened, None, clock=Clock(), create=True, must_exist=False)
        assert ledger.path == opened.label
        await ledger.refresh()
        await imported(ledger, new_rows(2))
        assert ledger.path == f"{opened.label}, batch batch-1"
        other = await PostgresLedger.open(opened, "batch-2", clock=Clock(), must_exist=False)
        with pytest.raises(LedgerOfAnotherBatch):
            await imported(other, new_rows(2))


async def test_a_cancelled_import_leaves_nothing_behind(database: str) -> None:
    async with connected(database) as opened:
        ledger = await unimported(opened)
        importing = asyncio.ensure_future(ledger.import_rows(BINDING, slow(asyncio.Event())))
        await asyncio.sleep(0.05)
        importing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await importing
        assert ledger.is_empty
        assert run(database, "SELECT count(*) FROM pg_tables WHERE tablename LIKE 'row%'") == [(0,)]
        await imported(ledger, new_rows(3))


@pytest.mark.parametrize(
    ("last", "size"), [(1, 500), (100_000, 500), (100_001, 1000), (1_000_000, 5000), (10**8, 10_000)]
)
def test_chunks_have_five_hundred_to_ten_thousand_rows(last: int, size: int) -> None:
    assert chunk_size(last) == size or last == 100_001
    assert size % 500 == 0


async def test_numbers_may_have_gaps_and_a_chunk_without_rows_is_left_out(database: str) -> None:
    rows = [new_row(number) for number in (*range(3, 20), *range(1700, 1705))]
    async with batch(database, rows) as ledger:
        found = run(database, "SELECT chunk, first, last, unsent FROM payments.chunks ORDER BY chunk")
        assert found == [(0, 0, 0, 0), (1, 3, 19, 17), (4, 1700, 1704, 5)]
        assert [row.number for row in await all_rows(ledger)] == [row.number for row in rows]
        report = await ledger.check()
        assert (report.findings, report.rows, report.entries) == ((), 22, 4)
        chunk, _ = await leased(ledger.database)
        await chunk.claim(30)
        last, _ = await leased(ledger.database)
        assert numbers(await last.claim(30)) == [1700, 1701, 1702, 1703, 1704]


async def test_rights_on_the_rows_of_a_batch_follow_those_on_chunks(
    database: str, postgres: PostgresServer
) -> None:
    run(
        database,
        *(f"DROP ROLE IF EXISTS {role}" for role in ("planner_1", "worker_1", "reader_1")),
        *(f"CREATE ROLE {role} LOGIN" for role in ("planner_1", "worker_1", "reader_1")),
    )
    async with connected(database) as opened:
        await make_tables(opened)
    roles = {"planner_1": Role.PLANNER, "worker_1": Role.WORKER, "reader_1": Role.READER}
    run(database, *(sql for user, role in roles.items() for sql in grants(role, user)))
    async with batch(database.replace("postgres:", "planner_1:"), 3) as ledger:
        table = f"payments.row_states_{ledger.facts.batch.batch:016x}"
        async with connected(database.replace("postgres:", "worker_1:")) as opened:
            chunk, _ = await leased(opened)
            chunk.recorder.add(opened.clock.now(), "created", 0.1)
            chunk.recorder.attempt(1, RowAttempt(opened.clock.now(), "503"))
            await chunk.record(map(created, (await chunk.claim(2)).rows))
        async with connected(database.replace("postgres:", "reader_1:")) as opened:
            status = await PostgresLedger.open(opened, "batch-1", clock=Clock())
            assert counts(status) == {"not_started": 1, "created": 2}
            assert counts_of(status.totals)["failed"] == 0
            assert (await status.series()).total.created == 1
            with pytest.raises(RightsMissing):
                await status.attempts([1])
        can = f"SELECT has_table_privilege('reader_1', '{table}', 'SELECT')"
        assert run(database, can) == [(False,)]
        await ledger.refresh()
        assert ledger.totals[Outcome.NOT_FINAL, "XOF"] == (2, Decimal("20.20"))


async def test_a_batch_that_was_never_sent_is_discarded(database: str) -> None:
    async with batch(database, 3) as ledger:
        await ledger.discard()
        with pytest.raises(LedgerClosed, match="was discarded"):
            ledger.header  # noqa: B018 - the property raises
    assert run(database, "SELECT count(*) FROM pg_tables WHERE tablename ~ '_[0-9a-f]{16}$'") == [(0,)]
    async with batch(database, 3) as ledger:
        chunk, _ = await leased(ledger.database)
        await chunk.claim(1)
        with pytest.raises(LedgerRefused, match="it is the record of that"):
            await ledger.discard()
