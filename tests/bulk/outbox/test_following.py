"""An outbox that is followed: what is committed is paid within a second, and the list says how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from payments_async.bulk import OutboxRow, Outcome
from payments_async.sandbox import Sandbox
from tests.bulk.outbox.conftest import OUTBOX, App
from tests.support.batches import ledger_now
from tests.support.desks import Desk
from tests.support.places import EITHER
from tests.support.sightings import books, lists


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


async def test_what_is_in_doubt_is_looked_for_in_the_list(app: App, service: Sandbox, payouts: Any) -> None:
    rule = service.on("payouts.create", reference="order-1")
    rule.respond("lost_response").respond("http:409", times=1, after=1)
    await app.commit("order-1")
    async with following(payouts):
        await found(app, "order-1")
    assert lists(service) > 0
    assert books(service) == ["order-1"]


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
