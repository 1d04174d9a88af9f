"""Batches on Procrastinate, in its own tables and with worker processes that are killed and stopped."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import attrs
import pytest
import pytest_asyncio
from procrastinate import App, PsycopgConnector

from payments_async import AsyncPayments
from payments_async.bulk import BulkError, SharedBatch
from payments_async.bulk.engines.procrastinate import Nightly, payroll, start
from tests.engines.harness import AWAY, KILLED, Program, Scene

PROGRAM = "examples/engines/procrastinate/procrastinate_payroll.py"
pytestmark = pytest.mark.timeout(1800)


@attrs.frozen
class Jobs:
    """Procrastinate's tables in a scene's database."""

    app: App
    scene: Scene

    async def start(self, rows: int, name: str = "june", **options: Any) -> None:
        """Ask for a new file to be paid."""
        await start(self.app, str(self.scene.file(rows, name)), batch_id=name, **options)

    def statuses(self, *tasks: str) -> set[str]:
        """What became of the jobs of some tasks."""
        names = [f"payroll:{task}" for task in tasks]
        query = "SELECT DISTINCT status::text FROM procrastinate_jobs WHERE task_name = ANY(%s)"
        return {status for (status,) in self.scene.query(query, names)}

    async def until_status(self, status: str, task: str) -> None:
        """Wait until a job of a task has a status."""
        await self.scene.until(lambda: status in self.statuses(task))

    async def judge(self, rows: dict[str, int]) -> None:
        """Wait until batches are closed, and judge them, and what Procrastinate has stored."""
        await self.scene.until_state("closed", *rows)
        tables = (
            "SELECT j::text FROM procrastinate_jobs j UNION ALL SELECT e::text FROM procrastinate_events e"
        )
        stored = self.scene.folder / "stored.txt"
        stored.write_text("\n".join(text for (text,) in self.scene.query(tables)))
        await self.scene.judge(rows, stored)


@pytest_asyncio.fixture
async def jobs(scene: Scene) -> AsyncIterator[Jobs]:
    """Procrastinate's tables, and an open app."""
    app = App(connector=PsycopgConnector(conninfo=scene.server.url(scene.name)))
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        yield Jobs(app, scene)


@pytest.fixture
def worker(scene: Scene) -> Callable[..., Program]:
    """Starts a worker process, with environment variables."""
    return lambda **more: scene.start(PROGRAM, "worker", **more)


@KILLED
async def test_killed_workers_leave_a_batch_that_is_paid_exactly(
    jobs: Jobs, scene: Scene, worker: Callable[..., Program], rows: int, kills: int
) -> None:
    scene.slow(0.5)
    await jobs.start(rows)
    workers = [worker(), worker()]
    for kill in range(1, kills + 1):
        await scene.until_paid(rows * kill // (kills + 2))
        workers.pop(0).kill()
        workers.append(worker())
    await jobs.judge({"june": rows})


@pytest.mark.brief
@pytest.mark.case("delivered twice")
async def test_jobs_that_are_delivered_twice_pay_once(
    jobs: Jobs, scene: Scene, worker: Callable[..., Program]
) -> None:
    scene.slow(0.3)
    await jobs.start(400)
    await start(jobs.app, str(scene.folder / "june.csv"), batch_id="june")
    for chunk in (1, 2, 3, 4) * 2:
        await jobs.app.configure_task("payroll:pay", queue="payroll").defer_async(
            batch_id="june", chunk=chunk
        )
    workers = [worker(), worker()]
    await jobs.judge({"june": 400})
    assert all(program.process.poll() is None for program in workers)
    assert "failed" not in jobs.statuses("plan", "settle", "close", "follow")


@pytest.mark.brief
@pytest.mark.case("SIGTERM")
async def test_a_worker_that_is_terminated_records_what_is_under_way(
    jobs: Jobs, scene: Scene, worker: Callable[..., Program]
) -> None:
    scene.slow(1.0)
    await jobs.start(600)
    one = worker()
    await scene.until_paid(1)
    one.terminate()
    assert await one.ended() == 0
    state, unsent, open_rows = scene.state()
    assert (state, unsent > 0, open_rows) == ("open", True, 0)
    assert "doing" not in jobs.statuses("pay", "plan", "settle")
    assert "Traceback" not in one.log.read_text()
    assert scene.query("SELECT host FROM payments.workers") == []  # it has left
    worker()
    await jobs.judge({"june": 600})


async def test_a_worker_that_may_not_wait_leaves_its_chunk_to_others(
    jobs: Jobs, scene: Scene, worker: Callable[..., Program]
) -> None:
    scene.slow(1.0)
    await jobs.start(600)
    base_url, ledger = (scene.environment[name] for name in ("PAYMENTS_BASE_URL", "PAYMENTS_LEDGER"))
    async with AsyncPayments(scene.sandbox.api_key, base_url=base_url) as client:
        jobs.app.add_tasks_from(payroll(ledger, client), namespace="payroll")
        options: dict[str, Any] = {"install_signal_handlers": False, "shutdown_graceful_timeout": 0.0}
        working = asyncio.ensure_future(jobs.app.run_worker_async(concurrency=3, **options))
        await scene.until_paid(1)
        working.cancel()
        await asyncio.wait([working])
    assert (scene.state()[0], scene.state()[2]) == ("open", 0)
    assert {"aborted", "todo"} <= jobs.statuses("pay")
    worker()
    await jobs.judge({"june": 600})


@pytest.mark.case("pause, resume")
async def test_a_pause_holds_the_batch_and_is_asked_for_by_one_job(
    jobs: Jobs, scene: Scene, worker: Callable[..., Program]
) -> None:
    scene.slow(1.0)
    await jobs.start(600)
    worker()
    await scene.until_paid(1)
    async with SharedBatch.open(scene.server.url(scene.name), batch_id="june") as batch:
        await batch.pause("lunch")
        await jobs.until_status("todo", "resume")
        await scene.until(lambda: jobs.statuses("pay", "settle") == {"succeeded"})
        assert not scene.state()[2]
        assert scene.paid < 600
        await batch.resume()
    await jobs.judge({"june": 600})


async def test_a_total_that_differs_is_held_until_the_right_one_is_confirmed(
    jobs: Jobs, scene: Scene, worker: Callable[..., Program]
) -> None:
    await jobs.start(100, confirm_total={"XOF": "7"})
    worker()
    await jobs.until_status("todo", "resume")
    assert scene.paid == 0
    await start(jobs.app, str(scene.folder / "june.csv"), batch_id="june", confirm_total={"XOF": "5051"})
    await jobs.judge({"june": 100})


@pytest.mark.case("rows in doubt")
async def test_rows_in_doubt_are_settled_at_the_end(
    jobs: Jobs, scene: Scene, worker: Callable[..., Program]
) -> None:
    for row in (7, 107, 207):
        scene.sandbox.on("payouts.create", description=f"row {row}").respond("reset", times=6)
    await jobs.start(300)
    worker()
    await jobs.judge({"june": 300})


@AWAY
async def test_a_database_or_a_service_that_is_away_is_waited_for(
    jobs: Jobs, scene: Scene, worker: Callable[..., Program], line: str
) -> None:
    scene.slow(1.0)
    await jobs.start(600)
    one = worker()
    one.must_live = line == "to_service"  # Procrastinate's worker ends without its database
    await scene.until_paid(100)
    getattr(scene, line).cut()
    await asyncio.sleep(45)
    getattr(scene, line).heal()
    await scene.until(lambda: scene.state()[0] == "closed" or one.process.poll() is not None)
    if one.process.poll() is not None:
        worker()  # as a service manager does
    await jobs.judge({"june": 600})


@pytest.mark.case("two batches")
async def test_two_batches_are_paid_at_once(jobs: Jobs, scene: Scene, worker: Callable[..., Program]) -> None:
    scene.slow(0.2)
    for name in ("june", "july"):
        await jobs.start(500, name)
    workers = [worker(), worker()]
    await jobs.judge({"june": 500, "july": 500})
    assert all(program.process.poll() is None for program in workers)


@pytest.mark.case("stopped for 30 s")
async def test_a_worker_that_was_stopped_beyond_its_leases_pays_nothing_twice(
    jobs: Jobs, scene: Scene, worker: Callable[..., Program]
) -> None:
    scene.slow(1.0)
    await jobs.start(600)
    one = worker()
    await scene.until_paid(1)
    worker()
    one.signal(signal.SIGSTOP)
    query = "SELECT count(*) FROM procrastinate_events WHERE type = 'deferred_for_retry'"
    await scene.until(lambda: scene.query(query) != [(0,)])  # the other's reaper has its jobs
    one.signal(signal.SIGCONT)
    await jobs.judge({"june": 600})


@pytest.mark.case("job lost", "cancel")
async def test_a_job_that_was_lost_or_aborted_is_made_good_by_another_start(
    jobs: Jobs, scene: Scene, worker: Callable[..., Program]
) -> None:
    scene.slow(1.0)
    await jobs.start(600)
    worker()
    await scene.until_paid(1)
    query = "SELECT id, status::text FROM procrastinate_jobs WHERE task_name = 'payroll:pay' ORDER BY id"
    for number, _ in scene.query(query):
        await jobs.app.job_manager.cancel_job_by_id_async(number, abort=True)
    await scene.until(lambda: jobs.statuses("pay") <= {"succeeded", "cancelled", "aborted"})
    assert not scene.state()[2]
    assert scene.paid < 600
    await start(jobs.app, str(scene.folder / "june.csv"), batch_id="june")
    await jobs.judge({"june": 600})


@pytest.mark.case("schedule")
async def test_the_night_names_its_batch_by_the_scheduled_time(
    jobs: Jobs, scene: Scene, worker: Callable[..., Program]
) -> None:
    now = datetime.now(UTC)
    zone = next(  # one in which it is another day
        name
        for name in ("Pacific/Kiritimati", "Pacific/Pago_Pago")
        if now.astimezone(ZoneInfo(name)).date() != now.date()
    )
    at = (now + timedelta(seconds=75)).astimezone(ZoneInfo(zone))
    day = at.date().isoformat()
    scene.file(100, f"payroll-{day}").rename(scene.folder / f"{day}.csv")
    amounts = [line.split(",")[1] for line in (scene.folder / f"{day}.csv").read_text().splitlines()[1:]]
    (scene.folder / f"{day}.total").write_text(f"XOF {sum(float(amount) for amount in amounts):.2f}\n")
    place = {"PAYROLL_FOLDER": str(scene.folder), "PAYROLL_AT": f"{at:%H:%M}", "PAYROLL_ZONE": zone}
    worker(**place)
    worker(**place)
    await scene.until_state("closed", f"payroll-{day}")
    assert scene.paid == 100
    assert scene.query("SELECT count(*) FROM procrastinate_jobs WHERE task_name = 'payroll:plan'") == [(1,)]


async def test_what_can_never_succeed_fails_once(
    jobs: Jobs, scene: Scene, worker: Callable[..., Program]
) -> None:
    path = scene.file(3)
    path.write_text(path.read_text().replace(".01", ".x"))
    await start(jobs.app, str(path), batch_id="june")
    await jobs.app.configure_task("payroll:pay", queue="payroll").defer_async(batch_id="july", chunk=1)
    worker()
    for task in ("plan", "pay"):
        await jobs.until_status("failed", task)
    query = "SELECT attempts FROM procrastinate_jobs WHERE status = 'failed'"
    assert scene.query(query) == [(1,), (1,)]
    assert "amount" in scene.logs()


async def test_jobs_of_dead_workers_begin_again_unless_a_copy_waits_or_the_task_is_another(
    jobs: Jobs, scene: Scene, worker: Callable[..., Program]
) -> None:
    await jobs.start(100)
    copied = {"queue": "payroll", "queueing_lock": "payroll:settle june"}
    for task, options in (("other", {}), ("payroll:settle", copied)):
        await jobs.app.configure_task(task, **options).defer_async(batch_id="june")
    scene.query("UPDATE procrastinate_jobs SET status = 'doing'")  # of a worker that is gone
    await jobs.app.configure_task("payroll:settle", schedule_in={"seconds": 20}, **copied).defer_async(
        batch_id="june"
    )
    worker()
    await jobs.judge({"june": 100})
    query = "SELECT status::text FROM procrastinate_jobs WHERE id < 4 ORDER BY id"
    assert scene.query(query) == [("succeeded",), ("doing",), ("aborted",)]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"batch_id": "+22990112233"}, "batch_id looks like an account"),
        ({"file": "/in/GB29NWBK60161331926819.csv"}, "the file's name looks like an account"),
        ({"confirm_from": "/in/22990112233.total"}, "the file's name looks like an account"),
        ({"confirm_total": {"XOF": 1.5}}, "must be exact"),
        ({"max_rows": -1}, "max_rows"),
    ],
)
async def test_an_argument_that_is_invalid_or_looks_like_an_account_is_not_stored(
    given: dict[str, Any], words: str
) -> None:
    app = App(connector=PsycopgConnector(conninfo="postgresql://127.0.0.1:1/x"))
    with pytest.raises(BulkError, match=words):
        await start(app, **{"file": "june.csv", "batch_id": "june", **given})


NIGHT: dict[str, Any] = {
    "file": "{date}.csv",
    "batch_id": "payroll-{date}",
    "hour": 2,
    "zone": "Africa/Accra",
}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"batch_id": "payroll"}, "every night has a batch of its own"),
        ({"hour": 24}, "time of day"),
        ({"zone": "Mars/Olympus"}, "zone must be a time zone"),
        ({"max_failure_rate": 2}, "max_failure_rate"),
        ({"file": "/in/22990112233.csv"}, "looks like an account"),
    ],
)
def test_a_night_that_is_invalid_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(BulkError, match=words):
        Nightly(**{**NIGHT, **given})


@pytest.mark.parametrize(
    ("zone", "cron", "at", "day"),
    [
        ("Africa/Accra", "0 2 * * *", "2026-06-30T02:00Z", "2026-06-30"),
        ("Asia/Kolkata", "30 20 * * *", "2026-06-29T20:30Z", "2026-06-30"),
        ("Europe/Paris", "0 0,1 * * *", "2026-06-30T00:00Z", "2026-06-30"),
        ("Europe/Paris", "0 0,1 * * *", "2026-06-30T01:00Z", None),
        ("Europe/Paris", "0 0,1 * * *", "2026-03-29T01:00Z", "2026-03-29"),  # there is no two o'clock
        ("Europe/Paris", "0 0,1 * * *", "2026-10-25T00:00Z", "2026-10-25"),  # there are two
        ("Europe/Paris", "0 0,1 * * *", "2026-10-25T01:00Z", None),
    ],
)
def test_a_night_is_one_time_of_its_zone_in_every_season(
    zone: str, cron: str, at: str, day: str | None
) -> None:
    night = Nightly(**{**NIGHT, "zone": zone})
    assert night.cron(date(2026, 1, 1)) == cron
    plan = night.plan(int(datetime.fromisoformat(at).timestamp()))
    assert plan == (day and {"file": f"{day}.csv", "batch_id": f"payroll-{day}"})


@pytest.mark.parametrize(
    ("installed", "options", "words"),
    [
        ("4.0.0", {}, r"procrastinate 4\.0\.0 was not tested: install"),
        ("3.10.0", {"stalled_after": 10.0}, "at least 15 seconds, as long as a lease"),
        ("3.10.0", {"concurrency": 0}, "concurrency"),
    ],
)
async def test_tasks_that_could_not_work_are_not_made(
    monkeypatch: pytest.MonkeyPatch, installed: str, options: dict[str, Any], words: str
) -> None:
    monkeypatch.setattr("payments_async.bulk.engines._arguments.version", lambda _: installed)
    async with AsyncPayments("sk_sandbox_x", base_url="http://127.0.0.1:9/v1") as client:
        with pytest.raises(BulkError, match=words):
            payroll("postgresql://127.0.0.1:1/x", client, **options)
