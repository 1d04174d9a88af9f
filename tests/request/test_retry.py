"""What is tried again, after how long, and when enough is enough (Errors, rule 1)."""

from __future__ import annotations

import pytest

from payments_async._request.key_state import RetryBudget
from payments_async._request.retry import BASE, backoff, pause

ALMOST_ONE = 1 - 2**-53


@pytest.mark.parametrize(("retry", "bound"), [(1, 0.5), (2, 1.0), (3, 2.0), (4, 4.0), (5, 8.0), (6, 8.0)])
def test_backoff_is_spread_over_everything_up_to_a_bound_that_doubles(retry: int, bound: float) -> None:
    assert backoff(retry, 0.0) == 0.0
    assert backoff(retry, 0.5) == bound / 2
    assert backoff(retry, ALMOST_ONE) == pytest.approx(bound)


@pytest.mark.parametrize("asked", [0.0, 0.3, 1.0, 5.0, 60.0, 3600.0])
def test_a_pause_is_what_the_service_asked_for_plus_positive_jitter(asked: float) -> None:
    assert pause(1, asked, 0.0) == asked
    assert asked < pause(1, asked, 0.01) < pause(1, asked, ALMOST_ONE) <= asked + 1.0


@pytest.mark.parametrize(("asked", "width"), [(0.0, 0.1), (0.3, 0.13), (5.0, 0.6), (9.0, 1.0), (3600.0, 1.0)])
def test_the_jitter_of_a_pause_is_a_tenth_and_at_most_a_second(asked: float, width: float) -> None:
    assert pause(1, asked, 0.5) == pytest.approx(asked + width / 2)
    assert pause(1, asked, ALMOST_ONE) == pytest.approx(asked + width)


def test_a_pause_without_the_services_figure_grows_and_is_never_zero() -> None:
    longest = [pause(retry, None, ALMOST_ONE) - BASE for retry in range(1, 6)]
    assert longest == pytest.approx([0.5, 1.0, 2.0, 4.0, 8.0])
    assert pause(1, None, 0.0) == BASE


def test_a_timeout_needs_more_of_the_budget_than_other_failures() -> None:
    budget = RetryBudget()
    budget.tokens = 9
    assert not budget.spend("timeout")
    assert budget.spend("503")


def test_successes_refill_the_budget_to_the_brim_and_not_beyond() -> None:
    budget = RetryBudget()
    budget.spend("reset")
    for _ in range(10):
        budget.earn()
    assert budget.tokens == RetryBudget.FULL
