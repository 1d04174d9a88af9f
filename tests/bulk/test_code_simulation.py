"""A small campaign of the real client, engine and ledger on every run.

`python -m tests.simulation code 2000` is the long one.
"""

from __future__ import annotations

import pytest

from tests.simulation.real.campaign import first_breach_without, run_part
from tests.simulation.real.play import play_schedule


def test_no_schedule_of_the_real_code_pays_twice_loses_a_row_or_tells_a_lie() -> None:
    campaign = run_part(range(25))
    assert campaign.breaches == {}
    assert campaign.sometimes["crash"] > 5
    assert campaign.sometimes["answer: success"] > 20


def test_a_seed_fixes_a_schedule_of_the_real_code_to_the_last_callback() -> None:
    def traced(seed: int) -> list[str]:
        trace = list[str]()
        play_schedule(seed, trace=trace)
        return trace

    traces = [traced(seed) for seed in (3, 4, 5)]
    assert traces == [traced(seed) for seed in (3, 4, 5)]
    assert all(len(trace) > 10 for trace in traces)


@pytest.mark.parametrize(
    "safeguard",
    ["silence_is_doubt", "conflict_is_not_success", "conflict_is_not_failure", "echo_is_compared"],
)
def test_the_lack_of_a_safeguard_shows_in_the_real_engine(safeguard: str) -> None:
    assert first_breach_without(safeguard, range(40)) is not None
