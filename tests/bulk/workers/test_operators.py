"""What an operator, or the batch's rules, may do while workers pay: seen with the next renewal of leases."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from decimal import Decimal

import pytest
import pytest_asyncio

from payments_async.bulk import BatchDatabase
from payments_async.bulk.ledger_errors import LedgerRefused
from payments_async.bulk.steps import Now, Wait
from payments_async.bulk.workers import WorkerReport
from tests.support.fleet import Fleet, books, ended, posts
from tests.support.patience import until


@pytest_asyncio.fixture
async def connection(database: str) -> AsyncIterator[BatchDatabase]:
    async with BatchDatabase.open(database) as found:
        yield found


async def paying(fleet: Fleet, rows: int = 4) -> asyncio.Task[WorkerReport]:
    """A worker that has begun to pay, two rows at a time, each in a tenth of a second."""
    fleet.sandbox.on("payouts.create").respond("slow:100ms", times=None)
    task = fleet.started(await fleet.worker(concurrency=2, until_idle=False))
    await until(lambda: posts(fleet.sandbox) >= rows)
    return task


async def test_a_pause_is_seen_within_seconds_and_a_resume_too(fleet: Fleet) -> None:
    batch = await fleet.planned(100)
    await paying(fleet)
    assert (await batch.pause("the till is empty")).stopped == "paused: the till is empty"
    await until(lambda: not fleet.held)
    sent = posts(fleet.sandbox)
    fleet.sandbox.clear_rules()
    await asyncio.sleep(0.3)
    assert posts(fleet.sandbox) == sent < 100
    assert (await batch.refresh()).counts["created"] == sent  # what was under way was recorded
    await batch.resume()
    await until(lambda: len(books(fleet.sandbox)) == 100)
    assert posts(fleet.sandbox) == 100


async def test_a_batch_whose_tables_are_damaged_is_paused_too(fleet: Fleet) -> None:
    batch = await fleet.planned(10)
    ((table,),) = fleet.query("SELECT tablename FROM pg_tables WHERE tablename ~ '^entries_'")
    fleet.query(f"DROP TABLE payments.{table}")
    await batch.pause("the till is empty")
    assert fleet.query("SELECT state, reason FROM payments.batches") == [("paused", "the till is empty")]
    assert (await fleet.run()).rows == 0


async def test_a_worker_that_starts_later_sees_the_pause_too(fleet: Fleet) -> None:
    batch = await fleet.planned(10)
    await batch.pause()
    assert (await fleet.run()).rows == posts(fleet.sandbox) == 0
    await batch.resume()
    assert (await fleet.run()).rows == 10


async def test_a_batch_is_not_worked_on_before_it_is_planned(fleet: Fleet) -> None:
    batch = await fleet.loaded(10)
    assert (await fleet.run()).rows == 0
    await batch.plan()
    assert (await fleet.run()).rows == 10


async def test_a_process_of_an_engine_is_listed_with_the_chunks_that_its_steps_hold(
    fleet: Fleet, connection: BatchDatabase
) -> None:
    await fleet.planned(100)
    fleet.sandbox.on("payouts.create").respond("slow:300ms", times=None)
    steps = await fleet.steps(concurrency=2)
    tasks = [asyncio.ensure_future(steps.pay("june", chunk)) for chunk in (1, 2)]
    await until(lambda: fleet.held == {1, 2})
    (listed,) = await connection.workers()
    assert (listed.slots, listed.leased_chunks) == (0, (("june", 1), ("june", 2)))
    await asyncio.gather(*map(ended, tasks))


async def test_a_drained_worker_ends_in_order_and_leaves_the_rest(
    fleet: Fleet, connection: BatchDatabase
) -> None:
    batch = await fleet.planned(100)
    task = await paying(fleet)
    (listed,) = await connection.workers()
    assert {batch_id for batch_id, _ in listed.leased_chunks} == {"june"}
    assert (listed.slots, listed.is_draining, listed.silent < 5) == (2, False, True)
    for prefix in ("", "nobody", "%"):
        with pytest.raises(LedgerRefused, match="no workers have ids that begin with"):
            await connection.drain(prefix)
    assert (await connection.drain(listed.id[:6])).id == listed.id
    report = await task
    assert (report.exit_code, report.stopped) == (0, "drained by an operator")
    assert report.rows == len(books(fleet.sandbox)) < 100
    assert (await batch.refresh()).counts["under_way"] == 0
    assert (fleet.held, await connection.workers()) == (set(), [])


async def test_a_schedulers_process_is_drained_too(fleet: Fleet, connection: BatchDatabase) -> None:
    await fleet.planned(50)
    fleet.sandbox.on("payouts.create").respond("slow:300ms", times=None)
    steps = await fleet.steps(concurrency=2)
    running = asyncio.ensure_future(steps.pay("june", 1))
    await until(lambda: posts(fleet.sandbox) >= 2)
    (listed,) = await connection.workers()
    await connection.drain(listed.id)
    end = await running
    assert end.next == Now()
    assert end.figures is not None
    assert end.figures.done == len(books(fleet.sandbox)) < 50
    assert (await steps.pay("june", 1)).next == Wait(15.0, "an operator drains this process")


async def test_a_stopped_worker_finishes_what_is_under_way_and_gives_its_leases_back(fleet: Fleet) -> None:
    batch = await fleet.planned(100)
    fleet.sandbox.on("payouts.create").respond("slow:100ms", times=None)
    worker = await fleet.worker(concurrency=2, until_idle=False)
    task = fleet.started(worker)
    await until(lambda: posts(fleet.sandbox) >= 4)
    worker.stop("SIGTERM")
    report = await task
    assert (report.exit_code, report.stopped, report.unrecorded) == (0, "SIGTERM", ())
    assert fleet.held == set()
    assert (await batch.refresh()).counts["under_way"] == 0
    assert report.rows == len(books(fleet.sandbox)) == posts(fleet.sandbox) < 100


async def test_the_rest_of_a_batch_is_cancelled_while_a_worker_pays(fleet: Fleet) -> None:
    batch = await fleet.planned(200)
    task = await paying(fleet)
    report = await batch.cancel_rest()
    assert report.counts["not_started"] == 0
    assert 0 < report.counts["cancelled"] < 200
    await until(lambda: fleet.query("SELECT state FROM payments.batches") == [("closed",)])
    task.cancel()
    final = await batch.refresh()
    assert (final.complete, final.balanced, final.counts["cancelled"]) == (
        True,
        True,
        report.counts["cancelled"],
    )
    assert len(books(fleet.sandbox)) == final.counts["created"] == posts(fleet.sandbox)
    assert (await batch.check()).findings == ()
    assert (await batch.cancel_rest()).counts == final.counts


async def test_too_many_failures_stop_the_batch_for_all_workers(fleet: Fleet) -> None:
    fleet.sandbox.on("payouts.create").respond("http:422", times=None)
    batch = await fleet.planned(1_000, max_failure_rate=0.5)
    reports = await asyncio.gather(fleet.run(concurrency=2), fleet.run(concurrency=2))
    assert [report.exit_code for report in reports] == [0, 0]
    report = await batch.refresh()
    assert 20 <= report.counts["rejected"] < 800  # several renewals, which look at the rate
    assert report.counts["under_way"] == 0
    await batch.plan()  # with no such rule
    fleet.sandbox.clear_rules()
    await fleet.run()
    assert (await batch.refresh()).complete


async def test_as_many_rows_are_taken_as_the_rules_allow_however_many_workers_take_them(fleet: Fleet) -> None:
    await fleet.planned(200, max_rows=70)
    reports = await asyncio.gather(fleet.run(), fleet.run())
    assert [(report.exit_code, report.stopped) for report in reports] == [(0, None)] * 2
    assert sum(report.rows for report in reports) == len(books(fleet.sandbox)) == 70


async def test_no_row_is_taken_over_the_largest_sum(fleet: Fleet) -> None:
    await fleet.planned(200, max_amount="2485.70")
    await fleet.run(slots=1)
    assert sum(entry.amount for entry in fleet.sandbox.books.payouts()) == Decimal("2485.70")
    assert len(books(fleet.sandbox)) == 70


async def test_a_snapshot_of_a_batch_names_the_workers_that_hold_its_rows(
    fleet: Fleet, connection: BatchDatabase
) -> None:
    june, july = await fleet.planned(100), await fleet.loaded(1, "july")
    assert (await june.snapshot()).workers == ()
    await paying(fleet)
    (worker,) = await connection.workers()
    assert [each.id for each in (await june.snapshot()).workers] == [worker.id]
    assert (await july.snapshot()).workers == ()


async def test_a_list_of_workers_may_be_read_while_leases_end(
    fleet: Fleet, connection: BatchDatabase
) -> None:
    await fleet.loaded(1)
    fleet.query(
        "INSERT INTO payments.workers (id, host, pid, version, slots, started, last_seen, rows) "
        "VALUES ('w', 'host', 1, '0', 2, now(), now(), 0)"
    )
    fleet.query(
        "CREATE TEMP TABLE chunks AS SELECT (jsonb_populate_record(c, jsonb_build_object("
        "'chunk', n, 'holder', 'w'::bytea, 'expires', clock_timestamp() + n * interval '0.1 ms'))).* "
        "FROM payments.chunks c, generate_series(2, 3000) n WHERE c.chunk = 1; "
        "ALTER TABLE chunks DROP COLUMN stage; INSERT INTO payments.chunks SELECT * FROM chunks"
    )
    while (await connection.workers())[0].leased_chunks:
        pass
