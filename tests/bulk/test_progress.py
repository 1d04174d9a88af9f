"""What is being done is told at least every five seconds: while rows wait, and while the list is read."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import attrs

from payments_async.bulk import Activity, BatchFigures
from payments_async.events import Event, RequestSent
from payments_async.sandbox import Sandbox
from tests.support.batches import items, runtime_of
from tests.support.desks import Desk


@attrs.define
class Listener:
    """Keeps what it is told, when, and what the status file says in that moment."""

    runtime: Any
    ledger: Path
    told: list[tuple[float, Activity]] = attrs.field(factory=list)
    said: list[dict[str, Any]] = attrs.field(factory=list)

    def __call__(self, progress: BatchFigures) -> None:
        assert progress.activity is not None
        self.told.append((self.runtime.monotonic(), progress.activity))
        self.said.append(json.loads(Path(f"{self.ledger}.status.json").read_text()))

    def assert_steady(self, began: float, ended: float) -> None:
        """Nothing was silent for longer than five seconds, neither the callback nor the file."""
        moments = [began, *(at for at, _ in self.told), ended]
        assert max(after - before for before, after in itertools.pairwise(moments)) <= 5.01
        for (at, _), said in zip(self.told, self.said, strict=True):
            assert at - (said["at"] - self.runtime.now().timestamp() + self.runtime.monotonic()) <= 5.01

    def doing(self, what: str) -> list[Activity]:
        """What was told while this was done."""
        return [activity for _, activity in self.told if activity.doing == what]


def clock_of(client: Any) -> Any:
    """The jumping clock of a client of either surface."""
    return runtime_of(getattr(client, "_async", client))


async def test_progress_says_how_many_rows_wait_why_and_until_when(
    desk: Desk, service: Sandbox, tmp_path: Path
) -> None:
    service.on("payouts.create", description="row 2").respond("http:500", times=9)
    service.on("payouts.create", description="row 3").respond("http:409")
    service.on("payouts.list").respond("slow:12s", times=1)
    async with desk.client(service) as client, desk.open(tmp_path / "l", client) as batch:
        await batch.load(items(3))
        listener, began = Listener(clock_of(client), tmp_path / "l"), clock_of(client).monotonic()
        report = await batch.run(listener)
        listener.assert_steady(began, clock_of(client).monotonic())
    assert (report.exit_code, report.activity) == (0, None)
    resting = [activity for activity in listener.doing("waiting") if activity.next_look is not None]
    again = [activity for activity in resting if "no clear answer" in (activity.why or "")]
    assert {activity.waiting for activity in resting} == {1, 2}
    assert max(activity.next_look or 0 for activity in again) <= 21.0
    assert "1 will be looked for in the service's list" in (resting[-1].why or "")
    assert all(activity.waiting for activity in listener.doing("reading"))
    kinds = {said["activity"]["doing"] for said in listener.said}
    assert kinds == {"paying", "waiting", "reading"}
    assert json.loads((tmp_path / "l.status.json").read_text())["activity"] is None


async def test_a_hanging_request_does_not_silence_the_run(
    service: Sandbox, client: Any, batch: Any, tmp_path: Path
) -> None:
    service.on("payouts.create").respond("hang")
    await batch.load(items(1))
    listener, began = Listener(clock_of(client), tmp_path / "l"), clock_of(client).monotonic()
    await batch.run(listener)
    listener.assert_steady(began, clock_of(client).monotonic())
    assert len(listener.doing("paying")) >= 5


async def test_waiting_is_said_only_while_a_row_waits(
    service: Sandbox, client: Any, batch: Any, tmp_path: Path
) -> None:
    service.on("payouts.create", description="row 3").respond("http:500", times=5)
    await batch.load(items(3))
    listener = Listener(clock_of(client), tmp_path / "l")
    await batch.run(listener)
    assert listener.told[-1][1].doing == "paying"
    await batch.run(listener, wait_final=3600.0)
    assert listener.told[-1][1].doing == "following"
    assert {activity.waiting for activity in listener.doing("waiting")} == {1}


async def test_progress_counts_waiting_rows_while_others_are_paid(
    service: Sandbox, client: Any, batch: Any, tmp_path: Path
) -> None:
    service.on("payouts.create", description="row 1").respond("http:500", times=4)
    service.on("payouts.create", description="row 2").respond("slow:29s", times=1)
    await batch.load(items(2))
    listener = Listener(clock_of(client), tmp_path / "l")
    assert (await batch.run(listener)).exit_code == 0
    waits = [activity for activity in listener.doing("paying") if activity.waiting]
    assert {activity.waiting for activity in waits} == {1}
    assert all((activity.next_look or 0.0) <= 11.0 for activity in waits)
    assert any(activity.next_look for activity in waits)


async def test_progress_says_how_much_of_the_list_was_read(
    service: Sandbox, client: Any, batch: Any, tmp_path: Path
) -> None:
    await batch.load(items(150))
    await batch.run()
    service.on("payouts.list").respond("slow:22s", times=None)
    listener, began = Listener(clock_of(client), tmp_path / "l"), clock_of(client).monotonic()
    assert (await batch.reconcile(listener)).is_clean
    listener.assert_steady(began, clock_of(client).monotonic())
    assert json.loads((tmp_path / "l.status.json").read_text())["running"] is False
    activities = listener.doing("reconciling")
    assert len(activities) == len(listener.told) >= 8
    assert {0, 100} <= {activity.listed for activity in activities}
    assert all(activity.waiting == 0 for activity in activities)


async def test_the_status_says_that_a_batch_is_reconciled_before_the_list_is_read(
    desk: Desk, service: Sandbox, tmp_path: Path
) -> None:
    said: list[tuple[bool, str]] = []

    def note(event: Event) -> None:
        if isinstance(event, RequestSent) and event.operation == "payouts.list":
            status = json.loads((tmp_path / "l.status.json").read_text())
            said.append((status["running"], status["activity"]["doing"]))

    async with desk.client(service, on_event=note) as client, desk.open(tmp_path / "l", client) as batch:
        await batch.load(items(2))
        await batch.run()
        said.clear()
        await batch.reconcile()
        assert set(said) == {(True, "reconciling")}
        status = json.loads((tmp_path / "l.status.json").read_text())
        assert (status["running"], status["activity"]) == (False, None)


async def test_figures_of_follow_says_when_the_list_is_read_next(
    client: Any, batch: Any, tmp_path: Path
) -> None:
    await batch.load(items(2))
    await batch.run()
    listener, began = Listener(clock_of(client), tmp_path / "l"), clock_of(client).monotonic()
    report = await batch.follow(3600.0, listener)
    listener.assert_steady(began, clock_of(client).monotonic())
    assert report.counts["created"] == 2
    assert listener.doing("following")
