"""Batches on Airflow: its real scheduler, whose tasks are killed, stopped and cut off."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, suppress
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import attrs
import pytest
import pytest_asyncio

from payments_async import AsyncPayments
from payments_async.bulk import BulkError, SharedBatch
from payments_async.bulk.engines.airflow import payroll_tasks
from tests.engines.harness import AWAY, KILLED, Program, Scene
from tests.support.servers import PostgresServer, free_port

pytest.importorskip("airflow", reason="Airflow is not installed: nox -s airflow")
FOLDER = Path(__file__).parents[2] / "examples" / "engines" / "airflow"
ZONE = "Asia/Tokyo"
HEARTBEATS = 20
"""Seconds without a sign of life after which a task is dead; Airflow's own figure is 300."""
pytestmark = pytest.mark.timeout(1800)


@attrs.frozen
class Airflow:
    """Airflow's API, the environment of its programs, and where it stores everything."""

    port: int
    environment: dict[str, str]
    files: Path
    """Where the DAG `nightly` finds its files."""
    server: PostgresServer
    database: str
    logs: Path

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Call the API."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/api/v2{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"content-type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read() or b"null")

    def dags(self) -> list[str] | None:
        """The DAGs that the API has; None while it is starting."""
        with suppress(OSError):
            return sorted(str(each["dag_id"]) for each in self.ask("GET", "/dags")["dags"])
        return None

    def query(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """What a statement finds in Airflow's database."""
        return self.server.query(self.database, statement, *values)

    def stored(self, folder: Path) -> Path:
        """All that is in Airflow's database and in the logs of the tasks, as one file."""
        tables = self.query("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        rows = [row for (name,) in tables for row in self.query(f'SELECT t::text FROM "{name}" t')]
        assert rows
        store = folder / "stored"
        logs = [log.read_bytes() for log in self.logs.rglob("*.log")]
        assert logs
        store.write_bytes(b"\n".join([*(text.encode() for (text,) in rows), *logs]))
        return store


@pytest.fixture(scope="session")
def server(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    """Airflow's API server and DAG processor, one for the session."""
    home, files = tmp_path_factory.mktemp("airflow"), tmp_path_factory.mktemp("nightly")
    with postgres.database() as database, (home / "log").open("wb") as log, ExitStack() as stack:
        environment = settings(
            home, files, postgres.url(database).replace("postgresql", "postgresql+psycopg")
        )

        def start(*command: str) -> subprocess.Popen[bytes]:
            path = os.pathsep.join(filter(None, sys.path))
            whole: Any = {
                "env": {**os.environ, **environment, "PYTHONPATH": path},
                "stdout": log,
                "stderr": log,
            }
            program = [sys.executable, "-P", "-m", "airflow", *command]
            process = stack.enter_context(subprocess.Popen(program, start_new_session=True, **whole))
            stack.callback(Program(process, home / "log", home / "notes").kill)
            return process

        assert start("db", "migrate").wait() == 0
        while True:  # another program may have taken the port in the meantime
            found = Airflow(free_port(), environment, files, postgres, database, home / "logs")
            environment["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"] = (
                f"http://127.0.0.1:{found.port}/execution/"
            )
            process = start("api-server", "--port", str(found.port))
            while found.dags() is None and process.poll() is None:
                time.sleep(0.2)
            if process.poll() is None:
                break
        start("dag-processor")
        while found.dags() != ["nightly", "payroll"]:
            time.sleep(0.2)
        yield found


def settings(home: Path, files: Path, database: str) -> dict[str, str]:
    """The environment of Airflow's programs."""
    own = {
        "CORE__DAGS_FOLDER": str(FOLDER),
        "CORE__LOAD_EXAMPLES": "False",
        "CORE__PARALLELISM": "4",
        "CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        "API__HOST": "127.0.0.1",
        "API__WORKERS": "1",
        "API_AUTH__JWT_SECRET": "one for all programs, and as long as a digest of SHA-512 has bytes",
        "DATABASE__SQL_ALCHEMY_CONN": database,
        "DATABASE__SQL_ALCHEMY_CONN_ASYNC": database,
        "SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "10",
        "SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": str(HEARTBEATS),
        "SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": str(HEARTBEATS),
        "SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
        "WORKERS__MIN_HEARTBEAT_INTERVAL": "2",
        "USAGE_DATA_COLLECTION__ENABLED": "False",
    }
    program = {
        "AIRFLOW_HOME": str(home),
        "PAYROLL_FOLDER": str(files),
        "PAYROLL_SCHEDULE": "* * * * *",
        "PAYROLL_ZONE": ZONE,
    }
    return {**program, **{f"AIRFLOW__{name}": value for name, value in own.items()}}


@pytest_asyncio.fixture
async def airflow(server: Airflow, scene: Scene) -> AsyncIterator[Airflow]:
    """Airflow, whose runs of the test are gone at its end. Its schedulers end before."""

    for name in ("payroll", "nightly"):
        server.ask("PATCH", f"/dags/{name}", {"is_paused": name == "nightly"})
    yield server
    server.ask("PATCH", "/dags/nightly", {"is_paused": True})
    scene.end()
    server.query("DELETE FROM dag_run")


@pytest.fixture
def scheduler(scene: Scene, airflow: Airflow) -> Callable[..., Program]:
    """Starts a scheduler with its workers."""

    def start(**more: str) -> Program:
        program = ("-m", "airflow", "scheduler", "--skip-serve-logs")
        return scene.start(*program, **{**airflow.environment, **more})

    return start


@attrs.frozen
class Run:
    """A run of the DAG `payroll`."""

    airflow: Airflow
    name: str

    @property
    def tasks(self) -> list[dict[str, Any]]:
        """Its tasks, as the API shows them."""
        found = self.airflow.ask("GET", f"/dags/payroll/dagRuns/{self.name}/taskInstances?limit=200")
        tasks: list[dict[str, Any]] = found["task_instances"]
        return tasks

    def states(self, task: str) -> list[str]:
        """The states of a task, or of all that are mapped."""
        return [str(each["state"]) for each in self.tasks if each["task_id"] == task]

    @property
    def state(self) -> str:
        """The state of all of it."""
        return str(self.airflow.ask("GET", f"/dags/payroll/dagRuns/{self.name}")["state"])

    def clear(self, *tasks: str, **options: Any) -> None:
        """Let tasks run again, as a person may on the page."""
        body = {"dag_run_id": self.name, "dry_run": False, "only_failed": False, **options}
        self.airflow.ask("POST", "/dags/payroll/clearTaskInstances", {**body, "task_ids": [*tasks]})

    def mark(self, state: str, task: str = "") -> None:
        """Mark the whole run, or one task of it, as a person may on the page."""
        path, word = (f"/taskInstances/{task}", "new_state") if task else ("", "state")
        self.airflow.ask("PATCH", f"/dags/payroll/dagRuns/{self.name}{path}", {word: state})

    def progress(self, task: str, index: int = -1) -> dict[str, Any]:
        """What a task shows that is to be called again; `index` of a mapped one."""
        path = f"/dags/payroll/dagRuns/{self.name}/taskInstances/{task}/xcomEntries/progress"
        shown: dict[str, Any] = self.airflow.ask("GET", f"{path}?deserialize=true&map_index={index}")["value"]
        return shown


@pytest.fixture
def start(scene: Scene, airflow: Airflow) -> Callable[..., Run]:
    """Triggers the DAG for a file that is there."""

    def trigger(name: str = "june", **more: str) -> Run:
        conf = {"file": str(scene.folder / f"{name}.csv"), "batch_id": name, **more}
        found = airflow.ask("POST", "/dags/payroll/dagRuns", {"conf": conf, "logical_date": None})
        return Run(airflow, str(found["dag_run_id"]))

    return trigger


@KILLED
async def test_killed_workers_leave_a_batch_that_is_paid_exactly(
    scene: Scene,
    airflow: Airflow,
    start: Callable[..., Run],
    scheduler: Callable[..., Program],
    rows: int,
    kills: int,
) -> None:
    scene.slow(0.5)
    scene.file(rows)
    run, program = start(), scheduler()
    for kill in range(1, kills + 1):
        await scene.until_paid(rows * kill // (kills + 2))
        program.kill()
        program = scheduler()
    await scene.until(lambda: run.state == "success")
    await scene.judge({"june": rows}, airflow.stored(scene.folder))


@pytest.mark.brief
@pytest.mark.case("delivered twice")
async def test_two_runs_of_a_batch_and_tasks_that_are_cleared_pay_it_once(
    scene: Scene, airflow: Airflow, start: Callable[..., Run], scheduler: Callable[..., Program]
) -> None:
    scene.slow(0.5)
    scene.file(400)
    one, two = start(), start()
    scheduler()
    await scene.until_paid(1)
    one.clear("pay")
    await scene.until(lambda: one.state == two.state == "success")
    one.clear("plan", "pay", "settle", "close", "follow")
    await scene.until(lambda: one.state == "success")
    assert set(one.states("pay")) == {"removed"}  # the batch is closed
    await scene.judge({"june": 400}, airflow.stored(scene.folder))


@pytest.mark.brief
@pytest.mark.case("SIGTERM")
async def test_a_worker_that_is_terminated_records_what_is_under_way(
    scene: Scene, airflow: Airflow, start: Callable[..., Run], scheduler: Callable[..., Program]
) -> None:
    scene.slow(2.0)
    scene.file(600)
    run, one = start(), scheduler(ENGINE_CHUNK="600", PAYROLL_DRAIN="60")
    await scene.until_paid(1)
    one.must_live = False
    one.signal(signal.SIGTERM)
    await one.ended()
    state, unsent, open_rows = scene.state()
    assert (state, unsent > 0, open_rows) == ("open", True, 0)
    assert run.progress("pay", 0)["next"] == "now"
    scheduler()
    await scene.until(lambda: run.state == "success")
    assert {task["try_number"] for task in run.tasks} == {1}  # it was no fault
    await scene.judge({"june": 600}, airflow.stored(scene.folder))


@pytest.mark.case("cancel")
async def test_a_run_that_is_marked_as_failed_drains_and_goes_on_once_it_is_cleared(
    scene: Scene, airflow: Airflow, start: Callable[..., Run], scheduler: Callable[..., Program]
) -> None:
    scene.slow(2.0)
    scene.file(600)
    run, _ = start(), scheduler(ENGINE_CHUNK="600")
    await scene.until_paid(1)
    run.mark("failed")
    await asyncio.sleep(30)
    paid = scene.paid
    await asyncio.sleep(15)
    assert scene.paid == paid < 600
    assert scene.state()[0] == "open"
    run.clear("pay", include_downstream=True)
    await scene.until(lambda: run.state == "success")
    await scene.judge({"june": 600}, airflow.stored(scene.folder))


@pytest.mark.case("pause, resume")
async def test_a_paused_batch_goes_on_once_it_is_resumed(
    scene: Scene, airflow: Airflow, start: Callable[..., Run], scheduler: Callable[..., Program]
) -> None:
    scene.slow(1.0)
    scene.file(600)
    run, _ = start(), scheduler()
    await scene.until_paid(1)
    base_url, url = scene.environment["PAYMENTS_BASE_URL"], scene.server.url(scene.name)
    async with (
        AsyncPayments(scene.sandbox.api_key, base_url=base_url) as client,
        SharedBatch.open(url, client, batch_id="june") as batch,
    ):
        await batch.pause()
        await scene.until(lambda: "up_for_reschedule" in run.states("pay"))
        await scene.until(lambda: not scene.state()[2])
        paid = scene.paid
        labels = [str(task["rendered_map_index"]) for task in run.tasks if task["task_id"] == "pay"]
        assert any(label.endswith("; paused") for label in labels), labels
        await asyncio.sleep(30)
        assert scene.paid == paid < 600
        await batch.resume()
    await scene.until(lambda: run.state == "success")
    assert {task["try_number"] for task in run.tasks} == {1}
    await scene.judge({"june": 600}, airflow.stored(scene.folder))


async def test_a_total_that_differs_is_held_until_the_right_one_is_confirmed(
    scene: Scene, airflow: Airflow, start: Callable[..., Run], scheduler: Callable[..., Program]
) -> None:
    scene.file(100)
    total = scene.folder / "june.total"
    total.write_text("XOF 7\n")
    run, _ = start(total=str(total)), scheduler()
    await scene.until(lambda: run.states("plan") == ["up_for_reschedule"])
    assert "XOF 7 was confirmed" in run.progress("plan")["reason"]
    assert scene.paid == 0
    total.write_text(f"XOF {sum(scene.asked('june'))}\n")
    run.clear("plan")  # it would have been asked again after a minute
    await scene.until(lambda: run.state == "success")
    await scene.judge({"june": 100}, airflow.stored(scene.folder))


@pytest.mark.case("rows in doubt")
async def test_rows_in_doubt_are_settled_at_the_end(
    scene: Scene, airflow: Airflow, start: Callable[..., Run], scheduler: Callable[..., Program]
) -> None:
    for row in (7, 107, 207):
        scene.sandbox.on("payouts.create", description=f"row {row}").respond("reset", times=6)
    scene.file(300)
    run, _ = start(), scheduler()
    await scene.until(lambda: scene.state()[1:] == (0, 3))
    await scene.until(lambda: run.state == "success")
    await scene.judge({"june": 300}, airflow.stored(scene.folder))


@pytest.mark.case("job lost")
async def test_a_chunk_whose_task_was_lost_is_paid_by_the_task_that_settles(
    scene: Scene, airflow: Airflow, start: Callable[..., Run], scheduler: Callable[..., Program]
) -> None:
    scene.slow(1.0)
    scene.file(600)
    run, _ = start(), scheduler()
    await scene.until_paid(1)
    run.mark("success", "pay/5")  # as if it had never run
    await scene.until(lambda: run.state == "success")
    await scene.judge({"june": 600}, airflow.stored(scene.folder))


@AWAY
async def test_a_database_or_a_service_that_is_away_is_waited_for(
    scene: Scene, airflow: Airflow, start: Callable[..., Run], scheduler: Callable[..., Program], line: str
) -> None:
    scene.slow(1.0)
    scene.file(600)
    run, _ = start(), scheduler()
    await scene.until_paid(100)
    proxy = getattr(scene, line)
    proxy.cut()
    await asyncio.sleep(45)
    proxy.heal()
    await scene.until(lambda: run.state == "success")
    assert {task["try_number"] for task in run.tasks} == {1}
    await scene.judge({"june": 600}, airflow.stored(scene.folder))


@pytest.mark.case("stopped for 30 s")
async def test_a_worker_that_was_stopped_beyond_its_leases_pays_nothing_twice(
    scene: Scene, airflow: Airflow, start: Callable[..., Run], scheduler: Callable[..., Program]
) -> None:
    scene.slow(1.0)
    scene.file(600)
    run, one = start(), scheduler()
    await scene.until_paid(1)
    one.must_live = False  # Airflow may end it: another has taken its place
    one.signal(signal.SIGSTOP)
    scheduler()
    await asyncio.sleep(30)
    one.signal(signal.SIGCONT)
    await scene.until(lambda: run.state == "success")
    await scene.judge({"june": 600}, airflow.stored(scene.folder))


@pytest.mark.case("two batches")
async def test_two_batches_of_more_chunks_than_tasks_are_paid_at_once(
    scene: Scene, airflow: Airflow, start: Callable[..., Run], scheduler: Callable[..., Program]
) -> None:
    scene.slow(0.2)
    for name in ("june", "july"):
        scene.file(500, name)
    runs = [start("june"), start("july")]
    scheduler(PAYROLL_TASKS="3")
    await scene.until(lambda: all(run.state == "success" for run in runs))
    assert [len(run.states("pay")) for run in runs] == [3, 3]
    await scene.judge({"june": 500, "july": 500}, airflow.stored(scene.folder))


@pytest.mark.case("schedule")
async def test_a_night_and_a_backfill_name_their_batches_by_the_logical_date(
    scene: Scene, airflow: Airflow, scheduler: Callable[..., Program]
) -> None:
    today = datetime.now(ZoneInfo(ZONE)).date()
    days = [str(day) for day in (date(2026, 6, 29), date(2026, 6, 30), today, today + timedelta(days=1))]
    for day in days:
        path = scene.file(20, f"payroll-{day}")
        (airflow.files / f"{day}.csv").symlink_to(path)
        (airflow.files / f"{day}.total").write_text(f"XOF {sum(scene.asked(f'payroll-{day}'))}\n")
    airflow.ask("PATCH", "/dags/nightly", {"is_paused": False})
    span = {"from_date": "2026-06-29T14:59:00Z", "to_date": "2026-06-29T15:00:00Z"}  # 15:00 is midnight there
    airflow.ask("POST", "/backfills", {"dag_id": "nightly", **span})
    scheduler()
    await scene.until_state("closed", *(f"payroll-{day}" for day in days[:2]))
    await scene.until(lambda: any(scene.state(f"payroll-{day}")[0] == "closed" for day in days[2:]))
    airflow.ask("PATCH", "/dags/nightly", {"is_paused": True})
    await scene.judge(
        {f"payroll-{day}": 20 for day in days if scene.state(f"payroll-{day}")[0]},
        airflow.stored(scene.folder),
    )


async def test_what_can_never_succeed_fails_its_task_and_is_not_tried_again(
    scene: Scene, airflow: Airflow, start: Callable[..., Run], scheduler: Callable[..., Program]
) -> None:
    path = scene.file(3)
    path.write_text(path.read_text().replace(".01", ".x"))
    run, _ = start(), scheduler()
    await scene.until(lambda: run.state == "failed")
    assert run.states("plan") == ["failed"]
    assert {task["try_number"] for task in run.tasks if task["task_id"] == "plan"} == {1}
    assert run.progress("plan")["next"] == "never"
    scene.require_no_secret(airflow.stored(scene.folder))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"batch_id": "+22990112233"}, "batch_id looks like an account"),
        ({"file": "/in/GB29NWBK60161331926819.csv"}, "the file's name looks like an account"),
        ({"batch_id": "june-{date}"}, "zone must be given"),
        ({"zone": "Accra"}, "zone must be a time zone"),
        ({"confirm_total": {"XOF": 1.5}}, "must be exact"),
        ({"max_rows": -1}, "max_rows"),
        ({"tasks": 501}, "tasks must be at most 500"),
        ({"drain": -1}, "drain"),
        ({"address": "postgresql://127.0.0.1:1/x"}, "address must be a function"),
    ],
)
def test_an_argument_that_is_invalid_or_looks_like_an_account_is_refused(
    given: dict[str, Any], words: str
) -> None:
    arguments: dict[str, Any] = {"address": str, "file": "june.csv", "batch_id": "june", **given}
    with pytest.raises(BulkError, match=words):
        payroll_tasks(arguments.pop("address"), **arguments)


def test_another_major_version_of_airflow_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("payments_async.bulk.engines._arguments.version", lambda _: "2.11.0")
    with pytest.raises(BulkError, match=r"apache-airflow-core 2\.11\.0 was not tested: install"):
        payroll_tasks(str, file="june.csv", batch_id="june")
