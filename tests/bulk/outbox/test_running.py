"""An outbox that is run, followed or killed: whose rows are sent, and how it ends for each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from payments_async import Guard
from payments_async.bulk import BulkError, OutboxRow, Outcome
from payments_async.events import CallEnded, PayoutRefused
from payments_async.sandbox import Sandbox
from tests.bulk.outbox.conftest import OUTBOX, App
from tests.campaigns import outbox
from tests.support.batches import ledger_now
from tests.support.desks import Desk
from tests.support.places import EITHER
from tests.support.sightings import books, lists, posts


@EITHER
async def test_rows_of_the_other_environment_are_counted_and_never_sent(
    app: App, service: Sandbox, payouts: Any, desk: Desk, place: Path | str
) -> None:
    await app.commit("order-1")
    await app.commit("live-1", "live-2", outbox=app.outbox_of("live"))
    report = await payouts.run()
    assert (report.rows, report.others, report.exit_code, report.next) == (1, 2, 0, None)
    async with desk.open(place, **OUTBOX) as looked_at:
        status = await looked_at.status()
        assert (status.rows, status.others, status.is_complete) == (1, 2, True)
        assert await looked_at.cancel_rest() == 0
    assert (await app.find("live-1")).state is Outcome.NOT_STARTED
    assert books(service) == ["order-1"]


async def test_a_live_key_needs_a_guard(app: App, desk: Desk, tmp_path: Path) -> None:
    await app.commit("live-1", outbox=app.outbox_of("live"))
    live = desk.other_client("sk_live_x", base_url="https://localhost/v1")
    async with live as client, desk.open(tmp_path / "l", client, **OUTBOX) as payouts:
        with pytest.raises(BulkError, match="with a live key give the client a guard"):
            await payouts.run()
        assert (await payouts.status()).counts["not_started"] == 1


@EITHER
async def test_what_service_or_guard_refuses_is_rejected_and_the_others_go_on(
    app: App, service: Sandbox, desk: Desk, place: Path | str
) -> None:
    service.on("payouts.create", reference="order-1").respond("http:422", times=1)
    events: list[Any] = []
    guard = Guard(most={"GHS": "20"}, decimals=False, budgets="process")
    client = desk.client(service, guard=guard, on_event=events.append)
    async with client, desk.open(place, client, **OUTBOX) as payouts:
        await app.commit("order-1", "order-2", "order-3")
        await app.commit("order-4", amount="20.01")
        report = await payouts.run()
        assert (report.stopped, report.exit_code, report.counts["created"]) == (None, 1, 2)
        by_service, by_guard = await app.find("order-1"), await app.find("order-4")
        assert {by_service.state, by_guard.state} == {Outcome.REJECTED}
        assert by_service.reason
        assert "the guard refused it, and nothing was sent (rule most)" in by_guard.reason
        ended = {each.error: each.status for each in events if isinstance(each, CallEnded) and each.error}
        assert ended == {"UnprocessableError": 422, "GuardRefused": None}
        assert [each.rule for each in events if isinstance(each, PayoutRefused)] == ["most"]
        await app.commit("order-5")
        assert (await payouts.run()).counts["created"] == 3
    async with desk.client(service) as other, desk.open(place, other, **OUTBOX) as payouts:
        await payouts.retry_failed(rejected=True)
        assert (await payouts.run()).exit_code == 0
    assert books(service) == [f"order-{number}" for number in range(1, 6)]


async def test_what_may_have_been_paid_before_there_was_a_guard_is_looked_for(
    app: App, service: Sandbox, payouts: Any, desk: Desk, place: Path | str
) -> None:
    service.on("payouts.create").respond("lost_response", times=1)
    await app.commit("order-1")
    assert (await payouts.run(for_seconds=0.1)).counts["in_doubt"] == 1
    guarded = desk.client(service, guard=Guard(most={"GHS": "5"}, decimals=False, budgets="process"))
    async with guarded, desk.open(place, guarded, **OUTBOX) as again:
        assert (await again.run()).counts["created"] == 1
    assert posts(service) == 1


async def test_a_payout_that_failed_is_found_by_its_order_and_asked_for_once_more(
    app: App, service: Sandbox, payouts: Any
) -> None:
    service.on("payouts.create", reference="order-1").outcome("fail:RECIPIENT_ERROR")
    await app.commit("order-1")
    assert (await payouts.run(wait_final=60.0)).exit_code == 1
    assert (await app.find("order-1")).status == "failed"
    await payouts.retry_failed()
    assert (await payouts.run(wait_final=60.0)).exit_code == 0
    for reference in ("order-1", "order-1~g1"):
        found = await app.find(reference)
        assert (found.reference, found.state) == ("order-1~g1", Outcome.ARRIVED)
    await app.commit("order-1")  # the same payout, still
    assert books(service) == ["order-1", "order-1~g1"]


@EITHER
async def test_a_certificate_is_of_what_was_decided_before_and_forgetting_takes_rows_alone(
    app: App, service: Sandbox, payouts: Any
) -> None:
    await app.commit("order-1", "order-2", "order-3")
    service.on("payouts.create", reference="order-3").outcome("hang")
    await payouts.run(wait_final=60.0)
    await app.commit("order-4")  # added, and not sent yet
    certificate = await payouts.reconcile()
    assert (certificate.report.rows, certificate.report.counts["not_final"]) == (3, 1)
    assert (certificate.is_clean, certificate.is_settled) == (True, False)
    before = datetime.fromtimestamp(ledger_now() + 1.0, UTC)
    assert await payouts.forget(before, dry_run=True) == await payouts.forget(before) == 2
    assert await app.find("order-1") is None
    assert (await app.find("order-3")).state is Outcome.NOT_FINAL
    assert (await payouts.facts()).certificate is not None
    certificate = await payouts.reconcile()  # which lists payouts whose rows are gone
    assert (certificate.is_clean, certificate.report.rows, certificate.findings) == (True, 1, ())
    await app.commit("order-1")  # an order that comes again is not paid again
    assert (await payouts.run()).counts["created"] == 3
    assert books(service) == [f"order-{number}" for number in range(1, 5)]


@asynccontextmanager
async def following(*batches: Any) -> AsyncIterator[None]:
    """Context in which outboxes are followed. At its end they are stopped, and have nothing left to do."""
    runs = [asyncio.ensure_future(batch.run(follow=True)) for batch in batches]
    try:
        yield
    finally:
        while not all(run.done() for run in runs):
            for batch in batches:  # again and again: it may not have begun
                batch.stop()
            await asyncio.sleep(0)
    assert [(run.result().is_complete, run.result().next) for run in runs] == [(True, None)] * len(runs)


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0)


async def found(app: App, reference: str, outcome: Outcome | None = None) -> OutboxRow:
    """What is found of a payout, once it has this outcome, or is created."""
    while True:
        row: OutboxRow = await app.find(reference)
        if row.state is outcome or (outcome is None and row.payout_id is not None):
            return row
        await asyncio.sleep(0)


@EITHER
async def test_what_is_committed_is_paid_within_a_second_and_its_failure_is_found(
    app: App, service: Sandbox, payouts: Any
) -> None:
    service.on("payouts.create", reference="order-2").outcome("fail:RECIPIENT_ERROR after=30s")
    async with following(payouts):  # before anything was ever added
        for reference in ("order-1", "order-2"):
            await app.commit(reference)
            committed = ledger_now()
            await found(app, reference)
            assert service.books.payouts(reference=reference)[0].created_at <= committed + 1.0
        assert (await found(app, "order-2", Outcome.FAILED)).reason
        await found(app, "order-1", Outcome.ARRIVED)
    assert books(service) == ["order-1", "order-2"]


async def test_a_long_reading_of_the_list_holds_no_order_up(app: App, service: Sandbox, payouts: Any) -> None:
    service.on("payouts.create", reference="order-1").outcome("hang")
    await app.commit("order-1")
    async with following(payouts):
        await found(app, "order-1")
        service.on("payouts.list").respond("slow:25s", times=None)
        await until(lambda: lists(service) > 0)
        await app.commit("order-2")
        committed = ledger_now()
        await found(app, "order-2")
        assert service.books.payouts(reference="order-2")[0].created_at <= committed + 1.0


@EITHER
async def test_two_processes_follow_one_outbox(
    app: App, service: Sandbox, payouts: Any, desk: Desk, place: Path | str
) -> None:
    async with desk.client(service, seed=1) as client, desk.open(place, client, **OUTBOX) as other:
        async with following(payouts, other):
            for number in range(20):
                await app.commit(f"order-{2 * number}", f"order-{2 * number + 1}")
            for number in range(40):
                await found(app, f"order-{number}")
        assert (await other.status()).counts["created"] == 40
    assert books(service) == sorted(f"order-{number}" for number in range(40))


@pytest.mark.slow
@pytest.mark.no_cover  # what it runs is covered without it
@EITHER
def test_each_committed_order_is_paid_once_and_no_other(place: Path | str, surface: str) -> None:
    campaign = outbox.run(place, surface, 3)
    assert campaign.problems == []
    assert campaign.kills == 3
    assert campaign.payers
