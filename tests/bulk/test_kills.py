"""Three processes of one batch, killed with SIGKILL: `tests.campaigns.kills`, shorter. The books decide."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.campaigns import kills
from tests.support.servers import PostgresServer

pytestmark = [pytest.mark.no_cover, pytest.mark.slow]  # what the processes run is covered elsewhere


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("story", "service"), [("older copy", "sandbox"), ("two ledgers", "reference")])
def test_a_killed_batch_in_a_file_is_paid_once(tmp_path: Path, story: str, service: str) -> None:
    trial, problems = kills.run(tmp_path, story, service, 400, every=1.5, share=0.005)
    assert problems == []
    assert trial.kills > 0


@pytest.mark.timeout(300)
def test_a_killed_batch_on_a_server_that_restarts_is_paid_once(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    trial, problems = kills.run(tmp_path, "clock", "sandbox", 400, every=1.5, share=0.005, server=postgres)
    assert problems == []
    assert trial.kills > 0
