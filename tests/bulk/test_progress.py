"""What is being done is told at least every five seconds: while rows wait, and while the list is read."""

from __future__ import annotations

import itertools
from typing import Any

import attrs

from payments_async.bulk import Activity, BatchFigures
from payments_async.sandbox import Sandbox
from tests.support.batches import items, run_rows, runtime_of


@attrs.define
class Listener:
    """Keeps what it is told, and when."""

    runtime: Any
    told: list[tuple[float, Activity]] = attrs.field(factory=list)

    def __call__(self, progress: BatchFigures) -> None:
        assert progress.activity is not None
        self.told.append((self.runtime.monotonic(), progress.activity))

    def assert_steady(self, began: float) -> None:
        """Nothing was silent for longer than five seconds."""
        moments = [began, *(at for at, _ in self.told), self.runtime.monotonic()]
        assert max(after - before for before, after in itertools.pairwise(moments)) <= 5.01

    def doing(self, what: str) -> list[Activity]:
        return [activity for _, activity in self.told if activity.doing == what]


def listener_of(client: Any) -> Listener:
    return Listener(runtime_of(getattr(client, "_async", client)))


async def test_progress_says_why_rows_wait_and_until_when(service: Sandbox, client: Any, batch: Any) -> None:
    service.on("payouts.create", description="row 2").respond("http:500", times=9)
    service.on("payouts.create", description="row 3").respond("http:409")
    service.on("payouts.list").respond("slow:12s", times=1)
    await batch.load(items(3))
    listener = listener_of(client)
    began = listener.runtime.monotonic()
    report = await batch.run(listener)
    listener.assert_steady(began)
    assert (report.exit_code, report.activity) == (0, None)
    waits = listener.doing("waiting")
    assert {activity.why for activity in waits} == {"rows have no clear answer yet"}
    assert any(activity.next_look for activity in waits)
    assert {activity.doing for _, activity in listener.told} == {
        "paying",
        "waiting",
        "reading",
        "reconciling",
    }


async def test_a_hanging_request_does_not_silence_the_run(service: Sandbox, client: Any, batch: Any) -> None:
    service.on("payouts.create").respond("hang")
    await batch.load(items(1))
    listener = listener_of(client)
    began = listener.runtime.monotonic()
    await batch.run(listener)
    listener.assert_steady(began)
    assert len(listener.doing("paying")) >= 5


async def test_progress_says_how_much_of_the_list_was_read(service: Sandbox, client: Any, batch: Any) -> None:
    await run_rows(batch, 150)
    service.on("payouts.list").respond("slow:22s", times=None)
    listener = listener_of(client)
    began = listener.runtime.monotonic()
    assert (await batch.reconcile(listener)).is_clean
    listener.assert_steady(began)
    activities = listener.doing("reconciling")
    assert len(activities) == len(listener.told) >= 8
