"""Running a batch: what is sent, what is learned of each answer, and what stops a run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from payments_async import AsyncPayments
from payments_async.bulk import BatchFigures, LedgerMismatch, PayoutBatch
from payments_async.sandbox import Sandbox
from tests.support.batches import (
    Between,
    TransportError,
    assert_true,
    in_process,
    item,
    items,
    ledger_rows,
    open_at,
    paid,
    runtime_of,
)
from tests.support.desks import Pay
from tests.support.places import EITHER
from tests.support.sightings import posts


async def test_progress_is_reported_after_each_commit_and_cannot_break_the_run(pay: Pay) -> None:
    told: list[BatchFigures] = []

    def hear(progress: BatchFigures) -> None:
        told.append(progress)
        raise RuntimeError("a listener's own")

    report = await pay(items(300), on_progress=hear)
    assert report.exit_code == 0
    created = [progress.counts["created"] for progress in told]
    assert created == sorted(created)
    assert created[-1] == 300


@pytest.mark.parametrize("fault", ["http:401", "http:403", "http:404"])
async def test_what_says_nothing_of_the_row_halts_the_batch_and_changes_no_row(
    service: Sandbox, pay: Pay, fault: str
) -> None:
    rows = items(300)
    service.on("payouts.create").respond(fault, times=None)
    report = await pay(rows, concurrency=4)
    assert (report.exit_code, report.resumable, report.is_complete) == (2, "after_change", False)
    assert report.counts["not_started"] + report.counts["under_way"] == 300
    assert posts(service) <= 4
    assert fault.removeprefix("http:") in (report.stopped or "")
    service.clear_rules()
    report = await pay(rows)
    assert report.exit_code == 0
    assert_true(report, service, rows)


async def test_a_429_leaves_the_row_and_waits_for_retry_after(
    service: Sandbox, client: AsyncPayments, pay: Pay
) -> None:
    service.on("payouts.create").respond("429:7", times=6)
    report = await pay(items(2), concurrency=1)
    assert sum(runtime_of(client).slept) >= 6 * 7
    assert report.exit_code == 0
    assert posts(service) == 8


async def test_an_outage_pauses_the_batch_instead_of_putting_every_row_in_doubt(
    service: Sandbox, pay: Pay
) -> None:
    rows = items(200)
    service.on("payouts.create").respond("http:503", times=200)
    report = await pay(rows, concurrency=50)
    assert report.exit_code == 0
    assert_true(report, service, rows)
    assert not any(request.operation == "payouts.list" for request in service.requests[:-2])


@pytest.mark.parametrize(("key", "told"), [(None, "replaced during the run"), ("nonsense", "malformed")])
async def test_a_key_replaced_during_a_run_halts_it(
    service: Sandbox, tmp_path: Path, key: str | None, told: str
) -> None:
    keys = [service.api_key]
    async with (
        in_process(service, api_key=lambda: keys[-1]) as client,
        PayoutBatch.open(tmp_path / "l", client) as batch,
    ):
        await batch.load(items(500))
        report = await batch.run(lambda _: keys.append(key or service.new_key()), concurrency=2)
        assert report.exit_code == (75 if key is None else 2)
        assert told in str(report.stopped)
        assert report.counts["created"] == len(service.books.payouts())
        keys.append(service.api_key)
        assert (await batch.run()).exit_code == 0


class Unplugged(Between):
    lets = 0  # posts that it lets through, before no connection is made any more

    async def send(self, request: Any) -> Any:
        if request.method == "POST":
            if not self.lets:
                raise TransportError("connect", "unplugged")
            self.lets -= 1
        return await super().send(request)


@asynccontextmanager
async def unplugged(
    service: Sandbox, place: Path | str, lets: int = 0, **options: Any
) -> AsyncIterator[PayoutBatch]:
    """A batch whose posts find no connection, after so many."""
    async with in_process(service, **options) as client:
        Unplugged(client).lets = lets
        async with open_at(place, client) as batch:
            yield batch


async def test_when_nothing_gets_out_no_new_rows_are_taken_and_none_is_in_doubt(
    service: Sandbox, client: AsyncPayments, pay: Pay
) -> None:
    unplugged = Unplugged(client)
    report = await pay(items(100), concurrency=2)
    assert "cannot be reached" in str(report.stopped)
    assert (report.exit_code, report.counts["in_doubt"]) == (75, 0)
    assert report.counts["not_started"] > 80
    unplugged.remove()
    assert (await pay(items(100))).exit_code == 0
    assert len(service.books.payouts()) == 100


@EITHER
async def test_a_batch_of_which_nothing_ever_left_is_any_keys_until_the_first_send_that_may_have_left(
    service: Sandbox, place: Path | str
) -> None:
    """Nothing was sent by proof of the transport, however often; so it is of no account yet."""
    keys, seen = [service.api_key, service.new_key(), service.new_key()], list[BatchFigures]()
    async with unplugged(service, place) as batch:
        await batch.load(items(3))
        for _ in range(2):
            assert (await batch.run(seen.append)).exit_code == 75
        (row, *_) = await ledger_rows(batch)
        shown = await batch.row(1)
        assert row.takes == row.unsent > 2
        facts = (shown.outcome, shown.sends, shown.first_sent, shown.last_sent, shown.sent_under)
        assert facts == ("not_started", 0, None, None, None)
    waits = {each.activity.why for each in seen if each.activity and each.activity.doing == "waiting"}
    assert waits == {"the service cannot be reached (connect)"}
    async with unplugged(service, place, lets=1, api_key=keys[1]) as batch:
        assert (await batch.run(seen.append, concurrency=1)).counts["created"] == 1
        shown = [await batch.row(number) for number in (1, 2, 3)]
        assert [row.first_sent for row in shown].count(None) == 2
        assert sorted(row.sends for row in shown) == [0, 0, 1]
        assert seen[-1].activity.doing == "waiting"
    for other in (keys[0], keys[2]):
        async with in_process(service, api_key=other) as client, open_at(place, client) as batch:
            with pytest.raises(LedgerMismatch, match="key fingerprint"):
                await batch.run()
    async with in_process(service, api_key=keys[1]) as client:
        assert (await paid(place, client, items(3))).exit_code == 0
    assert len(service.books.payouts()) == 3


@pytest.mark.parametrize("answer", ["http:401", "http:429", "http:422", "http:503", "lost_request"])
async def test_what_never_left_later_makes_no_send_undone_that_may_have_reached_the_service(
    service: Sandbox, tmp_path: Path, answer: str
) -> None:
    service.on("payouts.create").respond(answer, times=1)
    async with unplugged(service, tmp_path / "l", lets=1) as batch:
        await batch.load([item(1)])
        await batch.run(patience=60.0)
        if answer == "http:422":
            await batch.load([item(1, description="as the service wants it")], accept_edits=True)
        assert (await batch.run(patience=60.0)).counts["created"] == 0
        (row,) = await ledger_rows(batch)
        assert row.first_sent is not None
        assert row.unsent > 0
    async with in_process(service, api_key=service.new_key()) as client, open_at(tmp_path / "l", client) as b:
        with pytest.raises(LedgerMismatch, match="key fingerprint"):
            await b.run()
    assert service.books.payouts() == []


async def test_an_audit_shows_a_hundred_findings(client: AsyncPayments, tmp_path: Path) -> None:
    rows = [item(number, reference=f"taken-{number}") for number in range(1, 121)]
    await paid(tmp_path / "theirs", client, rows)
    async with PayoutBatch.open(tmp_path / "ours", client) as batch:
        await batch.load(rows, batch_id="another", pay_again=True)
        audit = (await batch.reconcile()).audit
    assert (audit.differing, len(audit.findings)) == (120, 100)
