"""Real processes, killed with SIGKILL at random moments or robbed of their ledger, over a line that fails.

The long versions, with every fault the sandbox knows, are `tests.campaigns.kills` and
`.two_ledgers`; they judge by the service's books alone, and so do these.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.campaigns import kills, two_ledgers

pytestmark = pytest.mark.no_cover  # heavy under a tracer; what it runs is covered without it
FAULTS = ("lost_response", "reset", "http:503", "cut_body", "lost_request", "bad_json", "empty", "http:422")
"""Those that cost a run next to no time."""


@pytest.mark.parametrize(("rows", "count"), [(150, 3), pytest.param(600, 15, marks=pytest.mark.slow)])
def test_kill_9_and_a_lost_ledger_pay_no_row_twice_and_leave_none_in_doubt(
    tmp_path: Path, rows: int, count: int
) -> None:
    options = {**kills.BRISKLY, "window": (0.02, 0.4)}
    report = kills.run(tmp_path, rows, count, deletions=1, **options)
    assert report.problems == []
    assert (report.kills, report.deleted) == (count, 1)
    assert {*report.codes} <= {0, 75}  # no row was left in doubt by any run
    assert report.faults.total() > 0
    assert report.creations > report.rows  # some were asked for again, after a kill or a fault


@pytest.mark.parametrize("rows", [60, pytest.param(400, marks=pytest.mark.slow)])
def test_two_ledgers_of_one_batch_at_once_pay_it_once(tmp_path: Path, rows: int) -> None:
    report = two_ledgers.run(tmp_path, rows, 1, words=FAULTS[:-1], kills=1)
    assert report.problems == []
    assert report.creations >= 2 * report.rows
