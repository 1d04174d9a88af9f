"""Guarded payouts of processes that are killed, by the books. The long form: `tests.campaigns.guard`."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tests.campaigns.guard import run
from tests.campaigns.guard_judge import Hold, needless, overfull

SUMS = [("GHS", "100", 10)]


@pytest.mark.slow
def test_processes_that_are_killed_keep_to_their_sums_by_the_books() -> None:
    found = run("sqlite", 120, processes=2, tasks=6, sums=0.1, every=0.4)
    assert found.problems == []
    assert found.kills
    assert found.results["sums"]
    assert found.payouts > 20


@pytest.mark.parametrize(("moments", "is_over"), [((0.0, 5.0, 9.999), True), ((0.0, 5.0, 10.0), False)])
def test_the_judge_finds_a_window_that_is_too_full_wherever_it_begins(
    moments: tuple[float, ...], is_over: bool
) -> None:
    payouts = [(1_000.3 + at, "GHS", Decimal(40)) for at in moments]
    assert bool(overfull([*payouts, (1_003.0, "XOF", Decimal(900))], SUMS)) is is_over


@pytest.mark.parametrize(("asked", "amount", "count"), [(14.0, "60", 0), (14.0, "10", 1), (16.0, "60", 1)])
def test_the_judge_counts_refusals_that_had_room_all_the_time(asked: float, amount: str, count: int) -> None:
    held = [
        Hold("GHS", Decimal(50), 4.0, 5.5, 5.0, counts=True),
        Hold("GHS", Decimal(90), 4.0, 5.0, None, counts=False),
    ]
    refusal = [asked, asked + 0.1, "key", "reference", "GHS", amount, "sums", ""]
    assert needless(held, [refusal], SUMS, by_answer=True) == count
