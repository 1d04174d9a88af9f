"""Workers and steps under a guard: they wait for room, and pay no batch that is run under another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from payments_async import Guard
from payments_async import client as opening
from payments_async._rate_limit.registry import LimiterRegistry
from payments_async.bulk import SharedBatch, _activity
from payments_async.bulk._runner import BatchRunner
from payments_async.bulk.steps import Done, Held, HoldReason, Wait
from payments_async.bulk.workers import WorkerProgress
from tests.support.batches import items
from tests.support.fleet import Fleet, books, posts
from tests.support.patience import until


def guard_of(most: str, window: int = 36_000) -> Guard:
    """A guard whose sum lets so much out."""
    return Guard(most={"XOF": most}, sums=[("XOF", most, window)], decimals=False, budgets="process")


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Makes the clients that follow those of another process."""
    return lambda: monkeypatch.setattr(opening, "PROCESS", LimiterRegistry())


async def under(fleet: Fleet, guard: Guard, rows: int = 9) -> Any:
    """A client under a guard, and a batch that was planned with it."""
    client = await fleet.client(guard=guard)
    async with SharedBatch.open(fleet.url, client, batch_id="june") as batch:
        await batch.load(items(rows))
        await batch.plan()
    return client


async def test_a_worker_waits_for_room_and_goes_on(fleet: Fleet) -> None:
    client = await under(fleet, guard_of("30", 1))
    seen: list[WorkerProgress] = []
    report = await fleet.run(client=client, on_progress=seen.append)
    assert (report.exit_code, report.rows, report.left_open) == (0, 9, ())
    assert posts(fleet.sandbox) == len(books(fleet.sandbox)) == 9


@pytest.mark.slow
async def test_a_run_waits_for_room_and_goes_on(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_activity, "EVERY", 0.1)
    client, seen = await fleet.client(guard=guard_of("30", 5)), list[Any]()
    async with SharedBatch.open(fleet.url, client, batch_id="june") as batch:
        await batch.load(items(9))
        report = await batch.run(seen.append)
    assert report.exit_code == 0
    waits = [each.activity for each in seen if each.activity and each.activity.why]
    assert waits[0].doing == "waiting"
    assert "row 8, XOF 8.01 is more than is left" in waits[0].why


async def test_a_worker_that_would_wait_too_long_ends(fleet: Fleet) -> None:
    client = await under(fleet, guard_of("30"))
    report = await fleet.run(client=client)
    assert (report.exit_code, report.rows) == (75, 7)
    assert report.stopped is not None
    assert "row 8, XOF 8.01 is more than is left" in report.stopped


async def test_a_step_without_room_says_when_there_may_be_some(fleet: Fleet) -> None:
    client = await under(fleet, guard_of("30"))
    steps = await fleet.steps(client=client)
    for seconds in (1.0, 3600.0):  # the first time rows were under way, which may have been refused
        end = await steps.pay("june", 1)
        assert isinstance(end.next, Wait)
        assert end.next.seconds <= seconds
        assert "row 8, XOF 8.01" in end.next.reason
    assert len(books(fleet.sandbox)) == 7
    assert fleet.held == set()


async def test_a_worker_without_the_guard_says_so_and_rests_until_it_is_recorded(
    fleet: Fleet, elsewhere: Callable[[], None]
) -> None:
    await under(fleet, guard_of("300"))
    elsewhere()
    seen: list[WorkerProgress] = []
    worker = await fleet.worker(until_idle=False, on_progress=seen.append)
    running = fleet.started(worker)
    await until(lambda: any(each.trouble for each in seen))
    assert posts(fleet.sandbox) == 0
    digest = guard_of("300").digest
    assert seen[-1].trouble == (
        f"the batch is run under guard {digest}, and this process has none: give it the same, or run "
        "`payments payouts resume --batch-id june --guard` with the one that is to hold"
    )
    async with SharedBatch.open(fleet.url, batch_id="june") as batch:
        await batch.resume(guard="")
    await until(lambda: posts(fleet.sandbox) == 9)
    worker.stop()
    assert (await running).exit_code == 0


async def test_a_worker_that_ends_when_idle_leaves_a_batch_under_another_guard(
    fleet: Fleet, elsewhere: Callable[[], None]
) -> None:
    await under(fleet, guard_of("300"))
    elsewhere()
    report = await fleet.run(client=await fleet.client(guard=guard_of("200")))
    assert (report.exit_code, report.left_open) == (0, ("june",))
    assert posts(fleet.sandbox) == 0


async def test_a_run_whose_guard_is_replaced_by_another_ends(
    fleet: Fleet, elsewhere: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    await under(fleet, guard_of("300"))
    elsewhere()
    monkeypatch.setattr(BatchRunner, "note_guard", _recorded_by_another)
    client = await fleet.client(guard=guard_of("200"))
    async with SharedBatch.open(fleet.url, client, batch_id="june") as batch:
        report = await batch.run()
    assert (report.exit_code, report.resumable) == (75, "after_change")
    assert report.stopped is not None
    assert report.stopped.startswith(
        f"the batch is run under guard {guard_of('300').digest}, and this process"
    )


async def _recorded_by_another(runner: object) -> None:
    """Record nothing: another run has recorded its own since."""


async def test_steps_under_another_guard_are_held_until_theirs_is_recorded(
    fleet: Fleet, elsewhere: Callable[[], None]
) -> None:
    await fleet.planned(9)
    elsewhere()
    client = await fleet.client(guard=guard_of("300"))
    steps = await fleet.steps(client=client)
    for end in (await steps.pay("june", 1), await steps.settle("june")):
        assert isinstance(end.next, Held)
        assert end.next.by is HoldReason.GUARD
        assert end.next.reason.startswith("the batch is run under no guard, and this process has guard ")
    async with SharedBatch.open(fleet.url, client, batch_id="june") as batch:
        await batch.plan()  # an engine does so again and again
        assert batch.header().guard == ""
        await batch.resume(guard=guard_of("300").digest)
    assert (await steps.pay("june", 1)).next == Done()
    assert (await steps.close("june")).next == Done()
