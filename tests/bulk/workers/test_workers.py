"""Workers of one database in one process: who pays what, and when they end."""

from __future__ import annotations

import asyncio
import json

from payments_async.bulk.workers._settings import connections
from tests.support.fleet import Fleet, books
from tests.support.patience import until
from tests.support.servers import PostgresServer


async def test_a_worker_opens_no_more_connections_than_a_database_is_checked_for(fleet: Fleet) -> None:
    await fleet.planned(200)
    count = "SELECT count(*)::int FROM pg_stat_activity WHERE datname = current_database()"
    others = fleet.query(count)[0][0]
    fleet.sandbox.on("payouts.create").respond("slow:100ms", times=None)
    fleet.started(await fleet.worker(until_idle=False, slots=3))
    await until(lambda: fleet.query(count)[0][0] == others + connections(3) - 1)  # none for rows in doubt


async def test_two_workers_pay_each_row_once_and_close_the_batch(
    fleet: Fleet, postgres: PostgresServer
) -> None:
    batch = await fleet.planned(300)
    workers = [await fleet.worker() for _ in range(2)]
    reports = await asyncio.gather(*(worker.run() for worker in workers))
    assert [(report.exit_code, report.stopped) for report in reports] == [(0, None)] * 2
    assert sum(report.rows for report in reports) == 300
    assert all(report.rows > 0 for report in reports)
    report = await batch.refresh()
    assert (report.complete, report.balanced, report.counts["created"]) == (True, True, 300)
    assert len(books(fleet.sandbox)) == len(set(books(fleet.sandbox))) == 300
    assert (await batch.check()).findings == ()
    assert (await batch.reconcile()).is_clean
    name = fleet.url.rpartition("/")[2]
    ((state,),) = postgres.query(name, "SELECT state FROM payments.batches")
    ((text,),) = postgres.query(name, "SELECT changes FROM payments.entries WHERE kind = 'root'")
    assert state == "closed"
    assert json.loads(text)["clean"] is True
    assert postgres.query(name, "SELECT count(*) FROM payments.workers") == [(0,)]
