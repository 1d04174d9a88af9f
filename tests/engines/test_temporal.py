"""Batches on Temporal, against its real server and worker processes that are killed, stopped and cut off."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import pytest_asyncio
from temporalio import activity
from temporalio.client import (
    Client,
    ScheduleBackfill,
    ScheduleOverlapPolicy,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
)
from temporalio.exceptions import CancelledError, WorkflowAlreadyStartedError
from temporalio.service import RPCError
from temporalio.worker import Replayer, Worker

from payments_async import AsyncPayments
from payments_async._cli.demo.servers import TemporalServer
from payments_async.bulk import BulkError
from payments_async.bulk.engines.temporal import Payroll, PayrollWorkflow, nightly, payroll_worker
from tests.engines.harness import AWAY, KILLED, ROOT, Program, Scene

PROGRAM = "examples/engines/temporal/temporal_payroll.py"
QUEUE = "payroll"
LONG = 80
"""Events after which the server asks for another history; its own figure is 4,096."""
FIGURES = {"done": 2, "rows": {"in_doubt": 0}, "sums": {"XOF": {"arrived": "5.00"}}}
SHOWN = {
    "batch_id": "june",
    "rows": 2,
    "done": 0,
    "in_doubt": 0,
    "asked": {"XOF": "5.00"},
    "arrived": {},
    **dict.fromkeys(("held", "answer", "clean")),
}
"""The progress of an earlier release's workflow."""
Run = WorkflowHandle[PayrollWorkflow, dict[str, Any]]
pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TemporalServer]:
    """One server for the session."""
    shorter = ("--dynamic-config-value", f"limit.historyCount.suggestContinueAsNew={LONG}")
    searched = [f"--search-attribute={name}" for name in ("PayrollBatch=Keyword", "PayrollRowsDone=Int")]
    other_type = "--search-attribute=PayrollRows=Keyword"
    folder = tmp_path_factory.mktemp("temporal")
    with TemporalServer(folder, "--headless", *shorter, *searched, other_type) as server:
        yield server


@pytest_asyncio.fixture
async def temporal(server: TemporalServer) -> AsyncIterator[Client]:
    """A client of the server. Workflows that a test has left running are terminated."""
    while True:
        try:
            client = await Client.connect(server.address)
            break
        except RuntimeError:  # it is still starting
            await asyncio.sleep(0.2)
    yield client
    async for run in client.list_workflows('ExecutionStatus = "Running"'):
        await client.get_workflow_handle(run.id).terminate()


@pytest.fixture
def worker(scene: Scene, server: TemporalServer) -> Callable[..., Program]:
    """Starts a worker process, with environment variables."""
    return lambda **more: scene.start(PROGRAM, "worker", TEMPORAL_ADDRESS=server.address, **more)


async def started(temporal: Client, scene: Scene, rows: int, name: str = "june", **options: Any) -> Run:
    """A workflow that pays a new file."""
    return await begun(temporal, Payroll(str(scene.file(rows, name)), name, **options))


async def begun(temporal: Client, payroll: Payroll, name: str | None = None) -> Run:
    """A workflow that pays a file."""
    return await temporal.start_workflow(
        PayrollWorkflow.run, payroll, id=name or payroll.batch_id, task_queue=QUEUE
    )


async def until_shown(run: Run, shows: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    """Wait until the workflow shows something."""
    while (await run.describe()).status is WorkflowExecutionStatus.RUNNING:
        with contextlib.suppress(RPCError):  # no worker answers yet
            if (progress := await run.query(PayrollWorkflow.progress)) and shows(progress):
                return progress
        await asyncio.sleep(0.2)
    raise AssertionError(f"it has ended, and shows {await run.query(PayrollWorkflow.progress)}")


@KILLED
async def test_killed_workers_leave_a_batch_that_is_paid_exactly(
    temporal: Client,
    server: TemporalServer,
    scene: Scene,
    worker: Callable[..., Program],
    rows: int,
    kills: int,
) -> None:
    scene.slow(0.5)
    run = await started(temporal, scene, rows)
    workers = [worker(), worker()]
    for number in range(1, kills + 1):
        await scene.until_paid(number * rows // (kills + 2))
        workers.pop(0).kill()
        workers.append(worker())
    progress = await run.result()
    assert (progress["rows"], progress["done"], progress["in_doubt"]) == (rows, rows, 0)
    assert (progress["clean"], progress["arrived"]) == (True, progress["asked"])
    await scene.judge({"june": rows}, server.store)
    stored = b"".join(file.read_bytes() for file in server.store.parent.glob(f"{server.store.name}*"))
    assert b"june.csv" in stored  # what is stored can be read, so that a secret would be seen
    await Replayer(workflows=[PayrollWorkflow]).replay_workflow(await run.fetch_history())


async def test_many_chunks_are_paid_by_20_and_in_several_histories(
    temporal: Client, server: TemporalServer, scene: Scene, worker: Callable[..., Program]
) -> None:
    run = await started(temporal, scene, 400)
    worker(ENGINE_CHUNK="4")
    await scene.until_paid(1)
    pending = (await run.describe()).raw_description.pending_activities
    assert len(pending) <= 20
    assert (await run.result())["done"] == 400
    last = (await temporal.get_workflow_handle("june").describe()).run_id
    assert last != run.first_execution_run_id
    for name in (last, run.first_execution_run_id):
        history = await temporal.get_workflow_handle("june", run_id=name).fetch_history()
        await Replayer(workflows=[PayrollWorkflow]).replay_workflow(history)
    assert scene.query("SELECT chunks FROM payments.batches") == [(100,)]
    await scene.judge({"june": 400}, server.store)


@pytest.mark.brief
@pytest.mark.case("delivered twice")
async def test_two_workflows_of_one_batch_pay_it_once(
    temporal: Client, server: TemporalServer, scene: Scene, worker: Callable[..., Program]
) -> None:
    scene.slow(0.2)
    first = await started(temporal, scene, 400)
    payroll = Payroll(str(scene.folder / "june.csv"), "june")
    second = await begun(temporal, payroll, "june-again")
    with pytest.raises(WorkflowAlreadyStartedError):
        await begun(temporal, payroll)
    workers = [worker(), worker()]
    for run in (first, second):
        assert (await run.result())["done"] == 400
    assert (await (await begun(temporal, payroll, "june-later")).result())["done"] == 400
    assert all(program.process.poll() is None for program in workers)
    await scene.judge({"june": 400}, server.store)


@pytest.mark.brief
@pytest.mark.case("SIGTERM")
async def test_a_worker_that_is_terminated_records_what_is_under_way(
    temporal: Client, server: TemporalServer, scene: Scene, worker: Callable[..., Program]
) -> None:
    scene.slow(1.0)
    run, one = await started(temporal, scene, 600), worker()
    await scene.until_paid(1)
    one.terminate()
    assert await one.ended() == 0
    state, unsent, open_rows = scene.state()
    assert (state, unsent > 0, open_rows) == ("open", True, 0)
    worker()
    assert (await run.result())["done"] == 600
    await scene.judge({"june": 600}, server.store)


@pytest.mark.case("cancel")
async def test_a_cancelled_workflow_leaves_nothing_in_doubt_and_can_be_started_again(
    temporal: Client, server: TemporalServer, scene: Scene, worker: Callable[..., Program]
) -> None:
    scene.slow(1.0)
    run = await started(temporal, scene, 600)
    worker()
    await scene.until_paid(1)
    await run.cancel()
    with pytest.raises(WorkflowFailureError) as caught:
        await run.result()
    assert isinstance(caught.value.cause, CancelledError)
    state, unsent, open_rows = scene.state()
    assert (state, unsent > 0, open_rows) == ("open", True, 0)
    again = await begun(temporal, Payroll(str(scene.folder / "june.csv"), "june"))
    assert (await again.result())["done"] == 600
    await scene.judge({"june": 600}, server.store)


@pytest.mark.case("job lost")
async def test_a_terminated_workflow_is_made_good_by_another(
    temporal: Client, server: TemporalServer, scene: Scene, worker: Callable[..., Program]
) -> None:
    scene.slow(0.5)
    run = await started(temporal, scene, 400)
    worker()
    await scene.until_paid(50)
    await run.terminate("lost")
    again = await begun(temporal, Payroll(str(scene.folder / "june.csv"), "june"))
    assert (await again.result())["done"] == 400
    await scene.judge({"june": 400}, server.store)


@pytest.mark.case("pause, resume")
async def test_a_pause_holds_the_workflow_which_shows_it(
    temporal: Client, server: TemporalServer, scene: Scene, worker: Callable[..., Program]
) -> None:
    scene.slow(1.0)
    run = await started(temporal, scene, 600)
    worker(PAYROLL_PAGE="https://payroll.test/{batch_id}")
    await scene.until_paid(1)
    await run.signal(PayrollWorkflow.pause)
    assert (await until_shown(run, lambda shown: shown["held"]))["held"] == "paused"
    details = str(await run.query("__temporal_workflow_metadata"))
    assert "Held: paused" in details
    assert "of 600 rows done" in details
    assert "Asked: XOF 180,306.00" in details
    assert "[Page of the batch](https://payroll.test/june)" in details
    await scene.until_state("paused")
    await scene.until(lambda: not scene.state()[2])
    paid = scene.paid
    await asyncio.sleep(45)  # the ledger is asked every 20 s whether the pause has ended
    assert scene.paid == paid < 600
    await run.signal(PayrollWorkflow.resume)
    assert (await run.result())["held"] is None
    searched = {pair.key.name: pair.value for pair in (await run.describe()).typed_search_attributes}
    assert {name: value for name, value in searched.items() if name.startswith("Payroll")} == {
        "PayrollBatch": "june",
        "PayrollRowsDone": 600,
    }
    await scene.judge({"june": 600}, server.store)


async def test_the_rest_of_a_batch_is_cancelled(
    temporal: Client, scene: Scene, worker: Callable[..., Program]
) -> None:
    scene.slow(1.0)
    run = await started(temporal, scene, 600)
    worker()
    await scene.until_paid(1)
    await run.signal(PayrollWorkflow.pause)
    await until_shown(run, lambda shown: shown["held"])
    await run.signal(PayrollWorkflow.cancel_rest)
    await run.signal(PayrollWorkflow.resume)
    assert (await run.result())["done"] == 600
    assert scene.state() == ("closed", 0, 0)
    assert 0 < scene.paid < 600


async def test_a_total_that_differs_is_held_until_the_right_one_is_confirmed(
    temporal: Client, server: TemporalServer, scene: Scene, worker: Callable[..., Program]
) -> None:
    run = await started(temporal, scene, 100, confirm_total={"XOF": "7"})
    worker()
    shown = await until_shown(run, lambda shown: shown["held"])
    assert "XOF 7 was confirmed, and the batch comes to XOF 5,051.00" in shown["held"]
    for wrong, answer in (({"XOF": "8"}, "XOF 8 was confirmed"), ({"XOF": "eight"}, "must be exact")):
        await run.signal(PayrollWorkflow.confirm, wrong)
        await until_shown(run, lambda shown, answer=answer: answer in (shown["answer"] or ""))
    assert scene.paid == 0
    await run.signal(PayrollWorkflow.confirm, {"XOF": "5051"})
    assert (await run.result())["asked"] == {"XOF": "5051.00"}
    await scene.judge({"june": 100}, server.store)


async def test_rows_that_the_stop_rules_hold_back_are_paid_once_an_operator_lets_them(
    temporal: Client, server: TemporalServer, scene: Scene, worker: Callable[..., Program]
) -> None:
    run = await started(temporal, scene, 400, max_rows=150)
    worker()
    shown = await until_shown(run, lambda shown: shown["held"])
    assert (shown["held"], scene.paid) == ("the stop rules let no further row be taken", 150)
    assert shown["done"] == 150
    await run.signal(PayrollWorkflow.cancel_rest)
    assert (await run.result())["done"] == 400
    assert (scene.state(), scene.paid) == (("closed", 0, 0), 150)


@pytest.mark.case("rows in doubt")
async def test_rows_in_doubt_are_settled_at_the_end(
    temporal: Client, server: TemporalServer, scene: Scene, worker: Callable[..., Program]
) -> None:
    for row in (7, 107, 207):
        scene.sandbox.on("payouts.create", description=f"row {row}").respond("reset", times=6)
    run = await started(temporal, scene, 300)
    worker()
    await until_shown(run, lambda shown: shown["in_doubt"])
    assert (await run.result())["in_doubt"] == 0
    await scene.judge({"june": 300}, server.store)


@AWAY
async def test_a_database_or_a_service_that_is_away_is_waited_for(
    temporal: Client, server: TemporalServer, scene: Scene, worker: Callable[..., Program], line: str
) -> None:
    scene.slow(1.0)
    run = await started(temporal, scene, 600)
    worker()
    await scene.until_paid(100)
    getattr(scene, line).cut()
    await asyncio.sleep(45)
    getattr(scene, line).heal()
    assert (await run.result())["done"] == 600
    await scene.judge({"june": 600}, server.store)


@pytest.mark.case("stopped for 30 s")
async def test_a_worker_that_was_stopped_beyond_its_leases_pays_nothing_twice(
    temporal: Client, server: TemporalServer, scene: Scene, worker: Callable[..., Program]
) -> None:
    scene.slow(1.0)
    run, one = await started(temporal, scene, 600), worker()
    await scene.until_paid(1)
    one.signal(signal.SIGSTOP)
    worker()
    await asyncio.sleep(40)
    one.signal(signal.SIGCONT)
    assert (await run.result())["done"] == 600
    await scene.judge({"june": 600}, server.store)


@pytest.mark.case("two batches")
async def test_two_batches_are_paid_at_once_and_the_short_one_does_not_wait(
    temporal: Client, server: TemporalServer, scene: Scene, worker: Callable[..., Program]
) -> None:
    scene.slow(2.0)
    long = await started(temporal, scene, 4000)
    worker()
    await scene.until_paid(1)
    short = await started(temporal, scene, 300, "july")
    await scene.until(lambda: scene.state("july")[1:] == (0, 0) and scene.state("july")[0] != "")
    assert scene.state("june")[1] > 0  # it has not waited for the long one
    assert (await short.result())["done"] == 300
    worker()
    assert (await long.result())["done"] == 4000
    await scene.judge({"june": 4000, "july": 300}, server.store)


@pytest.mark.case("schedule")
async def test_a_schedule_names_the_batch_by_its_own_time(
    temporal: Client, server: TemporalServer, scene: Scene, worker: Callable[..., Program]
) -> None:
    now = datetime.now(UTC)
    zone = next(  # one in which it is another day
        name
        for name in ("Pacific/Kiritimati", "Pacific/Pago_Pago")
        if now.astimezone(ZoneInfo(name)).date() != now.date()
    )
    at = (now + timedelta(seconds=75)).astimezone(ZoneInfo(zone))
    past = datetime(2026, 3, 5, at.hour, at.minute, tzinfo=ZoneInfo(zone))
    days = {f"payroll-{day.date()}": day.date().isoformat() for day in (at, past)}
    for day in days.values():
        path = scene.file(100, day)
        (scene.folder / f"{day}.total").write_text(f"XOF {sum(scene.asked(day))}\n")
        assert path.stem == day
    schedule = nightly(
        file=f"{scene.folder}/{{date}}.csv",
        batch_id="payroll-{date}",
        confirm_from=f"{scene.folder}/{{date}}.total",
        hour=at.hour,
        minute=at.minute,
        zone=zone,
    )
    handle = await temporal.create_schedule("nightly", schedule)
    try:
        worker()
        minute, overlap = timedelta(minutes=1), ScheduleOverlapPolicy.ALLOW_ALL
        await handle.backfill(ScheduleBackfill(past - minute, past + minute, overlap))
        await scene.until_state("closed", *days)
    finally:
        await handle.delete()
    assert scene.paid == 200


async def test_a_date_without_a_schedule_fails_the_workflow(
    temporal: Client, worker: Callable[..., Program]
) -> None:
    run = await begun(temporal, Payroll("{date}.csv", "payroll-{date}"))
    worker()
    with pytest.raises(WorkflowFailureError) as caught:
        await run.result()
    assert "no schedule has started this" in str(caught.value.cause)


async def test_what_can_never_succeed_fails_the_workflow(
    temporal: Client, server: TemporalServer, scene: Scene, worker: Callable[..., Program]
) -> None:
    path = scene.file(3)
    path.write_text(path.read_text().replace(".01", ".x"))
    run = await begun(temporal, Payroll(str(path), "june"))
    worker()
    with pytest.raises(WorkflowFailureError) as caught:
        await run.result()
    assert caught.value.cause is not None
    assert "amount" in str(caught.value.cause.__cause__)
    scene.require_no_secret(server.store)


async def test_a_file_is_paid_a_second_time_only_on_purpose(
    temporal: Client, scene: Scene, worker: Callable[..., Program]
) -> None:
    worker()
    run = await started(temporal, scene, 20)
    assert (await run.result())["done"] == 20
    again = Payroll(str(scene.folder / "june.csv"), "june-again")
    with pytest.raises(WorkflowFailureError) as caught:
        await (await begun(temporal, again)).result()
    assert caught.value.cause is not None
    assert "pay_again=True" in str(caught.value.cause.__cause__)
    assert scene.paid == 20
    assert (await (await begun(temporal, replace(again, pay_again=True))).result())["done"] == 20
    assert scene.paid == 40


@pytest.mark.parametrize(
    "reached", [None, {"shown": SHOWN, "left": [1], "held": {}}], ids=["plan", "history"]
)
async def test_a_workflow_goes_on_with_the_facts_of_an_earlier_release(
    temporal: Client, reached: dict[str, Any] | None
) -> None:
    """An earlier release's `plan`, or history, names neither a page nor search attributes."""

    @activity.defn
    async def plan(payroll: Payroll) -> dict[str, Any]:
        return {"batch_id": "june", "next": "now", "chunks": 1, "rows": 2, "sums": {"XOF": "5.00"}}

    @activity.defn
    async def pay(batch_id: str, chunk: int) -> dict[str, Any]:
        return {"next": "done", "figures": FIGURES, "is_clean": None}

    @activity.defn
    async def settle(batch_id: str, is_held: bool) -> dict[str, Any]:
        return {"next": "done", "figures": FIGURES, "is_clean": None}

    @activity.defn
    async def close(batch_id: str, follow: bool) -> dict[str, Any]:
        if follow:  # it was forgotten meanwhile
            return {"next": "done", "is_clean": None}
        return {"next": "done", "figures": FIGURES, "is_clean": True}

    async with Worker(
        temporal, task_queue=QUEUE, workflows=[PayrollWorkflow], activities=[plan, pay, settle, close]
    ):
        progress = await (await begun(temporal, Payroll("june.csv", "june", reached=reached))).result()
    assert (progress["done"], progress["clean"], progress["arrived"]) == (2, True, {"XOF": "5.00"})


def test_a_second_start_says_in_a_line_that_the_batch_is_under_way(
    server: TemporalServer, scene: Scene
) -> None:
    command = [sys.executable, PROGRAM, "start", str(scene.file(3)), "june"]
    environment = {**os.environ, **scene.environment, "TEMPORAL_ADDRESS": server.address}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    first, second = (
        subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True) for _ in range(2)
    )
    assert (first.returncode, first.stdout, first.stderr) == (0, "", "")
    assert (second.returncode, second.stdout) == (1, "")
    assert second.stderr == "batch june is under way: its workflow runs already\n"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"batch_id": "+22990112233"}, "batch_id looks like an account"),
        ({"file": "/in/GB29NWBK60161331926819.csv"}, "the file's name looks like an account"),
        ({"batch_id": "june\n"}, "printable"),
        ({"confirm_total": {"XOF": 1.5}}, "must be exact"),
        ({"max_rows": -1}, "max_rows"),
        ({"heartbeat_timeout": 10.0}, "at least 15 seconds, as long as a lease"),
        ({"zone": "Mars/Olympus"}, "zone must be a time zone"),
    ],
)
def test_an_argument_that_is_invalid_or_looks_like_an_account_is_refused(
    given: dict[str, Any], words: str
) -> None:
    with pytest.raises(BulkError, match=words):
        Payroll(**{"file": "june.csv", "batch_id": "june", **given})


def test_a_schedule_without_a_date_in_the_batchs_name_is_refused() -> None:
    with pytest.raises(BulkError, match="every night has a batch of its own"):
        nightly(file="{date}.csv", batch_id="payroll", hour=2, zone="Africa/Accra")


async def test_another_version_of_the_library_is_refused(
    temporal: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("payments_async.bulk.engines._arguments.version", lambda _: "2.0.1")
    async with AsyncPayments("sk_sandbox_x", base_url="http://127.0.0.1:9/v1") as client:
        with pytest.raises(BulkError, match=r"temporalio 2\.0\.1 was not tested: install"):
            async with payroll_worker(temporal, "postgresql://127.0.0.1:1/x", client):
                pass


@pytest.mark.parametrize(
    "page", ["batches", "ftp://payroll.test/", "https://", 7, "https://u:p@payroll.test/"]
)
async def test_what_is_no_page_is_refused(temporal: Client, page: Any) -> None:
    async with AsyncPayments("sk_sandbox_x", base_url="http://127.0.0.1:9/v1") as client:
        with pytest.raises(BulkError, match="page must"):
            async with payroll_worker(temporal, "postgresql://127.0.0.1:1/x", client, page=page):
                pass
