"""The package's own worker, for comparison with the engines."""

from __future__ import annotations

import pytest

from payments_async import AsyncPayments
from payments_async.bulk.steps import Steps
from tests.engines.harness import KILLED, Program, Scene

pytestmark = pytest.mark.timeout(1800)


def worker(scene: Scene) -> Program:
    """A worker process with two slots."""
    return scene.start("-m", "payments_async._cli", "payouts", "worker", "--slots", "2", "--json")


@KILLED
async def test_killed_workers_leave_a_batch_that_is_paid_exactly(scene: Scene, rows: int, kills: int) -> None:
    scene.slow(0.5)
    environment = scene.environment
    key, base_url = environment["PAYMENTS_API_KEY"], environment["PAYMENTS_BASE_URL"]
    async with (
        AsyncPayments(key, base_url=base_url) as client,
        Steps(environment["PAYMENTS_LEDGER"], client) as steps,
    ):
        await steps.plan(scene.file(rows), batch_id="june")
    workers = [worker(scene), worker(scene)]
    for kill in range(1, kills + 1):
        await scene.until_paid(rows * kill // (kills + 2))
        workers.pop(0).kill()
        workers.append(worker(scene))
    await scene.until_state("closed")
    await scene.judge({"june": rows})
