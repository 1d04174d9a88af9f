"""Counts, completeness, exit codes, and stop rules."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_async.bulk._protocol.exit_codes import Stop, exit_code, resumable
from payments_async.bulk._protocol.outcomes import (
    OPEN,
    Outcome,
    RowTotals,
    by_currency,
    count_rows,
    is_complete,
)
from payments_async.bulk._protocol.stop_rules import too_many_failures

Is = Outcome
AMOUNT = Decimal("10.10")


def tally(**counts: int) -> RowTotals:
    """So many rows of each outcome, each of 10.10 XCD."""
    return {(Is(outcome), "XCD"): (count, AMOUNT * count) for outcome, count in counts.items()}


@given(
    st.lists(
        st.tuples(st.sampled_from(Is), st.sampled_from(["XCD", "USD"]), st.decimals(1, 10**9, places=2)),
        max_size=30,
    )
)
def test_every_row_and_every_cent_is_in_one_class(rows: list[tuple[Is, str, Decimal]]) -> None:
    grouped: dict[tuple[Is, str], tuple[int, Decimal]] = {}
    totals: dict[str, Decimal] = {}
    for outcome, currency, amount in rows:
        count, total = grouped.get((outcome, currency), (0, Decimal(0)))
        grouped[outcome, currency] = (count + 1, total + amount)
        totals[currency] = totals.get(currency, Decimal(0)) + amount
    assert (count_rows(grouped, *Is), by_currency(grouped)) == (len(rows), totals)


LARGE, TINY = Decimal("99999999999999999999.999999999"), Decimal("0.000000001")
"""Their sum has more digits than a computer's usual decimal arithmetic keeps."""


def test_sums_of_any_size_balance_to_the_last_digit() -> None:
    found = {(Is.NOT_STARTED, "XCD"): (1, LARGE), (Is.NOT_FINAL, "XCD"): (1, Decimal("0.000000011"))}
    total = {"XCD": Decimal("100000000000000000000.000000010")}
    assert by_currency(found) == total


@pytest.mark.parametrize("outcome", Is)
def test_a_batch_is_complete_when_no_row_is_open(outcome: Is) -> None:
    assert is_complete(tally(**{outcome.value: 2})) is (outcome not in OPEN)


@pytest.mark.parametrize(
    ("counts", "code"),
    [
        ({}, 0),
        ({"not_final": 3}, 0),
        ({"not_final": 1, "arrived": 2}, 0),
        ({"arrived": 2, "failed": 1}, 1),
        ({"arrived": 2, "returned": 1}, 1),
        ({"not_final": 3, "rejected": 1}, 1),
        ({"not_final": 3, "conflict": 1}, 1),
        ({"not_final": 3, "cancelled": 1}, 1),
        ({"not_final": 3, "in_doubt": 1}, 3),
        ({"rejected": 3, "in_doubt": 1}, 3),
        ({"not_final": 3, "not_started": 1}, 75),
        ({"not_final": 3, "under_way": 1}, 75),
        ({"in_doubt": 3, "not_started": 1}, 75),
    ],
)
def test_how_a_run_ends(counts: dict[str, int], code: int) -> None:
    assert exit_code(tally(**counts)) == code


@pytest.mark.parametrize(
    ("stop", "code", "when"),
    [
        (None, 75, "now"),
        (Stop.TEMPORARY, 75, "now"),
        (Stop.RULE, 75, "after_change"),
        (Stop.NO_ACCESS, 2, "after_change"),
        (Stop.NOT_THE_SERVICE, 2, "after_change"),
    ],
)
def test_what_stopped_a_run_says_when_it_can_go_on(stop: Stop | None, code: int, when: str) -> None:
    assert (exit_code(tally(not_started=1), stop=stop), resumable(stop)) == (code, when)
    assert exit_code(tally(under_way=1), stop=stop) == code
    assert exit_code(tally(in_doubt=1), stop=stop) == 3  # that money may have moved matters more
    assert exit_code(tally(not_final=1), stop=stop) == 0
    assert exit_code(tally(not_final=1), stop=stop, extra=True) == 1


@pytest.mark.parametrize(
    ("rate", "decided", "failed", "pauses"),
    [
        (None, 1000, 990, False),
        (0.1, 19, 19, False),  # too few to tell
        (0.1, 20, 2, False),
        (0.1, 20, 3, True),
        (0.0, 20, 1, True),
        (1.0, 20, 20, False),
    ],
)
def test_failures_pause_a_batch_once_there_are_enough_rows_to_tell(
    rate: float | None, decided: int, failed: int, pauses: bool
) -> None:
    reason = f"{failed} of {decided} rows rejected, more than --max-failure-rate allows"
    assert too_many_failures(rate, decided, failed) == (reason if pauses else None)
