"""A blocking batch: its threads, Ctrl-C, closing, forks. What a batch does is tested in `tests/bulk`."""

from __future__ import annotations

import asyncio
import gc
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from payments_async._http.types import HTTPRequest, HTTPResponse
from payments_async.bulk import BatchFigures, BulkError, LedgerMissing
from payments_async.bulk._protocol.records import LedgerRow
from payments_async.errors import ConfigurationError
from payments_async.sandbox import Sandbox, SandboxLimits, VirtualClock
from payments_async.testing import IN_PROCESS, InProcessTransport
from payments_sync import Payments, _batch_bridge
from payments_sync._blocking_call import GRACE
from payments_sync._row_feed import GROUP
from payments_sync.bulk import PayoutBatch
from tests.support.batches import Item, calling, item, items, ledger_rows, steady_ledgers
from tests.sync.scenes import alone, interrupt_main_thread, loop_threads, note, run


@pytest.fixture(autouse=True)
def _steady() -> Iterator[None]:
    with steady_ledgers():
        yield


@pytest.fixture
def service() -> Sandbox:
    """A sandbox without limits, called in this process."""
    return Sandbox(clock=VirtualClock.frozen(), limits=SandboxLimits.off())


@pytest.fixture
def client(service: Sandbox) -> Iterator[Payments]:
    with Payments(**calling(service)) as client:
        yield client


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "l"


class Ringing:
    """A transport that calls `meanwhile` before one of its creations, and may then never send it."""

    def __init__(self, transport: Any, at: int, meanwhile: Callable[[], object]) -> None:
        self.transport, self.at, self.meanwhile = transport, at, meanwhile
        self.hangs = False
        self.seen = 0

    async def send(self, request: HTTPRequest) -> HTTPResponse:
        self.seen += request.method == "POST"
        if request.method == "POST" and self.seen == self.at:
            self.meanwhile()
            if self.hangs:
                await _never()
        answer: HTTPResponse = await self.transport.send(request)
        return answer

    async def aclose(self) -> None:
        await self.transport.aclose()


async def _never() -> None:
    await asyncio.get_running_loop().create_future()


def ring(client: Payments, at: int, meanwhile: Callable[[], object]) -> Ringing:
    """Have something happen as the client is about to send the `at`-th payout of a batch yet to be opened."""
    pipeline = client._async._pipeline
    ringing = Ringing(pipeline.transport, at, meanwhile)
    pipeline.transport = ringing
    return ringing


def rows_of(batch: PayoutBatch) -> list[LedgerRow]:
    return batch._bridge.call(ledger_rows, batch._async)


def paid_once(service: Sandbox, count: int) -> bool:
    references = [entry.reference for entry in service.books.payouts()]
    return len(references) == len(set(references)) == count


# Threads


def test_on_its_own_loop_a_batch_can_be_stopped_but_not_waited_for(
    client: Payments, service: Sandbox, ledger: Path
) -> None:
    refused: list[str] = []
    threads: set[str] = set()

    with PayoutBatch.open(ledger, client) as batch:

        def on_progress(_: object) -> None:
            threads.add(threading.current_thread().name)
            calls: list[Callable[[], object]] = [
                batch.run,
                batch.status,
                batch.reconcile,
                lambda: batch.load(items(1)),
                lambda: batch.__exit__(None, None, None),
                PayoutBatch.open(ledger).__enter__,
            ]
            for call in calls:
                with pytest.raises(ConfigurationError, match="own event loop") as caught:
                    call()
                refused.append(str(caught.value))
            batch.stop("seen enough")

        batch.load(items(450))
        report = batch.run(on_progress, concurrency=1)
        assert (report.stopped, report.exit_code) == ("seen enough", 75)
        assert len(refused) >= 6
        assert threads == {"payments-sync"}
        assert batch.run().exit_code == 0
    assert paid_once(service, 450)


def test_another_thread_stops_a_run(client: Payments, service: Sandbox, ledger: Path) -> None:
    def elsewhere() -> None:
        stopper = threading.Thread(target=batch.stop, args=("lunch",))
        stopper.start()
        stopper.join()

    ring(client, 3, elsewhere)
    with PayoutBatch.open(ledger, client) as batch:
        batch.load(items(200))
        report = batch.run(concurrency=1)
        assert report.stopped == "lunch"
        assert 3 <= report.counts["created"] < 200
        batch.stop("before a run")
        assert (batch.run().stopped, batch.run().exit_code) == ("before a run", 0)
    batch.stop("nothing is open")
    assert paid_once(service, 200)


def test_closing_a_batch_ends_another_threads_run_in_order(
    client: Payments, service: Sandbox, ledger: Path
) -> None:
    begun = threading.Event()
    reports: list[Any] = []
    ring(client, 3, begun.set)
    with PayoutBatch.open(ledger, client) as batch:
        batch.load(items(500))
        running = threading.Thread(target=lambda: reports.append(batch.run(concurrency=1)))
        running.start()
        assert begun.wait(300)
    running.join(300)
    (report,) = reports
    assert report.stopped == "the batch was closed"
    assert report.counts.get("under_way", 0) == 0
    with PayoutBatch.open(ledger, client) as batch:
        assert batch.run().exit_code == 0
    assert paid_once(service, 500)


# Rows of the caller's own


class Shop:
    """Payouts that are read as they are asked for."""

    def __init__(self, rows: Callable[[], Iterator[Item]]) -> None:
        self._rows = rows

    def __iter__(self) -> Iterator[Item]:
        return self._rows()


def test_rows_are_read_in_the_callers_thread_which_may_use_the_client_meanwhile(
    client: Payments, service: Sandbox, ledger: Path
) -> None:
    threads: set[str] = set()

    def rows() -> Iterator[Item]:
        for row in items(2 * GROUP + 5):
            threads.add(threading.current_thread().name)
            if row[0] == "row-1":
                client.payouts.list()
            yield row

    with PayoutBatch.open(ledger, client) as batch:
        assert batch.load(Shop(rows)).rows == 2 * GROUP + 5
        assert [row.row_key for row in rows_of(batch)] == [key for key, _ in items(2 * GROUP + 5)]
        assert not batch.load(rows()).is_new  # a generator too, where it need be read only once
    assert threads == {threading.main_thread().name}


@pytest.mark.parametrize("error", [LookupError("the shop is closed"), KeyboardInterrupt()])
def test_what_an_iterable_raises_reaches_the_caller_and_nothing_is_imported(
    client: Payments, ledger: Path, error: BaseException
) -> None:
    def rows() -> Iterator[Item]:
        yield item(1)
        raise error

    with PayoutBatch.open(ledger, client) as batch:
        with pytest.raises(type(error)):
            batch.load(Shop(rows))
        with pytest.raises(LedgerMissing):
            batch.status()
        assert batch.load(items(1)).is_new


# Ctrl-C


def test_ctrl_c_stops_the_run_in_order(client: Payments, service: Sandbox, ledger: Path) -> None:
    ring(client, 5, interrupt_main_thread)
    with PayoutBatch.open(ledger, client) as batch:
        batch.load(items(300))
        with pytest.raises(KeyboardInterrupt) as stopped:
            batch.run(concurrency=1)
    report = stopped.value.result  # type: ignore[attr-defined] # what the bridge adds
    assert (report.stopped, report.exit_code) == ("interrupted", 75)
    assert report.counts.get("under_way", 0) == 0
    assert 5 <= report.counts["created"] < 300
    created = report.counts["created"]
    shown, go_on = note(stopped.value).splitlines()
    assert shown == (
        f"The run was stopped in order: {300 - created} not started, {created} created. "
        "Its report is in .result."
    )
    assert go_on.startswith("To resume, run the same program again with the same ledger, input and batch id")
    assert shown_of(stopped.value) == ["run", "call_and_drain", "_run"]
    with PayoutBatch.open(ledger, client) as batch:
        assert batch.run().exit_code == 0
    assert paid_once(service, 300)


def shown_of(stopped: BaseException) -> list[str]:
    """The functions that the traceback has below the caller's own; it has no earlier exception."""
    assert stopped.__cause__ is None
    assert stopped.__suppress_context__
    return [frame.name for frame in traceback.extract_tb(stopped.__traceback__)[1:]]


def test_ctrl_c_ends_the_following_and_the_batch_stays_in_use(
    client: Payments, service: Sandbox, ledger: Path
) -> None:
    pressed = list[BatchFigures]()

    def on_progress(figures: BatchFigures) -> None:
        if figures.is_followed and not pressed:
            pressed.append(figures)
            interrupt_main_thread()

    with PayoutBatch.open(ledger, client) as batch:
        batch.load(items(3))
        with pytest.raises(KeyboardInterrupt) as stopped:
            batch.run(on_progress, wait_final=600.0)
        report = stopped.value.result  # type: ignore[attr-defined] # what the bridge adds
        assert (report.counts["created"], report.exit_code) == (3, 75)
        assert batch.run().exit_code == 0
        assert batch.reconcile().is_clean
    assert paid_once(service, 3)


def test_a_second_ctrl_c_cuts_the_run_off_and_the_next_one_resumes(
    service: Sandbox, ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = _batch_bridge._OpenBatch.stop

    def stopped_and_pressed_again(works: _batch_bridge._OpenBatch, reason: str) -> None:
        stop(works, reason)
        if reason == "interrupted":
            interrupt_main_thread()

    monkeypatch.setattr(_batch_bridge._OpenBatch, "stop", stopped_and_pressed_again)
    real_time = InProcessTransport(service)
    with Payments(service.api_key, base_url=IN_PROCESS, transport=real_time) as client:
        ring(client, 2, interrupt_main_thread).hangs = True
        with PayoutBatch.open(ledger, client) as batch:
            batch.load(items(3))
            with pytest.raises(KeyboardInterrupt) as stopped:
                batch.run(concurrency=1)
            assert "cut off" in note(stopped.value)
            assert "run the same program again" in note(stopped.value)
            assert shown_of(stopped.value) == ["run", "call_and_drain", "_run"]
            assert stopped.value.result is None  # type: ignore[attr-defined] # what the bridge adds
            assert batch.status().counts["under_way"] >= 1
    with Payments(**calling(service)) as client, PayoutBatch.open(ledger, client) as batch:
        assert batch.run().exit_code == 0
    assert paid_once(service, 3)


def test_a_run_that_does_not_stop_is_cut_off(client: Payments, ledger: Path) -> None:
    async def deaf() -> None:
        interrupt_main_thread()
        await _never()

    with PayoutBatch.open(ledger, client) as batch:
        with pytest.raises(KeyboardInterrupt) as stopped:
            batch._bridge.call_and_drain(0.05 - GRACE, deaf)
        assert "cut off" in note(stopped.value)


@pytest.mark.parametrize(
    ("error", "shown"),
    [(BulkError("no room"), "failed (no room)"), (ValueError("+22990112233"), "failed (ValueError)")],
)
def test_a_run_that_had_failed_when_it_was_interrupted_says_why(error: Exception, shown: str) -> None:
    async def failing() -> None:
        raise error

    call = _batch_bridge._StoppableCall(failing, (), {}, lambda _: None, 1.0)
    asyncio.run(alone(call))
    stopped = KeyboardInterrupt()
    call.annotate(stopped, ended=True)
    assert shown in note(stopped)


def test_a_run_that_was_interrupted_before_it_began_never_begins(client: Payments, ledger: Path) -> None:
    ran: list[int] = []

    async def begin() -> None:
        ran.append(1)

    with PayoutBatch.open(ledger, client) as batch:
        run_ = _batch_bridge._StoppableCall(begin, (), {}, lambda _: None, 1.0)
        stopped = KeyboardInterrupt()
        run_.cancel_and_wait(batch._bridge._queue(), stopped)
    assert (ran, "cut off" in note(stopped)) == ([], True)


# Opening and closing


def test_ctrl_c_while_a_batch_closes_cuts_off_what_it_waits_for(
    client: Payments, ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = _batch_bridge._OpenBatch.stop

    def pressed(works: _batch_bridge._OpenBatch, reason: str) -> None:
        stop(works, reason)
        interrupt_main_thread()

    begun, ends = threading.Event(), list[BaseException]()

    async def endless() -> None:
        begun.set()
        await _never()

    def work(batch: PayoutBatch) -> None:
        try:
            batch._bridge.call_and_drain(30.0, endless)
        except BulkError as error:
            ends.append(error)

    monkeypatch.setattr(_batch_bridge._OpenBatch, "stop", pressed)
    batch = PayoutBatch.open(ledger, client).__enter__()
    working = threading.Thread(target=work, args=(batch,))
    working.start()
    assert begun.wait(300)
    with pytest.raises(KeyboardInterrupt):
        batch.__exit__(None, None, None)
    working.join(300)
    assert "cut off" in str(ends[0])
    monkeypatch.undo()
    assert loop_threads() != []  # the client's


def test_once_forked_a_batch_refuses_and_leaves_the_parents_loop_alone(
    client: Payments, ledger: Path
) -> None:
    with PayoutBatch.open(ledger, client) as batch:
        queue = batch._bridge._queue()
        queue.closed = True  # what the fork does in the child
        for call in (batch.run, batch.__enter__):
            with pytest.raises(BulkError, match="forked while this batch was open"):
                call()
        batch.stop()
        queue.closed = False


def test_an_input_is_previewed_without_opening(client: Payments, ledger: Path) -> None:
    batch = PayoutBatch.open(ledger, client)
    assert batch.preview(Shop(lambda: iter(items(3)))).rows == 3
    assert not ledger.exists()
    with batch:
        assert batch.load(items(3)).is_new


def test_a_batch_outlives_the_closing_of_its_client(service: Sandbox, ledger: Path) -> None:
    client = Payments(**calling(service))
    with PayoutBatch.open(ledger, client) as batch:
        batch.load(items(2))
        client.close()
        assert batch.run().exit_code == 0
        client.close()
        assert len(loop_threads()) == 1
    assert loop_threads() == []
    assert paid_once(service, 2)


def test_a_batch_is_used_while_it_is_open(client: Payments, ledger: Path) -> None:
    batch = PayoutBatch.open(ledger, client)
    with pytest.raises(BulkError, match="inside its `with` block"):
        batch.load(items(1))
    with batch:
        batch.load(items(1))
        with pytest.raises(BulkError, match="open already"):
            batch.__enter__()
        assert batch.run().exit_code == 0
    with pytest.raises(BulkError, match="is not open"):
        batch.run()
    batch.__exit__(None, None, None)
    with batch:
        assert batch.status().counts["created"] == 1


def test_a_batch_that_cannot_be_opened_leaves_nothing_behind(ledger: Path) -> None:
    with pytest.raises(LedgerMissing), PayoutBatch.open(ledger):
        raise AssertionError("it was opened")
    assert loop_threads() == []


def test_a_forgotten_batch_gives_its_ledger_back(
    client: Payments, ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed, close = threading.Event(), _batch_bridge._OpenBatch.close

    async def noted(works: _batch_bridge._OpenBatch) -> None:
        await close(works)
        closed.set()

    monkeypatch.setattr(_batch_bridge._OpenBatch, "close", noted)
    batch = PayoutBatch.open(ledger, client)
    batch.__enter__()
    batch.load(items(1))
    del batch
    gc.collect()
    assert closed.wait(300)
    with PayoutBatch.open(ledger, client) as again:
        assert again.run().exit_code == 0


LEFT_OPEN = """
import tempfile
from payments_async import PayoutRequest
from payments_async.sandbox import Sandbox
from payments_async.testing import IN_PROCESS, InProcessTransport
from payments_sync import Payments
from payments_sync.bulk import PayoutBatch
from tests.sync.scenes import payout

service = Sandbox()
client = Payments(service.api_key, base_url=IN_PROCESS, transport=InProcessTransport(service))
batch = PayoutBatch.open(tempfile.mkdtemp() + "/l", client)
batch.__enter__()
print(batch.load([PayoutRequest(**payout(f"r-{number}")) for number in range(2)]).rows)
"""


def test_a_process_may_end_with_a_batch_open() -> None:
    assert run(LEFT_OPEN) == "2\n"


def test_what_only_reads_or_marks_a_batch_answers_in_blocking_code_as_well(
    client: Payments, ledger: Path
) -> None:
    with PayoutBatch.open(ledger, client, batch_id="june") as batch:
        batch.load(items(1))
        batch.pause("lunch")
        assert batch.facts().paused == "lunch"
        batch.resume()
        assert batch.run().exit_code == 0
        asked = (batch.batch_id, batch.holders(), batch.pace() >= 0, batch.causes())
    assert asked == ("june", [], True, ())
