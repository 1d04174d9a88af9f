"""Blocking workers: a batch in a database, stopped from another thread, a signal handler or by Ctrl-C."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from payments_async.sandbox import Sandbox, SandboxLimits
from payments_async.testing import IN_PROCESS, InProcessTransport
from payments_sync import Payments
from payments_sync.bulk import BulkError, SharedBatch
from payments_sync.bulk.steps import Done, Now, Steps
from payments_sync.bulk.workers import PayoutWorker, WorkerProgress, work
from tests.support.batches import items
from tests.support.fleet import BRISK, books, posts, shorten
from tests.support.payout_files import PHONE, csv_file
from tests.sync.scenes import interrupt_main_thread


@pytest.fixture(autouse=True)
def _brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten(monkeypatch.setattr, BRISK)


@pytest.fixture
def service() -> Sandbox:
    """A sandbox without limits, called in this process."""
    return Sandbox(limits=SandboxLimits.off())


@pytest.fixture
def client(service: Sandbox) -> Iterator[Payments]:
    transport = InProcessTransport(service)
    with Payments(service.api_key, base_url=IN_PROCESS, transport=transport) as client:
        yield client


def planned(database: str, client: Payments, rows: int) -> None:
    """Plan a batch for workers."""
    with SharedBatch.open(database, client, batch_id="june") as batch:
        batch.load(items(rows))
        batch.plan()


def once_paid(service: Sandbox, act: Callable[[], object]) -> threading.Thread:
    """A thread that acts as soon as a creation has arrived."""

    def watch() -> None:
        while not posts(service):
            threading.Event().wait(0.01)
        act()

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


def test_a_worker_pays_a_batch_and_closes_it(database: str, client: Payments, service: Sandbox) -> None:
    planned(database, client, 60)
    report = work(database, client, until_idle=True)
    assert (report.exit_code, report.rows, report.stopped) == (0, 60, None)
    assert len(set(books(service))) == 60
    with SharedBatch.open(database, client, batch_id="june") as batch:
        assert batch.status().complete


def test_the_steps_plan_pay_settle_and_close_a_batch(
    database: str, client: Payments, service: Sandbox, tmp_path: Path
) -> None:
    stop = threading.Event()
    with Steps(database, client, concurrency=4) as steps:
        plan = steps.plan(csv_file(tmp_path, *[PHONE] * 60), batch_id="june")
        assert (plan.chunks, plan.next) == (2, Now())
        assert steps.pay("june", 1).next == Done()
        stop.set()
        assert steps.pay("june", 2, stop=stop).next == Now()
        assert len(books(service)) == 50
        ends = [steps.pay("june", 2), steps.settle("june"), steps.close("june")]
        assert [end.next for end in ends] == [Done()] * 3
        with pytest.raises(BulkError, match="chunk must be a whole number"):
            steps.pay("june", 0)
    assert len(books(service)) == 60


def test_a_worker_is_stopped_in_order_from_another_thread(
    database: str, client: Payments, service: Sandbox
) -> None:
    planned(database, client, 60)
    service.on("payouts.create").respond("slow:100ms", times=None)
    worker = PayoutWorker(database, client, concurrency=2)
    stopper = once_paid(service, lambda: worker.stop("enough"))
    report = worker.run()
    stopper.join()
    assert (report.exit_code, report.stopped) == (0, "enough")
    assert 0 < report.rows == len(books(service)) < 60


def test_a_worker_is_stopped_from_its_own_callback(database: str, client: Payments) -> None:
    planned(database, client, 1)

    def stop(_: WorkerProgress) -> None:
        worker.stop("seen")

    worker = PayoutWorker(database, client, on_progress=stop)
    assert worker.run().stopped == "seen"


def test_a_worker_that_was_stopped_before_takes_nothing(
    database: str, client: Payments, service: Sandbox
) -> None:
    planned(database, client, 3)
    worker = PayoutWorker(database, client)
    worker.stop()
    assert (worker.run().stopped, posts(service)) == ("stopped", 0)


def test_ctrl_c_stops_a_worker_in_order(database: str, client: Payments, service: Sandbox) -> None:
    planned(database, client, 60)
    service.on("payouts.create").respond("slow:100ms", times=None)
    stopper = once_paid(service, interrupt_main_thread)
    with pytest.raises(KeyboardInterrupt) as stopped:
        PayoutWorker(database, client, concurrency=2).run()
    stopper.join()
    report: Any = stopped.value.result  # type: ignore[attr-defined] # raised by the test itself
    assert report.rows == len(books(service)) > 0
    (note,) = stopped.value.__notes__
    assert note.startswith(f"The run was stopped in order: {report.rows} rows decided. Its report is in")
