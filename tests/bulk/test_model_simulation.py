"""A small campaign of the model on every run; `python -m tests.simulation` is the long one."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from tests.simulation.ablation import ABLATIONS
from tests.simulation.campaign import EVENTS, SEEDS, breaches_without, run_campaign
from tests.simulation.loop import Deadlock, SimulatedLoop
from tests.simulation.schedule import run_schedule

# many times as slow when it is traced; others cover the same
pytestmark = pytest.mark.no_cover  # heavy under a tracer; what it runs is covered without it


def new_loop(seed: object = 0) -> SimulatedLoop:
    return SimulatedLoop(seed)  # type: ignore[abstract] # typeshed wants sockets, signals and processes


def test_no_schedule_pays_twice_or_loses_a_row_and_every_event_happens() -> None:
    campaign = run_campaign(range(400))
    assert campaign.breaches == {}
    assert campaign.rare(EVENTS) == {}


SELDOM = {
    "key_names_body": 700,
    "absence_needs_whole_scan": 320,
    "absence_needs_settled_list": 210,
    "rotated_key_is_proven": 200,
    "reference_names_generation": 130,
    "cancel_only_unsent": 120,
    "body_free_reference": 90,
    "body_is_compared": 80,
    "same_place": 70,
    "same_bytes": 70,
    "fresh_intent": 60,
    "corrections_wait_for_verdict": 60,
    "wrong_address_halts": 50,
}
"""Up to here none of the seeds shows it; `python -m tests.simulation --ablate` plays these as well."""


@pytest.mark.parametrize("rule", ABLATIONS)
def test_the_lack_of_any_one_rule_shows(rule: str) -> None:
    seeds = range(SELDOM.get(rule, 0), SEEDS)
    assert next(breaches_without(rule, seeds), None) is not None


@pytest.mark.parametrize(
    ("rule", "at_least"),
    [
        ("stable_reference", 0.3),
        ("conflict_is_not_success", 0.02),
        ("conflict_is_not_failure", 0.05),
        ("silence_is_doubt", 0.1),
    ],
)
def test_the_great_mistakes_break_many_schedules(rule: str, at_least: float) -> None:
    broken = len(list(breaches_without(rule, range(60))))
    assert broken / 60 >= at_least


def test_a_seed_fixes_a_schedule() -> None:
    runs = [run_schedule(seed) for seed in range(40)]
    assert runs == [run_schedule(seed) for seed in range(40)]
    assert len({run.steps for run in runs}) > 20


def test_a_dead_host_runs_nothing_more_not_even_finally() -> None:
    loop, seen = new_loop(), list[str]()

    async def work(name: str) -> None:
        try:
            await asyncio.sleep(10)
            seen.append(name)
        finally:
            seen.append(f"{name} cleaned up")

    loop.start("a", work("a"))
    survivor = loop.start("b", work("b"))
    loop.advance(1)
    loop.crash("a")
    loop.run(survivor)
    assert seen == ["b", "b cleaned up"]
    loop.close()


def test_a_crash_may_fall_between_any_two_callbacks() -> None:
    stopped_after = set[int]()
    for step in range(1, 12):
        loop, steps = new_loop(), list[int]()

        async def work(steps: list[int] = steps) -> None:
            for number in range(10):
                await asyncio.sleep(0)
                steps.append(number)

        loop.start("a", work())
        loop.alarm(step, partial(loop.crash, "a"))
        loop.advance(1)
        stopped_after.add(len(steps))
        loop.close()
    assert len(stopped_after) > 5


def test_time_jumps_to_the_next_timer_and_the_seed_orders_what_is_ready() -> None:
    def order(seed: int) -> list[int]:
        loop, seen = new_loop(seed), list[int]()
        for number in range(6):
            loop.call_later(3600.0, seen.append, number)
        loop.call_later(1.0, seen.append, 99).cancel()
        loop.advance(7200.0)
        assert loop.time() == 7200.0
        return seen

    orders = {tuple(order(seed)) for seed in range(10)}
    assert all(sorted(found) == list(range(6)) for found in orders)
    assert len(orders) > 5
    assert order(3) == order(3)


def test_a_world_in_which_nothing_can_happen_is_found_out() -> None:
    loop = new_loop()
    with pytest.raises(Deadlock):
        loop.run(loop.create_future())
