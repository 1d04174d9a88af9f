"""Counts, completeness, exit codes, stop rules, and where a ledger may be used."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_async.bulk._protocol.exit_codes import Stop, exit_code, resumable
from payments_async.bulk._protocol.outcomes import (
    OPEN,
    Outcome,
    RowTotals,
    balances,
    by_currency,
    is_complete,
)
from payments_async.bulk._protocol.stop_rules import (
    Account,
    AccountMismatch,
    StopRules,
    account_mismatch,
    allows_any,
    stop_reason,
)

Is = Outcome
AMOUNT = Decimal("10.10")


def tally(**counts: int) -> RowTotals:
    """So many rows of each outcome, each of 10.10 XOF."""
    return {(Is(outcome), "XOF"): (count, AMOUNT * count) for outcome, count in counts.items()}


@given(
    st.lists(
        st.tuples(st.sampled_from(Is), st.sampled_from(["XOF", "USD"]), st.decimals(1, 10**9, places=2)),
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
    found = grouped
    assert balances(found, len(rows), totals)
    assert not balances(found, len(rows) + 1, totals)
    assert not balances(found, len(rows), {**totals, "XOF": totals.get("XOF", Decimal(0)) + Decimal("0.01")})


LARGE, TINY = Decimal("99999999999999999999.999999999"), Decimal("0.000000001")
"""Their sum has more digits than a computer's usual decimal arithmetic keeps."""


def test_sums_of_any_size_balance_to_the_last_digit() -> None:
    found = {(Is.NOT_STARTED, "XOF"): (1, LARGE), (Is.NOT_FINAL, "XOF"): (1, Decimal("0.000000011"))}
    total = {"XOF": Decimal("100000000000000000000.000000010")}
    assert by_currency(found) == total
    assert balances(found, 2, total)
    assert not balances(found, 2, {"XOF": Decimal("1E+20")})


def test_the_most_that_may_be_paid_is_compared_with_the_exact_sum() -> None:
    rules, before = (
        StopRules(max_amount=LARGE),
        {(Is.NOT_FINAL, "XOF"): (1, Decimal("99999999999999999998.999999999"))},
    )
    assert stop_reason(rules, before, amount=Decimal(1), currency="XOF") is None
    assert stop_reason(rules, before, amount=1 + TINY, currency="XOF") is not None
    assert allows_any(rules, {(Is.NOT_STARTED, "XOF"): (2, LARGE)}, 2)
    over = {(Is.NOT_FINAL, "XOF"): (1, LARGE), (Is.NOT_STARTED, "XOF"): (1, TINY)}
    assert not allows_any(rules, over, 1)


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


HOME = Account("live", "https://service.example/v1", "key 1")
NOWHERE: dict[str, Any] = {"untouched": False, "visible": False}


def test_a_ledger_is_used_where_it_was_made() -> None:
    assert account_mismatch(HOME, HOME, **NOWHERE) is None


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"environment": "sandbox"}, AccountMismatch.ENVIRONMENT),
        ({"base_url": "https://elsewhere.example/v1"}, AccountMismatch.BASE_URL),
        ({"key": "key 2"}, AccountMismatch.PROJECT),
    ],
)
def test_a_ledger_is_used_nowhere_else(change: dict[str, str], problem: AccountMismatch) -> None:
    here = attrs.evolve(HOME, **change)
    assert account_mismatch(HOME, here, **NOWHERE) is problem
    proven = account_mismatch(HOME, here, untouched=False, visible=True)
    assert proven is (None if problem is AccountMismatch.PROJECT else problem)


def test_a_rotated_key_needs_no_proof_while_nothing_was_sent() -> None:
    here = attrs.evolve(HOME, key="key 2")
    assert account_mismatch(HOME, here, untouched=True, visible=False) is None


def reason(rules: StopRules, found: RowTotals, amount: str = "10.10", currency: str = "XOF") -> str | None:
    return stop_reason(rules, found, amount=Decimal(amount), currency=currency)


def test_without_stop_rules_nothing_stops() -> None:
    assert reason(StopRules(), tally(not_final=10, rejected=990)) is None


def test_rows_taken_count_whatever_became_of_them() -> None:
    rules = StopRules(max_rows=4)
    assert reason(rules, tally(not_final=1, in_doubt=1, rejected=1, not_started=50, cancelled=9)) is None
    assert reason(rules, tally(not_final=1, in_doubt=1, rejected=1, under_way=1)) == (
        "4 rows were taken, as many as --max-rows allows"
    )
    assert (
        reason(StopRules(max_rows=1), tally(not_final=1)) == "1 row was taken, as many as --max-rows allows"
    )


def test_the_amount_is_kept_to_the_cent_and_per_currency() -> None:
    rules = StopRules(max_amount=Decimal("30.30"))
    assert reason(rules, tally(not_final=1, under_way=1, not_started=9)) is None
    assert reason(rules, tally(not_final=1, under_way=1), amount="10.11") == (
        "the next row would take XOF over --max-amount"
    )
    assert reason(rules, tally(not_final=9), amount="30.30", currency="USD") is None


def test_failures_stop_a_run_once_there_are_enough_rows_to_tell() -> None:
    rules = StopRules(max_failure_rate=0.1)
    assert reason(rules, tally(rejected=19)) is None
    assert reason(rules, tally(rejected=1, conflict=1, not_final=18, not_started=80)) is None
    assert reason(rules, tally(rejected=2, conflict=1, not_final=17)) == (
        "3 of 20 rows rejected or in conflict, more than --max-failure-rate allows"
    )


@given(
    st.builds(
        StopRules,
        st.none() | st.decimals(1, 200, places=1),
        st.none() | st.integers(0, 40),
        st.none() | st.floats(0.0, 1.0),
    ),
    st.dictionaries(st.sampled_from(Is), st.integers(0, 15)),
    st.integers(1, 10),
)
def test_what_any_rows_are_allowed_none_of_them_is_refused(
    rules: StopRules, counts: dict[Is, int], rows: int
) -> None:
    before = {state.value: count for state, count in counts.items()}
    if not allows_any(rules, tally(**before), rows):
        return
    for taken in range(min(rows, before.get("not_started", 0))):
        moved = {
            "not_started": before["not_started"] - taken,
            "under_way": before.get("under_way", 0) + taken,
        }
        now = {**before, **moved}
        assert stop_reason(rules, tally(**now), amount=AMOUNT, currency="XOF") is None


@pytest.mark.parametrize(
    ("rules", "allowed"),
    [
        (StopRules(max_rows=7), True),
        (StopRules(max_rows=6), False),
        (StopRules(max_amount=AMOUNT * 9), True),
        (StopRules(max_amount=AMOUNT * 9 - 1), False),
        (StopRules(max_failure_rate=0.5), True),
    ],
)
def test_rows_are_looked_at_first_only_where_a_rule_may_forbid_one(rules: StopRules, allowed: bool) -> None:
    assert allows_any(rules, tally(not_started=5, not_final=4, cancelled=9), 3) is allowed
