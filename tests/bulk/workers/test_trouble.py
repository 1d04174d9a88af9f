"""A service that fails, a key that is refused or replaced, a damaged ledger: what a worker does then."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from payments_async import RateLimits
from payments_async._http.types import HTTPRequest, HTTPResponse, TransportError
from payments_async._runtime import SYSTEM
from payments_async.bulk import BulkError, OutcomesUnrecorded, SharedBatch
from payments_async.bulk._engine import sender
from payments_async.bulk._leasing import worker_session
from payments_async.bulk._leasing.batch_closing import BatchClosing
from payments_async.bulk._leasing.chunk_run import ChunkRun
from payments_async.bulk._ledger.postgresql import batches, granting
from payments_async.bulk._ledger.postgresql import database as driver
from payments_async.bulk._ledger.postgresql import work as work_module
from payments_async.bulk._ledger.postgresql.leased_chunks import LeasedChunks
from payments_async.bulk._ledger.postgresql.schema import dropping
from payments_async.bulk.ledger_errors import (
    LedgerBroken,
    LedgerError,
    LedgerMissing,
    LedgerNewer,
    LedgerOlder,
    LedgerUnavailable,
    RightsMissing,
)
from payments_async.bulk.steps import Done, Steps
from payments_async.bulk.workers import (
    PayoutWorker,
    WorkerProgress,
    work,
)
from payments_async.bulk.workers import _worker as worker_module
from payments_async.sandbox import Sandbox
from payments_async.testing import InProcessTransport
from tests.support.fleet import Fleet, books, disk_is_full, posts
from tests.support.patience import until
from tests.support.servers import CutProxy, PostgresServer


async def test_a_lost_service_is_waited_for_without_holding_chunks(fleet: Fleet) -> None:
    batch = await fleet.planned(10)
    down = fleet.sandbox.on("payouts.list").respond("reset", times=None)
    task = fleet.started(await fleet.worker(until_idle=False, concurrency=2))
    await until(lambda: len(fleet.entries("ended")) > 1)
    await until(lambda: not fleet.held)
    assert (posts(fleet.sandbox), task.done()) == (0, False)
    fleet.sandbox.remove_rule(down)
    await until(lambda: len(books(fleet.sandbox)) == 10)
    assert (await batch.refresh()).balanced


async def test_a_worker_that_ends_when_idle_does_not_wait_for_a_lost_service(fleet: Fleet) -> None:
    await fleet.planned(10)
    fleet.sandbox.on("payouts.list").respond("reset", times=None)
    report = await fleet.run()
    assert (report.exit_code, report.rows, fleet.held) == (75, 0, set())
    assert "no answer" in str(report.stopped)


async def test_a_refused_key_ends_the_worker_and_harms_no_batch(fleet: Fleet) -> None:
    await fleet.planned(10)
    fleet.sandbox.on("payouts.create").respond("http:401", times=None)
    report = await fleet.run(until_idle=False)
    assert (report.exit_code, report.rows) == (2, 0)
    assert "refused the API key" in str(report.stopped)
    fleet.sandbox.clear_rules()
    assert (await fleet.run()).rows == len(books(fleet.sandbox)) == 10


class NotTheService(InProcessTransport):
    """Reaches another server than the service at first: its certificate, a redirect, a 404."""

    def __init__(self, sandbox: Sandbox, answer: int | None, *, operations: str, times: int) -> None:
        """`answer`: its status; None for a refused certificate. `operations`: the method that meets it."""
        super().__init__(sandbox)
        self._answer, self._method, self.left = answer, operations, times
        self.met: list[float] = []
        """When a request met it."""

    async def send(self, request: HTTPRequest) -> HTTPResponse:
        """Answer for the other server."""
        if not self.left or request.method != self._method:
            return await super().send(request)
        self.left -= 1
        self.met.append(SYSTEM.monotonic())
        if self._answer is None:
            raise TransportError("tls", "the server's certificate was refused: certificate has expired")
        request.sent = True
        return HTTPResponse(self._answer, {"location": "https://login.example"}, b"")


ANOTHER = pytest.mark.parametrize(
    ("answer", "words"), [(None, "(tls: the server's certificate"), (302, "(HTTP 302)"), (404, "(HTTP 404)")]
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "words", "method"),
    [(None, "(tls: the server's certificate", "GET"), (302, "(HTTP 302)", "POST")],
)
async def test_another_server_at_the_address_ends_one_round_and_shows_among_the_workers(
    fleet: Fleet, answer: int | None, words: str, method: str
) -> None:
    await fleet.planned(10)
    transport = NotTheService(fleet.sandbox, answer, operations=method, times=1000)
    seen: list[WorkerProgress] = []
    worker = await fleet.worker(
        client=await fleet.client(transport=transport), until_idle=False, on_progress=seen.append
    )
    task = fleet.started(worker)

    def trouble() -> list[tuple[Any, ...]]:
        return fleet.query("SELECT trouble FROM payments.workers WHERE trouble IS NOT NULL")

    await until(lambda: bool(task.done() or trouble()))
    assert not task.done()
    assert f"something else than the service answered {words}" in trouble()[0][0]
    await until(lambda: bool(seen and seen[-1].trouble))
    until_now, said = transport.met[-1], len(seen)
    await until(lambda: len(seen) > said + 5)
    # a long rest, however long this machine takes: each other slot ends what it had begun; nothing is held
    assert len([at for at in transport.met if 0.0 < at - until_now < 30.0]) <= 2
    assert fleet.held == set()
    worker.stop()
    assert (await task).exit_code == 0


@ANOTHER
async def test_a_worker_goes_on_once_the_service_answers_again(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, answer: int | None, words: str
) -> None:
    monkeypatch.setattr(worker_module, "_LONGEST", 0.1)
    batch = await fleet.planned(10)
    transport = NotTheService(fleet.sandbox, answer, operations="GET", times=3)
    client = await fleet.client(transport=transport)
    fleet.started(await fleet.worker(client=client, until_idle=False))
    await until(lambda: fleet.query("SELECT state FROM payments.batches") == [("closed",)])
    assert (await batch.refresh()).counts["created"] == len(books(fleet.sandbox)) == 10
    await until(lambda: fleet.query("SELECT trouble FROM payments.workers") == [(None,)])


@ANOTHER
async def test_a_worker_that_ends_when_idle_is_to_be_started_again_and_a_run_is_not(
    fleet: Fleet, answer: int | None, words: str
) -> None:
    await fleet.planned(10)
    options = {"operations": "POST", "times": 1000}
    client = await fleet.client(transport=NotTheService(fleet.sandbox, answer, **options))
    report = await fleet.run(client=client)
    assert (report.exit_code, report.rows) == (75, 0)
    assert words in str(report.stopped)
    async with SharedBatch.open(fleet.url, client, batch_id="june") as batch:
        run = await batch.run()
    assert (run.exit_code, run.resumable) == (2, "after_change")
    assert words in str(run.stopped)


async def test_rows_in_doubt_are_looked_at_once_their_chunks_are_done(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "TRIES", 1)
    fleet.sandbox.on("payouts.create", description="row 7").respond("lost_response", times=1)
    batch = await fleet.planned(60)
    assert (await fleet.run()).exit_code == 0
    assert (await batch.refresh()).counts["created"] == len(books(fleet.sandbox)) == 60
    kinds = [json.loads(changes)["for"] for _, _, _, changes in fleet.entries("lease")]
    assert (kinds.count("send"), kinds.count("look"), kinds.count("close")) == (2, 1, 1)


async def test_rows_that_stay_in_doubt_are_left_for_later_and_the_worker_ends(fleet: Fleet) -> None:
    rule = fleet.sandbox.on("payouts.create", description="row 7")
    rule.respond("lost_request", times=1).respond("http:409", times=None, after=1)
    batch = await fleet.planned(20)
    worker = await fleet.run(patience=0.0)
    assert (worker.exit_code, worker.left_open) == (0, ("june",))
    report = await batch.refresh()
    assert (report.counts["in_doubt"], report.exit_code) == (1, 3)
    assert fleet.query("SELECT look_at > clock_timestamp() FROM payments.chunks WHERE chunk = 1") == [(True,)]
    assert (await fleet.run(patience=0.0)).chunks == 0  # not yet


async def test_a_worker_waits_for_the_chunk_of_one_that_may_die(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fleet.planned(10)
    fleet.sandbox.on("payouts.create").respond("slow:1h", times=1)
    doomed = fleet.started(await fleet.worker(concurrency=1, slots=1))
    await until(lambda: posts(fleet.sandbox) == 1)
    under_way = list[list[Any]]()

    async def looked(*args: Any, **options: Any) -> Any:
        under_way.append(await work_module.open_batches(*args, **options))
        return under_way[-1]

    monkeypatch.setattr(worker_module, "open_batches", looked)
    patient = fleet.started(await fleet.worker())
    await until(lambda: len(under_way) >= 2)  # it has looked, found the batch, and goes on
    assert all(under_way)
    assert not patient.done()
    doomed.cancel()
    assert (await patient).exit_code == 0
    assert len(books(fleet.sandbox)) == 10


async def test_another_key_pays_what_was_never_sent_and_no_batch_of_another_project(fleet: Fleet) -> None:
    await fleet.planned(60, "june", max_rows=10)
    await fleet.run()
    july = await fleet.planned(5, "july")
    await (await fleet.opened("june")).plan()  # the rest may be paid, by whoever sees the first rows
    client = await fleet.client(api_key=fleet.sandbox.new_key())
    report = await fleet.run(client=client)
    assert (report.exit_code, report.rows) == (0, 5)
    assert (await july.refresh()).complete
    keys = fleet.query("SELECT batch_id, cardinality(keys) FROM payments.batches ORDER BY batch_id")
    assert keys == [("july", 2), ("june", 1)]


async def test_a_key_that_cannot_be_proven_now_is_asked_for_again(fleet: Fleet) -> None:
    await fleet.planned(5)
    fleet.sandbox.on("payouts.list").respond("http:503", times=1)
    assert (await fleet.run()).rows == 5


async def test_a_damaged_batch_is_paused_and_others_go_on(fleet: Fleet) -> None:
    june, july = await fleet.planned(10, "june"), await fleet.planned(11, "july")
    (batch,) = fleet.query("SELECT batch FROM payments.batches WHERE batch_id = 'june'")[0]
    fleet.query(f"UPDATE payments.rows_{batch:016x} SET body_hash = 'other' WHERE number = 3")
    assert (await fleet.run()).exit_code == 0
    assert (await july.refresh()).complete
    report = await june.refresh()
    assert str(report.stopped).startswith("paused: ")
    assert "the ledger is damaged" in str(report.stopped)


async def test_a_chunk_that_cannot_be_read_pauses_its_batch(fleet: Fleet) -> None:
    june = await fleet.planned(10, "june")
    (batch,) = fleet.query("SELECT batch FROM payments.batches")[0]
    fleet.query(f"UPDATE payments.rows_{batch:016x} SET amount = 'x' WHERE number = 3")
    report = await fleet.run()
    assert (report.rows, report.exit_code, fleet.held) == (0, 0, set())
    assert str((await june.refresh()).stopped).startswith("paused: ")


@pytest.mark.parametrize(
    "damage",
    [
        "payments.chunks SET totals = 'x' WHERE chunk = 1",
        "payments.chunks SET totals = 'x' WHERE chunk = 0",
        "payments.batches SET rules = 'x' WHERE true",
        "payments.batches SET totals = 'x' WHERE true",
        "payments.batches SET store = 'x' WHERE true",
    ],
)
async def test_a_batch_whose_records_cannot_be_read_is_paused_by_name_and_others_go_on(
    fleet: Fleet, damage: str
) -> None:
    await fleet.planned(60, "june")
    july = await fleet.planned(11, "july")
    number = "(SELECT batch FROM payments.batches WHERE batch_id = 'june')"
    fleet.query(f"UPDATE {damage} AND batch = {number}")
    assert (await fleet.run()).exit_code == 0
    assert (await july.refresh()).complete
    ((state, reason),) = fleet.query("SELECT state, reason FROM payments.batches WHERE batch_id = 'june'")
    assert state == "paused"
    assert "batch june: " in reason
    assert "cannot be read" in reason


@pytest.mark.parametrize(
    ("form", "error", "told"),
    [
        (1, LedgerOlder, "batch june: its form is number 1, and this version works with 5"),
        (6, LedgerNewer, "batch june: its form is number 6, and this version knows up to 5"),
    ],
)
async def test_a_batch_of_another_protocol_is_opened_by_nobody_and_gets_no_lease(
    fleet: Fleet, form: int, error: type[LedgerError], told: str
) -> None:
    june, july = await fleet.planned(10, "june"), await fleet.planned(11, "july")
    fleet.query(f"UPDATE payments.batches SET schema = {form} WHERE batch_id = 'june'")
    report = await fleet.run()
    assert (report.exit_code, report.rows) == (0, 11)
    assert (await july.refresh()).complete
    with pytest.raises(error, match=told):
        await june.refresh()
    with pytest.raises(error):
        await fleet.run(batch_id="june")


async def test_a_batch_that_is_discarded_after_its_chunk_was_granted_stops_no_worker(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fleet.planned(10, "june")
    july = await fleet.planned(11, "july")
    run = ChunkRun.run

    async def discarding(self: ChunkRun) -> None:
        if self.leased_chunks == (("june", 1),):
            (number,) = fleet.query("SELECT batch FROM payments.batches WHERE batch_id = 'june'")[0]
            fleet.query(dropping(number))
            for table in ("chunks", "batches"):
                fleet.query(f"DELETE FROM payments.{table} WHERE batch = {number}")
        return await run(self)

    monkeypatch.setattr(ChunkRun, "run", discarding)
    report = await fleet.run()
    assert (report.exit_code, report.rows) == (0, 11)
    assert (await july.refresh()).complete


async def test_a_worker_adds_up_no_figures_of_batches(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = await fleet.planned(60)
    monkeypatch.delattr(batches, "listed")
    assert (await fleet.run(batch_id="june")).rows == 60
    assert isinstance((await fleet.pay(1)).next, Done)
    assert (await batch.refresh()).complete


async def test_a_batch_is_not_closed_while_the_list_cannot_be_read(fleet: Fleet) -> None:
    await fleet.planned(10)
    good = fleet.sandbox.on("payouts.list").respond("http:503", times=None, after=1)
    report = await fleet.run()
    assert (report.rows, report.exit_code) == (10, 75)
    assert fleet.query("SELECT state FROM payments.batches") == [("open",)]
    assert fleet.query("SELECT look_at > clock_timestamp() FROM payments.chunks WHERE chunk = 0") == [(True,)]
    fleet.sandbox.remove_rule(good)
    fleet.query("UPDATE payments.chunks SET look_at = NULL")
    assert (await fleet.run()).exit_code == 0
    assert fleet.query("SELECT state FROM payments.batches") == [("closed",)]


async def test_a_batch_that_was_closed_can_be_closed_again_at_once_after_a_retry(fleet: Fleet) -> None:
    closing = "SELECT state, look_at FROM payments.batches JOIN payments.chunks USING (batch) WHERE chunk = 0"
    fleet.sandbox.on("payouts.create").outcome("fail:RECIPIENT_ERROR immediate")
    batch = await fleet.planned(10)
    await fleet.run()
    assert fleet.query(closing) == [("closed", None)]
    assert len((await batch.retry_failed()).rows) == 10
    report = await fleet.run()
    assert (report.rows, report.left_open) == (10, ())
    assert fleet.query(closing) == [("closed", None)]


async def test_a_complete_batch_that_is_not_closed_yet_is_work(fleet: Fleet) -> None:
    await fleet.planned(10)
    assert isinstance((await fleet.pay(1)).next, Done)
    fleet.query("UPDATE payments.chunks SET look_at = clock_timestamp() + interval '2 s' WHERE chunk = 0")
    report = await fleet.run()
    assert fleet.query("SELECT state FROM payments.batches") == [("closed",)]
    assert (report.exit_code, report.chunks, report.left_open) == (0, 1, ())


async def test_a_worker_beside_a_scheduler_ends_when_the_batch_is_closed(fleet: Fleet) -> None:
    await fleet.planned(60)
    fleet.sandbox.on("payouts.create").respond("slow:100ms", times=None)
    worker = fleet.started(await fleet.worker())
    for chunk in (1, 2):
        await fleet.pay(chunk)
    assert (await worker).left_open == ()
    assert fleet.query("SELECT state FROM payments.batches") == [("closed",)]


async def test_a_closing_is_broken_off_when_the_worker_is_stopped(fleet: Fleet) -> None:
    await fleet.planned(10)
    fleet.sandbox.on("payouts.list").respond("slow:20s", times=None, after=1)
    worker = await fleet.worker(until_idle=False)
    task = fleet.started(worker)
    await until(lambda: fleet.held == {0})
    worker.stop()
    assert (await task).exit_code == 0
    assert fleet.held == set()
    assert fleet.query("SELECT state FROM payments.batches") == [("open",)]


async def unrecording(fleet: Fleet, patch: pytest.MonkeyPatch, folder: Path) -> PayoutWorker:
    """A worker whose outcomes can be recorded nowhere: not in the database, nor in its folder."""
    folder.mkdir()
    worker = await fleet.worker(folder=folder)
    folder.rmdir()
    patch.setattr(LeasedChunks, "record", disk_is_full)
    return worker


@pytest.mark.usefixtures("brief_leases")
async def test_outcomes_that_can_be_written_nowhere_are_raised(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = await fleet.planned(10)
    with monkeypatch.context() as patch, pytest.raises(OutcomesUnrecorded) as caught:
        await (await unrecording(fleet, patch, tmp_path / "gone")).run()
    assert len(caught.value.outcomes) == len(books(fleet.sandbox)) > 0
    assert (await fleet.run()).exit_code == 0
    assert (await batch.refresh()).counts["created"] == len(books(fleet.sandbox)) == 10


async def test_outcomes_that_can_be_written_nowhere_are_raised_although_another_slot_failed_too(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def failing(self: ChunkRun) -> None:
        if ("june", 2) not in self.leased_chunks:
            return await run(self)
        await until(lambda: posts(fleet.sandbox))
        raise ZeroDivisionError

    await fleet.planned(60)
    worker, run = await unrecording(fleet, monkeypatch, tmp_path / "gone"), ChunkRun.run
    monkeypatch.setattr(ChunkRun, "run", failing)
    with pytest.raises(OutcomesUnrecorded) as caught:
        await worker.run()
    assert isinstance(caught.value.__context__, ZeroDivisionError)
    assert len(caught.value.outcomes) == len(books(fleet.sandbox)) > 0


async def test_without_tables_there_is_nothing_to_work_on(fleet: Fleet) -> None:
    with pytest.raises(LedgerMissing, match="holds no ledger's tables"):
        await work(fleet.url, await fleet.client())


async def test_a_batch_that_is_not_there_is_an_error(fleet: Fleet) -> None:
    await fleet.planned(1)
    with pytest.raises(LedgerMissing, match="july: there is no such batch"):
        await work(fleet.url, await fleet.client(), batch_id="july")


async def test_only_the_named_batch_is_worked_on(fleet: Fleet) -> None:
    await fleet.planned(10, "june")
    july = await fleet.planned(5, "july")
    assert (await fleet.run(batch_id="july")).rows == len(books(fleet.sandbox)) == 5
    assert (await july.refresh()).complete


async def test_without_a_clock_that_counts_suspension_a_worker_takes_no_lease(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fleet.planned(1)
    client = await fleet.client()
    monkeypatch.setattr(client._internal.runtime, "boottime", lambda: None)
    with pytest.raises(BulkError, match="no clock that counts while it is suspended"):
        await work(fleet.url, client)


async def test_progress_names_the_chunks_that_are_held_and_cannot_break_the_work(fleet: Fleet) -> None:
    await fleet.planned(60)
    fleet.sandbox.on("payouts.create").respond("slow:100ms", times=None)
    seen: list[WorkerProgress] = []

    def note(progress: WorkerProgress) -> None:
        seen.append(progress)
        raise ValueError

    report = await fleet.run(on_progress=note, concurrency=8)
    assert {place for progress in seen for place in progress.leased_chunks} >= {("june", 1), ("june", 2)}
    assert [progress.rows for progress in seen] == sorted(progress.rows for progress in seen)
    assert {progress.worker for progress in seen} == {report.worker}


@pytest.mark.parametrize(
    ("module", "where", "error"),
    [
        (worker_session, "renew", ZeroDivisionError()),
        (worker_session, "renew", LedgerBroken("the database", "failed")),
        (granting, "grant", ZeroDivisionError()),
    ],
)
async def test_a_fault_of_ours_or_of_the_database_ends_the_worker_and_is_raised(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, module: ModuleType, where: str, error: Exception
) -> None:
    await fleet.planned(60)
    found, calls = getattr(module, where), []

    async def broken(*args: Any, **options: Any) -> Any:
        calls.append(args)
        if len(calls) > (3 if module is worker_session else 1):
            raise error
        return await found(*args, **options)

    fleet.sandbox.on("payouts.create").respond("slow:100ms", times=None)
    monkeypatch.setattr(module, where, broken)
    with pytest.raises(type(error)):
        await fleet.run(concurrency=4, until_idle=False)
    monkeypatch.undo()
    await until(lambda: not fleet.held)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"slots": 0}, "slots must be a whole number, 1 or more"),
        ({"concurrency": 0}, "concurrency must be a whole number, 1 or more"),
        ({"patience": -1}, "patience must be a number of seconds"),
        ({"drain": float("inf")}, "drain must be a number of seconds"),
        ({"batch_id": "x\n"}, "batch_id must be of printable characters"),
        ({"folder": "/nowhere"}, "folder: /nowhere is not a folder"),
    ],
)
async def test_options_are_checked_at_once(fleet: Fleet, options: dict[str, Any], words: str) -> None:
    with pytest.raises(BulkError, match=words):
        PayoutWorker(fleet.url, await fleet.client(), **options)


async def test_a_cancelled_worker_leaves_rows_to_others(fleet: Fleet) -> None:
    await fleet.planned(30)
    fleet.sandbox.on("payouts.create").respond("slow:100ms", times=None)
    task = fleet.started(await fleet.worker(concurrency=4))
    await until(lambda: posts(fleet.sandbox) > 4)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await fleet.run()).exit_code == 0
    assert len(books(fleet.sandbox)) == 30


@pytest.mark.slow
async def test_a_chunk_that_is_cancelled_without_its_database_ends_as_cancelled(
    fleet: Fleet, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "PATIENCE", 2.0)
    await fleet.planned(1)
    fleet.sandbox.on("payouts.create").respond("slow:30s", times=None)
    with CutProxy(postgres.address) as proxy:
        url = postgres.url(fleet.url.rpartition("/")[2], port=proxy.port)
        own_rate = await fleet.client(limits=RateLimits().share(1))
        async with Steps(url, own_rate, drain=0.0) as steps:
            task = asyncio.ensure_future(steps.pay("june", 1))
            await until(lambda: posts(fleet.sandbox))
            proxy.cut(reset=True)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task


async def test_a_closing_that_is_cancelled_ends_before_its_connection(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, found = asyncio.Event(), list[bool]()

    async def closing(self: BatchClosing) -> None:
        try:
            began.set()
            await asyncio.Event().wait()
        finally:
            query = asyncio.ensure_future(asyncio.to_thread(fleet.query, "SELECT pg_sleep(0.5)"))
            while not query.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.shield(query)
            found.append(self._holder.database._closed)

    await fleet.planned(1)
    monkeypatch.setattr(BatchClosing, "_close", closing)
    task = fleet.started(await fleet.worker())
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert found == [False]


@pytest.mark.parametrize("module", ["_leasing.worker_session", "workers._worker"])
async def test_a_missing_extra_is_named(fleet: Fleet, monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    monkeypatch.setitem(sys.modules, f"payments_async.bulk.{module}", None)
    with pytest.raises(ImportError, match=r'pip install "payments-sdk\[bulk,machines\]"$'):
        await work(fleet.url, await fleet.client())


@pytest.mark.parametrize(
    ("error", "code"),
    [(LedgerUnavailable("the database", "cannot be reached"), 75), (RightsMissing("the database", ()), 2)],
)
async def test_a_database_that_stays_away_or_forbids_the_work_ends_the_worker(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, error: LedgerError, code: int
) -> None:
    async def failed(_: ChunkRun) -> None:
        raise error

    await fleet.planned(3)
    monkeypatch.setattr(ChunkRun, "run", failed)
    assert (await fleet.run()).exit_code == code


async def test_a_database_that_is_lost_while_a_key_is_proven_ends_the_worker(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lost(*_: object) -> None:
        raise LedgerUnavailable("the database", "cannot be reached")

    await fleet.planned(3)
    monkeypatch.setattr(worker_session, "require_place", lost)
    report = await fleet.run(client=await fleet.client(api_key=fleet.sandbox.new_key()))
    assert (report.exit_code, report.rows) == (75, 0)


async def test_a_closing_that_is_stopped_before_it_begins_closes_nothing(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = BatchClosing.run

    async def stopped(closing: BatchClosing) -> None:
        closing.stopping.drain("stopped")
        return await run(closing)

    await fleet.planned(1)
    monkeypatch.setattr(BatchClosing, "run", stopped)
    assert (await fleet.run()).rows == 1
    assert fleet.query("SELECT state FROM payments.batches") == [("open",)]
    assert fleet.held == set()
