"""The campaign of stopped and cut-off workers: a short form, and its judge."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.campaigns.leases import Settings, play, too_late
from tests.support.servers import PostgresServer
from tests.support.worker_processes import BRISK, Write

ORDER = [(1, "a"), (1, "b"), (2, "c"), (2, "d")]


@pytest.mark.parametrize(
    ("writes", "found"),
    [
        ([Write(1.0, "a", 1), Write(2.0, "b", 1), Write(3.0, "c", 2), Write(2.9, "d", 2)], 1),
        ([Write(1.0, "a", 1), Write(2.0, "b", 1), Write(2.04, "a", 1)], 0),  # within the tolerance
        ([Write(1.0, "a", 1), Write(2.0, "b", 1), Write(2.06, "a", 1), Write(9.0, "a", 1)], 2),
        ([Write(1.0, "b", 1), Write(2.0, "c", 2), Write(3.0, "b", 1)], 0),  # of other chunks
        ([], 0),
    ],
)
def test_a_payout_under_an_older_lease_after_one_under_a_newer_is_found(
    writes: list[Write], found: int
) -> None:
    assert len(too_late(writes, ORDER)) == found


@pytest.mark.slow
@pytest.mark.no_cover  # other processes
async def test_stopped_and_cut_off_workers_send_nothing_under_a_lease_that_another_has(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    settings = Settings(seed=3, stops=(1.5, 2.5), rests=(0.5, 1.0), timing=BRISK)
    report = await play(postgres, tmp_path, 40, 2, settings)
    assert (report.problems, report.late) == ([], [])
    assert report.stops + report.cuts > 1
