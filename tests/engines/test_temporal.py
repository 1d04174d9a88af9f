"""The example for Temporal, on its real server."""

from __future__ import annotations

import asyncio
import shutil
import signal
import subprocess
import sysconfig
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import attrs
import pytest
from temporalio.client import Client

from tests.engines.harness import SLOWLY, Program, Scene, zones
from tests.support.servers import TemporalServer

pytestmark = pytest.mark.timeout(1800)


@attrs.frozen
class Temporal:
    server: TemporalServer
    scene: Scene
    program: Path

    def run(self, *command: str) -> None:
        """Run a command of Temporal's own tool. Raises when it fails."""
        tool = shutil.which("temporal", path=sysconfig.get_path("scripts"))
        assert tool is not None
        subprocess.run([tool, *command, "--address", self.server.address], check=True, capture_output=True)

    def start(self, workflow: str, batch_id: str) -> None:
        what = ("--task-queue", "payroll", "--type", "Payroll", "--input", f'"{batch_id}"')
        self.run("workflow", "start", "--workflow-id", workflow, *what)

    async def ended(self, *workflows: str) -> None:
        client = await Client.connect(self.server.address)
        await asyncio.gather(*(client.get_workflow_handle(each).result() for each in workflows))

    def worker(self, **environment: str) -> Program:
        return self.scene.start(self.program, TEMPORAL_ADDRESS=self.server.address, **environment)

    def stored(self) -> bytes:
        """All that the server has stored, which can be read."""
        store = self.server.store
        content = b"".join(file.read_bytes() for file in store.parent.glob(f"{store.name}*"))
        assert b"payroll" in content
        return content


@pytest.fixture
def temporal(scene: Scene, tmp_path: Path) -> Iterator[Temporal]:
    """A server of its own, and the program, whose workers are missed sooner."""
    sooner = {"heartbeat_timeout=MINUTE": "heartbeat_timeout=MINUTE / 6"}
    program = scene.program("temporal", {**sooner, "Africa/Accra": zones()[0].key})
    with TemporalServer(tmp_path, "--headless") as server:
        temporal = Temporal(server, scene, program)
        asyncio.run(scene.until(lambda: _answers(temporal)))
        yield temporal
        scene.end()


def _answers(temporal: Temporal) -> bool:
    try:
        temporal.run("operator", "namespace", "describe", "default")
    except subprocess.CalledProcessError:
        return False
    return True


async def test_killed_workers_and_activities_delivered_twice_pay_exactly(
    temporal: Temporal, scene: Scene
) -> None:
    scene.slow(3.0)
    scene.file("june")
    for workflow in ("june", "june-again"):  # each activity of one has a twin
        temporal.start(workflow, "june")
    await scene.kill_workers(temporal.worker)
    await temporal.ended("june", "june-again")
    await scene.judge(temporal.stored())


async def test_a_worker_that_is_terminated_records_what_is_under_way(
    temporal: Temporal, scene: Scene
) -> None:
    scene.slow(3.0)
    scene.file("june")
    temporal.start("june", "june")
    one = temporal.worker(PAYMENTS_RATE_SHARE=SLOWLY)
    await scene.until_paid(1)
    one.signal(signal.SIGTERM)
    assert await one.ended() in (0, -signal.SIGABRT)  # its library may abort as the interpreter ends
    await scene.assert_drained("june")
    temporal.worker()
    await temporal.ended("june")
    await scene.judge(temporal.stored())


async def test_a_schedule_names_the_batch_by_its_own_time(temporal: Temporal, scene: Scene) -> None:
    zone, elsewhere = zones()  # it is another day in each
    today = datetime.now(zone)
    past = datetime(2026, 3, 5, 12, tzinfo=zone)
    for day in (past, today, today + timedelta(days=1)):
        scene.file(f"payroll-{day.date()}", 20)
    nightly, overlap = ("--schedule-id", "nightly"), ("--overlap-policy", "AllowAll")
    often = ("--calendar", '{"hour": "*", "minute": "*"}', "--time-zone", zone.key)
    what = ("--workflow-id", "payroll", "--task-queue", "payroll", "--type", "Payroll")
    temporal.run("schedule", "create", *nightly, *often, *overlap, *what, "--input", '"payroll-{date}"')
    span = ("--start-time", (past - timedelta(minutes=1)).isoformat(), "--end-time", past.isoformat())
    temporal.run("schedule", "backfill", *nightly, *span, *overlap)
    temporal.worker(TZ=elsewhere.key)
    await scene.until_paid(40)
    temporal.run("schedule", "delete", *nightly)
    assert f"payroll-{past.date()}" in await scene.batches()
    await scene.judge(temporal.stored())
