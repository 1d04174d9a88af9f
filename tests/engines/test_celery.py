"""The example for Celery, with a real broker that delivers every task twice."""

from __future__ import annotations

import base64
import json
import signal
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event, Thread

import attrs
import pytest
import redis

from tests.engines.harness import ROWS, SLOWLY, Program, Scene, zones
from tests.support.servers import ValkeyServer, valkey_server

pytestmark = pytest.mark.timeout(1800)


@attrs.define
class Broker:
    """A broker, and all messages that there have been."""

    server: ValkeyServer
    messages: list[bytes] = attrs.field(factory=list)

    def client(self) -> redis.Redis:
        return redis.Redis.from_url(self.server.url())

    @property
    def waiting(self) -> int:
        with self.client() as client:
            queued = (int(client.llen(name)) for name in ("celery", "moving", "twice"))
            return sum(queued) + int(client.hlen("unacked"))

    @contextmanager
    def doubled(self) -> Iterator[None]:
        """Move each message from the queue of its sender to that of the workers, twice."""
        over = Event()

        def move() -> None:
            with self.client() as client:
                while not over.is_set():
                    if (found := client.blmove("celery", "moving", 0.2)) is not None:
                        message = json.loads(found)
                        self.messages.append(base64.b64decode(message["body"]))
                        for _ in range(2):
                            message["properties"]["delivery_tag"] = str(uuid.uuid4())
                            client.lpush("twice", json.dumps(message))
                        client.delete("moving")

        thread = Thread(target=move)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


@attrs.frozen
class Payroll:
    scene: Scene
    broker: Broker
    folder: Path

    def celery(self, *command: str, **environment: str) -> Program:
        app = ("-m", "celery", "--workdir", str(self.folder), "--app", "celery_payroll")
        return self.scene.start(*app, *command, CELERY_BROKER_URL=self.broker.server.url(), **environment)

    def worker(self, **environment: str) -> Program:
        options = ("--queues", "twice", "--concurrency", "2", "--loglevel", "INFO")
        name = ("--hostname", f"{len(self.scene.programs)}@%h")
        return self.celery("worker", *options, *name, **environment)

    async def pay(self, batch_id: str) -> None:
        """Begin two lanes of a batch."""
        for _ in range(2):
            assert await self.celery("call", "pay", "--args", json.dumps([batch_id])).ended() == 0


@pytest.fixture
def payroll(scene: Scene) -> Iterator[Payroll]:
    """An empty broker, and the program with shorter times, and a beat every minute for the night at 23:59."""
    changes = {
        "for_seconds=20": "for_seconds=10",
        '"visibility_timeout": 900': '"visibility_timeout": 20',
        "Africa/Accra": zones()[0].key,
        ", 2, 0, 2": ", 23, 59, 2",
        "crontab(minute=MINUTE, hour=HOUR)": "crontab()",
    }
    path = scene.program("celery", changes)
    with valkey_server() as server:
        broker = Broker(server)
        with broker.doubled():
            yield Payroll(scene, broker, path.parent)
            scene.end()


async def test_killed_workers_and_tasks_delivered_twice_pay_exactly(payroll: Payroll, scene: Scene) -> None:
    scene.slow(3.0)
    scene.file("june")
    await payroll.pay("june")
    await scene.kill_workers(payroll.worker)
    await scene.until_paid(ROWS)
    await scene.until(lambda: not payroll.broker.waiting)
    await scene.judge(*payroll.broker.messages)


async def test_a_worker_that_is_terminated_ends_its_turn(payroll: Payroll, scene: Scene) -> None:
    scene.slow(3.0)
    scene.file("june")
    await payroll.pay("june")
    one = payroll.worker(PAYMENTS_RATE_SHARE=SLOWLY)
    await scene.until_paid(1)
    one.signal(signal.SIGTERM)
    assert await one.ended() == 0
    await scene.assert_drained("june")
    payroll.worker()
    await scene.until(lambda: not payroll.broker.waiting)
    await scene.judge(*payroll.broker.messages)


async def test_beat_names_the_batch_by_the_night_for_which_it_is_due(payroll: Payroll, scene: Scene) -> None:
    zone, elsewhere = zones()  # it is another day in each
    today = datetime.now(zone)
    for day in (today - timedelta(days=1), today):  # the latest 23:59 was yesterday
        scene.file(f"payroll-{day.date()}", 20)
    beat = payroll.celery("beat", "--schedule", str(scene.folder / "beat"), TZ=elsewhere.key)
    payroll.worker(TZ=elsewhere.key)
    await scene.until_paid(20)
    beat.kill()
    await scene.until(lambda: not payroll.broker.waiting)
    assert f"payroll-{today.date() - timedelta(days=1)}" in await scene.batches()
    await scene.judge(*payroll.broker.messages)
