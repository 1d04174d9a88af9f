"""The example on DBOS, whose module is none of ours: an executor that is killed, and comes back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engines.harness import Scene

pytest.importorskip("dbos", reason="DBOS is not installed: nox -s airflow")
PROGRAM = Path(__file__).parents[2] / "examples" / "engines" / "dbos" / "dbos_payroll.py"
pytestmark = pytest.mark.timeout(600)


async def test_an_executor_that_was_killed_goes_on_once_its_id_is_back(scene: Scene) -> None:
    scene.slow(0.5)
    path = scene.file(600)
    one = scene.start(PROGRAM, "worker", "one")
    await scene.until(lambda: bool(scene.query("SELECT to_regclass('dbos.queues')")[0][0]))
    asking = scene.start(PROGRAM, "start", path, "june")
    asking.must_live = False
    assert await asking.ended() == 0
    await scene.until_paid(150)
    one.kill()
    scene.start(PROGRAM, "worker", "two")
    scene.start(PROGRAM, "worker", "one")
    await scene.until_state("closed")
    await scene.judge({"june": 600})
