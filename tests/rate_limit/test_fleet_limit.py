"""A fleet on one limit in virtual time: no minute over it, hardly any of it unused, whatever breaks.

The long form is `python -m tests.simulation fleet`.
"""

from __future__ import annotations

from statistics import mean

import pytest

from payments_async._rate_limit import store
from payments_async._rate_limit.store import LimitFigures
from tests.rate_limit.fleet import Faults, Fleet, full_when_new, leaves_no_room, scheduled

# many times as slow when it is traced; others cover the same
pytestmark = pytest.mark.no_cover


@pytest.mark.parametrize(
    ("processes", "delay", "round_trips"),
    [
        (4, 0.0006, 50.0),
        *(pytest.param(16, *line, marks=pytest.mark.slow) for line in ((0.0006, 140.0), (0.02, 180.0))),
    ],
)
def test_a_busy_fleet_uses_the_limit_up_with_few_round_trips(
    processes: int, delay: float, round_trips: float
) -> None:
    fleet = Fleet(1, processes=processes, delay=delay)
    fleet.run(65.0)
    assert fleet.fullest <= 1.0
    assert fleet.used >= 0.97
    assert fleet.round_trips / fleet.now <= round_trips
    assert fleet.least_share >= 0.9


@pytest.mark.parametrize(("limit", "used"), [(60, 0.75), (100, 0.75), (6_000, 0.97)])
@pytest.mark.parametrize("processes", [4, pytest.param(16, marks=pytest.mark.slow)])
def test_no_limit_stalls(limit: int, used: float, processes: int) -> None:
    fleet = Fleet(1, limit=limit, processes=processes)
    fleet.run(130.0)
    assert fleet.fullest <= 1.0
    assert fleet.used >= used
    assert fleet.least_share >= 0.5


@pytest.mark.parametrize(
    "faults",
    [
        Faults(kill=10.0, stop=20.0),
        Faults(emptied=5.0),
        Faults(stale=20.0),
        Faults(forward=60.0),
        Faults(back=10.0),
        Faults(slow=15.0),
        Faults(lost=0.02),
    ],
    ids=str,
)
def test_no_fault_overfills_a_minute_or_stalls_the_fleet(faults: Faults) -> None:
    fleet = Fleet(2, limit=6_000, faults=faults)
    fleet.run(120.0)
    assert fleet.fullest <= 1.0
    assert fleet.used >= 0.8


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 20))]
)
def test_schedules_of_faults(seed: int) -> None:
    assert scheduled(seed).fullest <= 1.0


def test_a_rate_that_leaves_no_room_overfills_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LimitFigures, "rate", leaves_no_room)
    assert scheduled(4).fullest > 1.0


def test_a_new_state_with_a_burst_overfills_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "reserve", full_when_new)
    assert scheduled(45).fullest > 1.0


def test_interactive_calls_of_one_process_come_before_bulk_calls_of_others() -> None:
    waits = {}
    for interactive in (True, False):
        fleet = Fleet(1, limit=6_000, processes=0)
        for _ in range(4):
            fleet.start(64, interactive=False)
        web = fleet.start(10, interactive=interactive, rest=0.5)
        fleet.run(60.0)
        assert fleet.used >= 0.97
        waits[interactive] = mean(web.waits[10:])
    assert waits[True] < 0.05 < 5 * waits[True] < waits[False]
