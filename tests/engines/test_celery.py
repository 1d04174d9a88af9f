"""Batches on Celery, with a real broker and worker processes that are killed, stopped and cut off."""

from __future__ import annotations

import asyncio
import base64
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
import redis
from celery import Celery

from payments_async import AsyncPayments
from payments_async.bulk import BulkError, SharedBatch
from payments_async.bulk.engines.celery import Payroll
from tests.engines.harness import AWAY, KILLED, Program, Scene
from tests.support.servers import CutProxy, ValkeyServer, valkey_server

FOLDER = Path(__file__).parents[2] / "examples" / "engines" / "celery"
LIMIT, VISIBILITY = 40, 80
"""Seconds of a task, and until the broker delivers it again: the tests wait for those of killed workers."""
WORKER = ("-m", "celery", "--workdir", str(FOLDER), "--app", "payroll", "worker")
_AGAIN = re.compile(r"payroll\.pay\[.*'next': 'now'")
_BODY = re.compile(rb'"body": ?"([A-Za-z0-9+/=]+)"')
pytestmark = pytest.mark.timeout(1800)


@attrs.frozen
class Broker:
    """A broker behind a line that can be cut, and the file in which it writes down every command."""

    server: ValkeyServer
    line: CutProxy
    log: Path

    @property
    def waiting(self) -> int:
        """Messages that are queued, held back by a worker, or under way."""
        with redis.Redis.from_url(self.server.url()) as client:
            return int(client.llen("celery")) + int(client.hlen("unacked"))

    def forget(self) -> None:
        """Lose every message."""
        with redis.Redis.from_url(self.server.url()) as client:
            client.flushall()

    def messages(self) -> Path:
        """All messages that there have been, in the clear."""
        bodies = [base64.b64decode(body) for body in _BODY.findall(self.log.read_bytes())]
        assert bodies
        store = self.log.with_name("messages")
        store.write_bytes(b"\n".join(bodies))
        return store


@pytest.fixture
def broker(scene: Scene, tmp_path: Path) -> Iterator[Broker]:
    """An empty broker. It ends after the scene's workers."""
    stored = ["--appendonly", "yes", "--appendfsync", "no", "--appendfilename", "commands", "--dir"]
    with valkey_server(*stored, str(tmp_path)) as server, CutProxy(server.address) as line:
        yield Broker(server, line, tmp_path / "appendonlydir" / "commands.1.incr.aof")
        scene.end()


@pytest.fixture
def environment(broker: Broker) -> dict[str, str]:
    """What the program asks for, beside the account and the ledger."""
    return {
        "CELERY_BROKER_URL": broker.server.url(port=broker.line.port),
        "PAYROLL_VISIBILITY": str(VISIBILITY),
        "PAYROLL_TIME_LIMIT": str(LIMIT),
        "PAYROLL_DRAIN": "5",
    }


@pytest.fixture
def worker(scene: Scene, environment: dict[str, str]) -> Callable[..., Program]:
    """Starts a worker with two processes."""

    def start(pool: str = "prefork", **more: str) -> Program:
        name = f"{len(scene.programs)}@%h"
        options = ("--pool", pool, "--concurrency", "2", "--loglevel", "INFO", "--hostname", name)
        return scene.start(*WORKER, *options, **{**environment, **more})

    return start


@pytest.fixture
def start(scene: Scene, environment: dict[str, str]) -> Callable[..., Any]:
    """Starts a batch, by its name, from a file that is there."""

    async def start(name: str = "june", **more: str) -> None:
        path = scene.folder / f"{name}.csv"
        program = scene.start(FOLDER / "payroll.py", path, name, **environment, **more)
        program.must_live = False
        assert await program.ended() == 0

    return start


@KILLED
async def test_killed_workers_leave_a_batch_that_is_paid_exactly(
    scene: Scene,
    broker: Broker,
    start: Callable[..., Any],
    worker: Callable[..., Program],
    rows: int,
    kills: int,
) -> None:
    scene.slow(0.5)
    scene.file(rows)
    await start()
    workers = [worker(), worker()]
    for number in range(1, kills + 1):
        await scene.until_paid(number * rows // (kills + 2))
        workers.pop(0).kill()
        workers.append(worker())
    await scene.until_state("closed")
    await scene.judge({"june": rows}, broker.messages())


@pytest.mark.brief
@pytest.mark.case("delivered twice")
async def test_a_batch_that_is_started_again_is_paid_once_and_its_tasks_do_not_add_up(
    scene: Scene, broker: Broker, start: Callable[..., Any], worker: Callable[..., Program]
) -> None:
    scene.slow(0.2)
    scene.file(400)
    await start()
    await start()
    workers = [worker(), worker()]
    await scene.until_state("closed")
    await scene.until(lambda: not broker.waiting)
    await start()
    await scene.until(lambda: not broker.waiting)
    assert all(program.process.poll() is None for program in workers)
    await scene.judge({"june": 400}, broker.messages())


@pytest.mark.brief
@pytest.mark.case("SIGTERM")
async def test_a_worker_that_is_terminated_records_what_is_under_way(
    scene: Scene, broker: Broker, start: Callable[..., Any], worker: Callable[..., Program]
) -> None:
    scene.slow(2.0)
    scene.file(600)
    await start()
    patient = {"PAYROLL_DRAIN": "60", "PAYROLL_TIME_LIMIT": "100", "PAYROLL_VISIBILITY": "200"}
    one = worker(ENGINE_CHUNK="600", **patient)
    await scene.until_paid(1)
    one.terminate()
    assert await one.ended() == 0
    state, unsent, open_rows = scene.state()
    assert (state, unsent > 0, open_rows) == ("open", True, 0)
    two = worker()
    await scene.until_state("closed")
    assert _AGAIN.search(one.log.read_text())
    assert "Traceback" not in one.log.read_text() + two.log.read_text()
    await scene.judge({"june": 600}, broker.messages())


@pytest.mark.case("job lost")
async def test_tasks_that_the_broker_has_lost_are_made_good_by_starting_again(
    scene: Scene, broker: Broker, start: Callable[..., Any], worker: Callable[..., Program]
) -> None:
    scene.slow(0.5)
    scene.file(600)
    await start()
    worker()
    await scene.until_paid(1)
    broker.forget()
    await start()
    await scene.until_state("closed")
    await scene.judge({"june": 600}, broker.messages())


@pytest.mark.case("cancel")
async def test_tasks_that_are_revoked_under_way_are_made_good_by_starting_again(
    scene: Scene, broker: Broker, start: Callable[..., Any], worker: Callable[..., Program]
) -> None:
    scene.slow(4.0)
    scene.file(600)
    await start()
    one = worker()
    await scene.until_paid(1)
    with Celery(broker=broker.server.url()) as app:
        active = await asyncio.to_thread(app.control.inspect(timeout=30.0, limit=1).active)
        ids = [task["id"] for tasks in active.values() for task in tasks]
        assert ids
        app.control.revoke(ids, terminate=True)
    await scene.until(lambda: "Terminating" in one.log.read_text())
    await start()
    await scene.until_state("closed")
    await scene.judge({"june": 600}, broker.messages())


@pytest.mark.case("pause, resume")
async def test_a_paused_batch_goes_on_once_it_is_resumed(
    scene: Scene, broker: Broker, start: Callable[..., Any], worker: Callable[..., Program]
) -> None:
    scene.slow(1.0)
    scene.file(600)
    await start()
    worker()
    await scene.until_paid(1)
    base_url, url = scene.environment["PAYMENTS_BASE_URL"], scene.server.url(scene.name)
    async with (
        AsyncPayments(scene.sandbox.api_key, base_url=base_url) as client,
        SharedBatch.open(url, client, batch_id="june") as batch,
    ):
        await batch.pause()
        await scene.until(lambda: not scene.state()[2])
        paid = scene.paid
        await asyncio.sleep(40)
        assert scene.paid == paid < 600
        await batch.resume()
    await scene.until_state("closed")
    await scene.judge({"june": 600}, broker.messages())


async def test_a_total_that_differs_fails_the_import_and_another_start_can_confirm_it(
    scene: Scene, broker: Broker, start: Callable[..., Any], worker: Callable[..., Program]
) -> None:
    scene.file(100)
    total = scene.folder / "june.total"
    total.write_text("XOF 7\n")
    one = worker()
    await start(PAYROLL_TOTAL=str(total))
    await scene.until(lambda: "XOF 7 was confirmed, and the batch comes to" in one.log.read_text())
    await scene.until(lambda: not broker.waiting)
    assert scene.paid == 0
    total.write_text(f"XOF {sum(scene.asked('june'))}\n")
    await start(PAYROLL_TOTAL=str(total))
    await scene.until_state("closed")
    await scene.judge({"june": 100}, broker.messages())


@pytest.mark.case("rows in doubt")
async def test_rows_in_doubt_are_settled_at_the_end(
    scene: Scene, broker: Broker, start: Callable[..., Any], worker: Callable[..., Program]
) -> None:
    for row in (7, 107, 207):
        scene.sandbox.on("payouts.create", description=f"row {row}").respond("reset", times=6)
    scene.file(300)
    await start()
    worker()
    await scene.until(lambda: scene.state()[1:] == (0, 3))
    await scene.until_state("closed")
    await scene.judge({"june": 300}, broker.messages())


async def test_a_chunk_that_takes_longer_than_a_task_is_queued_again(
    scene: Scene, broker: Broker, start: Callable[..., Any], worker: Callable[..., Program]
) -> None:
    scene.slow(4.0)
    scene.file(600)
    await start()
    one = worker(ENGINE_CHUNK="600")
    await scene.until_state("closed")
    assert _AGAIN.search(one.log.read_text())
    await scene.judge({"june": 600}, broker.messages())


async def test_a_worker_without_a_key_puts_tasks_back_for_others(
    scene: Scene, broker: Broker, start: Callable[..., Any], worker: Callable[..., Program]
) -> None:
    scene.file(100)
    await start()
    one = worker(PAYMENTS_API_KEY="")
    await scene.until(lambda: "'next': 'wait'" in one.log.read_text())
    one.terminate()
    assert await one.ended() == 0
    worker()
    await scene.until_state("closed")
    await scene.judge({"june": 100}, broker.messages())


@pytest.mark.parametrize("line", [*AWAY.args[1], "to_broker"])
async def test_a_database_a_service_or_a_broker_that_is_away_is_waited_for(
    scene: Scene, broker: Broker, start: Callable[..., Any], worker: Callable[..., Program], line: str
) -> None:
    proxy = broker.line if line == "to_broker" else getattr(scene, line)
    scene.slow(1.0)
    scene.file(600)
    await start()
    worker()
    await scene.until_paid(100)
    proxy.cut()
    await asyncio.sleep(45)
    proxy.heal()
    await scene.until_state("closed")
    await scene.judge({"june": 600}, broker.messages())


@pytest.mark.case("stopped for 30 s")
async def test_tasks_that_outlast_the_visibility_time_out_pay_nothing_twice(
    scene: Scene, broker: Broker, start: Callable[..., Any], worker: Callable[..., Program]
) -> None:
    scene.slow(1.0)
    scene.file(600)
    await start()
    one = worker()
    await scene.until_paid(1)
    one.signal(signal.SIGSTOP)
    worker()
    await asyncio.sleep(VISIBILITY + 15)
    one.signal(signal.SIGCONT)
    await scene.until_state("closed")
    await scene.until(lambda: not broker.waiting)
    await scene.judge({"june": 600}, broker.messages())


@pytest.mark.parametrize("pool", ["prefork", "threads", "solo"])
@pytest.mark.case("two batches")
async def test_two_batches_are_paid_at_once(
    scene: Scene, broker: Broker, start: Callable[..., Any], worker: Callable[..., Program], pool: str
) -> None:
    scene.slow(0.2)
    for name in ("june", "july"):
        scene.file(500, name)
        await start(name)
    workers = [worker(pool), worker(pool)]
    await scene.until_state("closed", "june", "july")
    for program in workers:
        program.terminate()
        assert await program.ended() == 0
        assert "Traceback" not in program.log.read_text()
    await scene.judge({"june": 500, "july": 500}, broker.messages())


async def test_what_can_never_succeed_fails_its_task_and_is_not_tried_again(
    scene: Scene, broker: Broker, start: Callable[..., Any], worker: Callable[..., Program]
) -> None:
    path = scene.file(3)
    path.write_text(path.read_text().replace(".01", ".x"))
    await start()
    one = worker()
    await scene.until(lambda: "BulkError" in one.log.read_text())
    await scene.until(lambda: not broker.waiting)


def app(**options: Any) -> Celery:
    """An app with a broker of its own."""
    return Celery(broker="redis://127.0.0.1:1", broker_transport_options=options, set_as_current=False)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"batch_id": "+22990112233"}, "batch_id looks like an account"),
        ({"file": "/in/GB29NWBK60161331926819.csv"}, "the file's name looks like an account"),
        ({"batch_id": "june\n"}, "printable"),
        ({"confirm_total": {"XOF": 1.5}}, "must be exact"),
        ({"max_rows": -1}, "max_rows"),
    ],
)
def test_an_argument_that_is_invalid_or_looks_like_an_account_is_refused(
    given: dict[str, Any], words: str
) -> None:
    payroll = Payroll(app(visibility_timeout=900), "postgresql://127.0.0.1:1/x")
    with pytest.raises(BulkError, match=words):
        payroll.start(**{"file": "june.csv", "batch_id": "june", **given})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"time_limit": 450.1},
            r"set broker_transport_options=\{\"visibility_timeout\": …\} to 900.2 or more",
        ),
        ({"time_limit": 60}, "time_limit must be more than 60 seconds"),
        ({"address": "june.db"}, "a ledger in a database"),
        ({"concurrency": 0}, "concurrency"),
    ],
)
def test_a_payroll_that_cannot_work_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(BulkError, match=words):
        Payroll(app(visibility_timeout=900), **{"address": "postgresql://127.0.0.1:1/x", **given})


def test_an_app_has_one_payroll() -> None:
    one = app(visibility_timeout=900)
    Payroll(one, "postgresql://127.0.0.1:1/x")
    with pytest.raises(BulkError, match="one Payroll"):
        Payroll(one, "postgresql://127.0.0.1:1/x")


def test_a_long_visibility_time_out_is_warned_of() -> None:
    with pytest.warns(RuntimeWarning, match="the chunk of a worker that dies waits for 3600 seconds"):
        Payroll(app(), "postgresql://127.0.0.1:1/x")
