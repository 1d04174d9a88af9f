"""A database of batches, as its operator sees it: its tables, its batches, and what an inspection finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest

from payments_async.bulk import BatchState, Standbys
from payments_async.bulk.errors import BulkError
from payments_async.bulk.ledger_errors import LedgerDamaged, LedgerError, LedgerMissing, LedgerRefused
from tests.support.batches import items
from tests.support.canary import told_by
from tests.support.desks import Desk
from tests.support.servers import PASSWORD


async def test_tables_are_made_once_and_are_those_of_this_version(desk: Desk, database: str) -> None:
    async with desk.database(database) as found:
        for work in (found.batches, found.workers, found.upgrade):
            with pytest.raises(LedgerMissing, match="holds no ledger"):
                await work()
        assert (await found.check()).tables is None
        assert [await found.init(), await found.init()] == [True, False]
        before, now = await found.upgrade()
        assert before == now == (await found.check()).tables
        assert (await found.batches(), await found.workers()) == ([], [])


async def test_an_inspection_finds_what_the_database_is_like_and_what_is_needed(
    desk: Desk, database: str
) -> None:
    async with desk.database(database) as found:
        await found.init()
        report = await found.check("reader")
    assert (report.problems, report.grants, report.standbys) == ((), (), Standbys.NONE)
    assert report.is_pooled is False
    assert report.connections == {"run": 4, "worker": 6}
    assert PASSWORD not in repr(report)


async def test_batches_are_listed_with_their_figures_the_newest_first(
    desk: Desk, client: Any, database: Any
) -> None:
    for name, rows in (("june", 3), ("fe\u0301vrier", 2)):
        async with desk.open(database, client, batch_id=name) as batch:
            await batch.load(items(rows))
    async with desk.open(database, client, batch_id="june") as batch:
        await batch.run(max_rows=1)
    async with desk.database(database) as found:
        february, june = await found.batches()
        assert await found.batches("fe\u0301vrier") == await found.batches("f\u00e9vrier") == [february]
        assert await found.batches("july") == []
    assert (june.batch_id, june.environment, june.state) == ("june", "sandbox", BatchState.OPEN)
    assert (june.report.counts["created"], june.report.rows, june.report.balanced) == (1, 3, True)
    assert june.rule is not None
    assert (june.report.stopped, june.is_over, june.is_alone) == (june.rule, True, True)
    assert (june.chunks, june.chunks_open, june.chunks_leased, june.seconds_left) == (1, 1, 0, None)
    assert (february.state, february.reason, february.is_over) == (BatchState.IMPORTED, None, False)
    assert february.report.stopped == "the batch is not planned yet"


async def test_a_batch_that_cannot_be_read_hides_no_other(desk: Desk, client: Any, database: Any) -> None:
    for number, name in enumerate(("june", "july"), 1):
        async with desk.open(database, client, batch_id=name) as batch:
            await batch.load(items(number))
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("UPDATE payments.batches SET totals = '{' WHERE batch_id = 'june'")
    unreadable: list[LedgerError] = []
    async with desk.database(database) as found:
        with pytest.raises(LedgerDamaged, match="june"):
            await found.batches()
        (july,) = await found.batches(on_unreadable=unreadable.append)
    assert july.batch_id == "july"
    assert [type(error) for error in unreadable] == [LedgerDamaged]


async def test_only_a_closed_batch_is_forgotten(desk: Desk, client: Any, database: Any) -> None:
    async with desk.open(database, client, batch_id="june") as batch:
        await batch.load(items(2))
    async with desk.database(database) as found:
        assert await found.forget(0.0, dry_run=True) == []
        with pytest.raises(BulkError, match="batch june is not closed"):
            await found.forget(0.0, unsettled=["june"])
    async with desk.open(database, client, batch_id="june") as batch:
        await batch.run(wait_final=60.0)
        await batch.reconcile()
    async with desk.database(database) as found:
        (done,) = await found.forget(0.0)
        assert (done.batch_id, done.kept) == ("june", None)
        (listed,) = await found.batches()
        assert (listed.state, listed.report.counts["arrived"]) == (BatchState.FORGOTTEN, 2)
        assert await found.forgotten("a reference") is None


async def test_no_worker_is_drained_whose_id_is_not_known(desk: Desk, database: str) -> None:
    async with desk.database(database) as found:
        await found.init()
        with pytest.raises(LedgerRefused, match="no workers have ids that begin with 'ab'"):
            await found.drain("ab")


async def test_a_name_that_no_batch_can_have_is_refused(desk: Desk, database: str) -> None:
    async with desk.database(database) as found:
        await found.init()
        for name in ("a\0", "\udcff", " "):
            with pytest.raises(BulkError, match="batch_id"):
                await found.batches(name)


async def test_a_database_is_used_while_it_is_connected(desk: Desk, database: str) -> None:
    found = desk.database(database)
    with pytest.raises(BulkError, match="not connected"):
        await found.batches()
    for _ in range(2):
        async with found:
            with pytest.raises(BulkError, match="open already"):
                await found.__aenter__()
            await found.init()


async def test_what_is_no_database_is_refused_without_its_password(desk: Desk, tmp_path: Path) -> None:
    with pytest.raises(BulkError, match=r"`PayoutBatch\.open\(path, client\)` opens one in a file"):
        await desk.database(str(tmp_path / "l")).__aenter__()
    with pytest.raises(BulkError, match="not mysql://") as caught:
        await desk.database(f"mysql://ada:{PASSWORD}@db.test/payments").__aenter__()
    assert PASSWORD not in told_by(caught.value)
