"""A small campaign of the model of many machines; `python -m tests.simulation machines` is the long one."""

from __future__ import annotations

import pytest

from tests.simulation.campaign import run_campaign
from tests.simulation.machines.ablation import breaches_without
from tests.simulation.machines.schedule import run_schedule

# many times as slow when it is traced; others cover the same
pytestmark = pytest.mark.no_cover


def test_no_schedule_of_many_machines_pays_twice_or_loses_a_row() -> None:
    campaign = run_campaign(range(60), run_schedule)
    assert campaign.breaches == {}
    needed = {"killed", "fail over", "expired lease granted to another", "lost: an intent", "recovered"}
    assert needed <= campaign.sometimes.keys()


@pytest.mark.parametrize(
    ("rule", "seed", "breach"),
    [
        ("last_check", 0, "sent under an older lease after a newer one began"),
        ("intents_are_fenced", 56, "an intent under an older lease after a newer one began"),
        ("outcomes_are_merged", 129, "REJECTED: requests are said to have made nothing, but made a payout"),
        ("leases_are_random", 120, "sent under an older lease after a newer one began"),
        (
            "lost_intents_of_rows_in_doubt",
            126,
            "REJECTED: requests are said to have made nothing, but made a payout",
        ),
        ("lost_intents_outlive_the_proof", 492, "FALSE REJECTED: r6 was paid"),
    ],
)
def test_the_lack_of_a_rule_of_many_machines_shows(rule: str, seed: int, breach: str) -> None:
    assert next(breaches_without(rule, range(seed, seed + 1)), None) == (seed, breach)


def test_a_seed_fixes_a_schedule_of_many_machines() -> None:
    runs = [run_schedule(seed) for seed in range(10)]
    assert runs == [run_schedule(seed) for seed in range(10)]
