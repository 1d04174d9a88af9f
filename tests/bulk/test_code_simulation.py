"""A small campaign of the real client, engine and ledger on every run.

`python -m tests.simulation code 2000` is the long one.
"""

from __future__ import annotations

import pytest

from payments_async.bulk._engine import sender
from payments_async.bulk._protocol.attempts import AttemptReply, Step
from tests.simulation.ablation import without
from tests.simulation.campaign import breaches_without, run_campaign
from tests.simulation.real.campaign import traced
from tests.simulation.real.play import play_schedule

# many times as slow when it is traced; others cover the same
pytestmark = pytest.mark.no_cover  # heavy under a tracer; what it runs is covered without it


@pytest.mark.parametrize("first", [0, *(pytest.param(first, marks=pytest.mark.slow) for first in (5, 10))])
def test_no_schedule_of_the_real_code_pays_twice_loses_a_row_or_reports_wrongly(first: int) -> None:
    campaign = run_campaign(range(first, first + 5), play_schedule)
    assert campaign.breaches == {}
    assert campaign.sometimes["crash"] + campaign.sometimes["crash with rows in flight"] > 0
    assert campaign.sometimes["answer: success"] > 0


def test_a_seed_fixes_a_schedule_of_the_real_code_to_the_last_callback() -> None:
    traces = [traced(seed) for seed in (3, 4)]
    assert traces == [traced(seed) for seed in (3, 4)]
    assert all(len(trace) > 10 for trace, _ in traces)


@pytest.mark.parametrize(
    ("rule", "first"),
    [
        ("server_error_is_doubt", 0),
        ("silence_is_doubt", 9),
        ("conflict_is_not_success", 9),
        ("conflict_is_not_failure", 9),
        ("replayed_error_is_stuck", 6),
        ("unreadable_success_is_doubt", 7),
    ],
)
def test_the_lack_of_a_rule_shows_in_the_real_engine(rule: str, first: int) -> None:
    """Before `first` no seed shows it; `python -m tests.simulation code --ablate` plays these as well."""
    assert next(breaches_without(rule, range(first, 40), play_schedule), None) is not None


def test_a_rule_that_was_left_out_holds_again() -> None:
    reply, asks = AttemptReply(500), dict(vars(sender))
    with without("server_error_is_doubt"):
        assert sender.after_attempt(reply, doubt=False, tries_left=0) is Step.REJECT
    assert sender.after_attempt(reply, doubt=False, tries_left=0) is Step.LATER
    assert vars(sender) == asks
