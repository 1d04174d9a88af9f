"""The example for Airflow, with its real scheduler and LocalExecutor."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.engines.harness import SLOWLY, Program, Scene, zones
from tests.support.servers import PostgresServer, free_port

pytest.importorskip("airflow", reason="Airflow is not installed: nox -s airflow")
pytestmark = pytest.mark.timeout(1800)
NIGHTLY = "nightly"
"""The same DAG, every minute."""


@attrs.frozen
class Airflow:
    """Airflow's API, the environment of its programs, and where it stores everything."""

    port: int
    environment: dict[str, str]
    server: PostgresServer
    database: str

    def ask(self, method: str, path: str, body: Any = None) -> Any:
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

    def scheduler(self, scene: Scene, **environment: str) -> Program:
        program = ("-m", "airflow", "scheduler", "--skip-serve-logs")
        return scene.start(*program, **self.environment, **environment)

    def trigger(self, batch_id: str) -> str:
        body = {"conf": {"batch_id": batch_id}, "logical_date": None}
        return str(self.ask("POST", "/dags/payroll/dagRuns", body)["dag_run_id"])

    def states(self, *runs: str) -> set[str]:
        return {str(self.ask("GET", f"/dags/payroll/dagRuns/{run}")["state"]) for run in runs}

    def attempts(self, run: str) -> set[int]:
        found = self.ask("GET", f"/dags/payroll/dagRuns/{run}/taskInstances")["task_instances"]
        return {int(task["try_number"]) for task in found}

    def stored(self) -> bytes:
        """All that is in Airflow's database and in the logs of the tasks."""
        tables = self.query("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        rows = [text for (name,) in tables for (text,) in self.query(f'SELECT t::text FROM "{name}" t')]
        logs = [log.read_bytes() for log in Path(self.environment["AIRFLOW_HOME"], "logs").rglob("*.log")]
        assert rows
        assert logs
        return b"\n".join([*(text.encode() for text in rows), *logs])

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        return self.server.query(self.database, statement)


@pytest.fixture(scope="session")
def server(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    """Airflow's API server and DAG processor, one for the session."""
    home = tmp_path_factory.mktemp("airflow")
    (home / "dags").mkdir()
    with postgres.database() as database, (home / "log").open("wb") as log, ExitStack() as stack:
        environment = settings(home, postgres.url(database).replace("postgresql", "postgresql+psycopg"))

        def start(*command: str) -> subprocess.Popen[bytes]:
            path = os.pathsep.join(filter(None, sys.path))
            program = [sys.executable, "-P", "-m", "airflow", *command]
            variables = {**os.environ, **environment, "PYTHONPATH": path}
            process = stack.enter_context(
                subprocess.Popen(program, start_new_session=True, env=variables, stdout=log, stderr=log)
            )
            stack.callback(Program(process, home / "log").kill)
            return process

        assert start("db", "migrate").wait() == 0
        while True:  # another program may have taken the port in the meantime
            found = Airflow(free_port(), environment, postgres, database)
            api = f"http://127.0.0.1:{found.port}/execution/"
            environment["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"] = api
            process = start("api-server", "--port", str(found.port))
            while found.dags() is None and process.poll() is None:
                time.sleep(0.2)
            if process.poll() is None:
                break
        start("dag-processor")
        yield found


def settings(home: Path, database: str) -> dict[str, str]:
    own = {
        "CORE__DAGS_FOLDER": str(home / "dags"),
        "CORE__LOAD_EXAMPLES": "False",
        "CORE__PARALLELISM": "4",
        "CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        "API__HOST": "127.0.0.1",
        "API__WORKERS": "1",
        "API_AUTH__JWT_SECRET": "one for all programs, and as long as a digest of SHA-512 has bytes",
        "DAG_PROCESSOR__REFRESH_INTERVAL": "5",
        "DATABASE__SQL_ALCHEMY_CONN": database,
        "DATABASE__SQL_ALCHEMY_CONN_ASYNC": database,
        "SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "10",
        "SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "20",
        "SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "20",  # a killed worker is missed sooner
        "SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
        "WORKERS__MIN_HEARTBEAT_INTERVAL": "2",
        "USAGE_DATA_COLLECTION__ENABLED": "False",
    }
    return {"AIRFLOW_HOME": str(home), **{f"AIRFLOW__{name}": value for name, value in own.items()}}


@pytest.fixture
def airflow(server: Airflow, scene: Scene) -> Iterator[Airflow]:
    """Airflow, whose runs of the test are gone at its end. Its schedulers end before."""
    folder = Path(server.environment["AIRFLOW__CORE__DAGS_FOLDER"])
    often = {'"payroll"': f'"{NIGHTLY}"', "0 2 * * *": "* * * * *", "Africa/Accra": zones()[0].key}
    for name, changes in (("payroll.py", dict[str, str]()), ("nightly.py", often)):
        (folder / name).write_text(scene.program("airflow", changes).read_text())
    while server.dags() != [NIGHTLY, "payroll"]:
        time.sleep(0.2)
    for name in ("payroll", NIGHTLY):
        server.ask("PATCH", f"/dags/{name}", {"is_paused": name == NIGHTLY})
    yield server
    scene.end()
    server.query("DELETE FROM dag_run")


async def test_killed_workers_and_tasks_delivered_twice_pay_exactly(airflow: Airflow, scene: Scene) -> None:
    scene.slow(3.0)
    scene.file("june")
    runs = [airflow.trigger("june") for _ in range(2)]  # each task of one has a twin
    await scene.kill_workers(lambda: airflow.scheduler(scene))
    await scene.until(lambda: airflow.states(*runs) == {"success"})
    await scene.judge(airflow.stored())


async def test_a_worker_that_is_terminated_records_what_is_under_way(airflow: Airflow, scene: Scene) -> None:
    scene.slow(1.0)  # Airflow kills a task five seconds after SIGTERM
    scene.file("june")
    run = airflow.trigger("june")
    one = airflow.scheduler(scene, PAYMENTS_RATE_SHARE=SLOWLY)
    await scene.until_paid(1)
    await scene.until_at_work(2, "june")
    one.signal(signal.SIGTERM)
    await one.ended()
    await scene.assert_drained("june")
    airflow.scheduler(scene)
    await scene.until(lambda: airflow.states(run) == {"success"})
    assert airflow.attempts(run) == {1}  # it was no fault
    await scene.judge(airflow.stored())


async def test_nights_and_a_backfill_name_their_batches_by_the_scheduled_date(
    airflow: Airflow, scene: Scene
) -> None:
    zone, elsewhere = zones()  # it is another day in each
    today, past = datetime.now(zone), datetime(2026, 6, 29, 12, tzinfo=zone)
    for day in (past, today, today + timedelta(days=1)):
        scene.file(f"payroll-{day.date()}", 20)
    airflow.ask("PATCH", f"/dags/{NIGHTLY}", {"is_paused": False})
    span = {"from_date": past.isoformat(), "to_date": past.isoformat()}
    airflow.ask("POST", "/backfills", {"dag_id": NIGHTLY, **span})
    airflow.scheduler(scene, TZ=elsewhere.key)
    await scene.until_paid(40)
    airflow.ask("PATCH", f"/dags/{NIGHTLY}", {"is_paused": True})
    assert f"payroll-{past.date()}" in await scene.batches()
    await scene.judge(airflow.stored())
