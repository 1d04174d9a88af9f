"""Guarded payouts of processes that are killed, by the books. The long form: `tests.campaigns.guard`."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tests.campaigns.guard import STORES, overfull, run


@pytest.mark.slow
@pytest.mark.parametrize("store", STORES)
def test_processes_that_are_killed_keep_to_their_sums_by_the_books(store: str) -> None:
    found = run(store, 120, processes=2, tasks=6, sums=0.02, every=0.4)
    assert found.problems == []
    assert found.kills
    assert found.results["sums"]
    assert found.payouts


@pytest.mark.parametrize(("moments", "is_over"), [((0.0, 5.0, 9.999), True), ((0.0, 5.0, 10.0), False)])
def test_the_judge_finds_a_window_that_is_too_full_wherever_it_begins(
    moments: tuple[float, ...], is_over: bool
) -> None:
    payouts = [(1_000.3 + at, "GHS", Decimal(40)) for at in moments]
    assert bool(overfull([*payouts, (1_003.0, "XOF", Decimal(900))], [("GHS", "100", 10)])) is is_over
