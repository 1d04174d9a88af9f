"""What others do to a batch while it runs: a reading taken over, a key changed, rows and batches spoilt."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import create_async_engine

from payments_async import AsyncPayments
from payments_async.bulk import BulkError, LedgerMismatch, LedgerMissing, LedgerUnavailable, PayoutBatch
from payments_async.sandbox import Sandbox
from tests.support.batches import Between, item, items, ledger_now, open_at, run_rows
from tests.support.desks import Desk
from tests.support.sightings import lists, posts


class Meanwhile(Between):
    """Does something once, while the first request of a method is under way."""

    def __init__(self, client: Any, method: str, work: Callable[[], None]) -> None:
        super().__init__(client)
        self._method, self._work = method, work

    async def send(self, request: Any) -> Any:
        """The service's answer, to a request that was sent before the work was done."""
        if request.method == self._method:
            self.remove()
            self._work()
        return await super().send(request)


def change(place: Path | str, sql: str, *values: Any) -> None:
    with closing(sqlite3.connect(place)) as ledger, ledger:
        assert ledger.execute(sql, values).rowcount == 1


async def test_a_reading_that_another_process_took_over_is_left_to_it(
    service: Sandbox, batch: PayoutBatch, client: AsyncPayments, place: Path
) -> None:
    service.on("payouts.create").respond("http:409")
    service.on("payouts.list").respond("slow:25s", times=1)  # longer than a reading goes without a renewal
    until = list[float]()

    def take_over() -> None:
        until.append(ledger_now() + 50.0)
        sql = "UPDATE payments_batches SET reader = 'host-2:911', reader_until = ?"
        change(place, sql, until[0])

    await batch.load(items(1))
    Meanwhile(batch._service._client, "GET", take_over)
    assert (await batch.run()).exit_code == 0
    assert ledger_now() > until[0]
    assert posts(service) == 2


@pytest.mark.parametrize("audit", ["NULL", "'{'", "'[]'", """'{"seen": "many"}'"""])
async def test_a_reading_whose_notes_are_spoilt_begins_anew(
    service: Sandbox, batch: PayoutBatch, place: Path, audit: str
) -> None:
    await run_rows(batch, 1)
    begun = ledger_now() - 30.0
    change(
        place,
        f"UPDATE payments_batches SET reading_cursor = 'x', reading_audit = {audit}, reading_began = ?",
        begun,
    )
    certificate = await batch.reconcile()
    assert certificate.is_clean
    assert certificate.looked_at > begun + 29.0


@pytest.mark.parametrize(
    ("sql", "answer", "expected"),
    [
        ("UPDATE payments_batches SET account = 'another'", "http:500", LedgerMismatch),
        ("DELETE FROM payments_batches", "http:500", LedgerMissing),
        ("DELETE FROM payments_batches", "http:409", LedgerMissing),
    ],
)
async def test_a_batch_that_is_no_longer_this_process_s_sends_nothing_more(
    service: Sandbox, batch: PayoutBatch, place: Path, sql: str, answer: str, expected: type[Exception]
) -> None:
    service.on("payouts.create").respond(answer, times=None)
    await batch.load(items(1))
    Meanwhile(batch._service._client, "POST", lambda: change(place, sql))
    with pytest.raises(expected):
        await batch.run()
    assert posts(service) == 1


async def test_a_row_that_cannot_be_read_is_told_once_and_the_others_are_paid(
    service: Sandbox, batch: PayoutBatch, place: Path
) -> None:
    await batch.load(items(3))
    change(place, "UPDATE payments_rows SET currency = 'xof' WHERE id = 2")
    report = await batch.run(patience=300.0)
    assert len([told for told in report.unreadable if told.startswith("row 2 cannot be read")]) == 1
    assert posts(service) == 2


async def test_a_paused_batch_still_looks_for_what_is_in_doubt(service: Sandbox, batch: PayoutBatch) -> None:
    service.on("payouts.create", description="row 1").respond("lost_response").respond("http:409", after=1)
    service.on("payouts.list").respond("http:400", times=1)
    assert (await run_rows(batch, [item(1)], patience=0.0)).exit_code != 0
    await batch.pause("lunch")
    before = lists(service), posts(service)
    report = await batch.run()
    assert lists(service) > before[0]
    assert (posts(service), report.counts["created"]) == (before[1], 1)


async def test_a_total_that_nobody_confirmed_is_not_paid(desk: Desk, tmp_path: Path) -> None:
    async with (
        desk.other_client("sk_live_x", base_url="https://localhost/v1") as client,
        desk.open(tmp_path / "l", client) as batch,
    ):
        report = await run_rows(batch, 1)
    assert (report.exit_code, report.counts["not_started"]) == (75, 1)
    assert "its total is not confirmed" in report.stopped


async def test_a_ledger_that_cannot_be_reached_ends_a_reading_and_the_run(
    service: Sandbox, batch: PayoutBatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(*_: Any) -> None:
        raise LedgerUnavailable("l", "is gone")

    service.on("payouts.create").respond("http:409")
    await batch.load(items(1))
    monkeypatch.setattr("payments_async.bulk._ledger.readings.ReadingStore.take", refused)
    with pytest.raises(LedgerUnavailable, match="is gone"):
        await batch.run()


async def test_a_batch_that_another_process_has_begun_is_not_discarded(
    client: AsyncPayments, database: str
) -> None:
    engine = create_async_engine(database.replace("postgresql:", "postgresql+psycopg:"))
    async with open_at(database, client) as batch, engine.connect() as other:
        await batch.load(items(2))
        async with other.begin():  # a take, up to its commit
            await other.execute(sa.text("SELECT 1 FROM payments_batches FOR SHARE"))
            await other.execute(sa.text("UPDATE payments_rows SET first_sent = 1, state = 'IN_FLIGHT'"))
            discarding = asyncio.ensure_future(batch.discard())
            waits = sa.text("SELECT count(*) FROM pg_locks WHERE NOT granted")
            while not discarding.done() and not (await other.execute(waits)).scalar_one():
                pass
        with pytest.raises(BulkError, match="the ledger is the record of that"):
            await discarding
        assert (await batch.status()).rows == 2
    await engine.dispose()
