"""The rule of sums: what a window holds, when there is room, what a new or lost state may grant."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pytest

from payments_async._guard.budgets import BUDGETS, LEASE, REFUSALS, SETTLING, Budgets, WriteAmount
from payments_async._guard.budgets import limits_of as limits

HOUR, DAY = 3_600, 86_400
BEGAN = 1_000_000.0


def budgets(*sums: tuple[str, int, int]) -> Budgets:
    """A state whose windows are trusted."""
    state = Budgets(BEGAN)
    state.begin(limits(sums), BEGAN)
    return state


def amount(name: str, value: str, currency: str = "GHS") -> WriteAmount:
    """An amount to be reserved."""
    return WriteAmount(name, currency, Decimal(value))


def room(state: Budgets, sums: Any, value: str, at: float, name: str = "new") -> bool:
    """Whether an amount fits; it is then held."""
    count, shortage = state.reserve([amount(name, value)], limits(sums), BEGAN + at)
    assert (count == 1) is (shortage is None)
    return count == 1


SUMS = (("GHS", HOUR, 100),)


@pytest.mark.parametrize(
    ("outcome", "at", "fits"),
    [
        (None, LEASE + SETTLING + HOUR - 1, False),  # without an outcome: from the end of its lease
        (None, LEASE + SETTLING + HOUR * 1.01, True),
        ("paid", 10 + HOUR - 1, False),
        ("paid", 10 + HOUR * 1.01, True),
        ("unpaid", 10, True),
        ("never", 10, True),
    ],
)
def test_an_amount_counts_from_its_reservation_to_the_windows_length_after_its_answer(
    outcome: Any, at: float, fits: bool
) -> None:
    state = budgets(*SUMS)
    assert room(state, SUMS, "60", 0, "first")
    if outcome is not None:
        state.settle("first", outcome, BEGAN + 10)
    assert room(state, SUMS, "40.01", at) is fits


def test_of_several_windows_the_one_without_room_is_named_with_the_time_of_room() -> None:
    sums = (("GHS", HOUR, 100), ("GHS", DAY, 150), ("XOF", HOUR, 10))
    state = budgets(*sums)
    assert room(state, sums, "100", 0, "first")
    state.settle("first", "paid", BEGAN)
    assert room(state, sums, "50", HOUR * 1.01, "second")
    _, shortage = state.reserve([amount("third", "1")], limits(sums), BEGAN + HOUR * 1.01)
    assert shortage is not None
    assert (shortage.window, shortage.limit, shortage.used) == (DAY, Decimal(150), Decimal(150))
    assert DAY - HOUR * 1.01 <= shortage.wait <= DAY - HOUR * 0.98


def test_amounts_are_granted_in_order_until_one_does_not_fit() -> None:
    state = budgets(*SUMS)
    wanted = [amount("a", "50"), amount("b", "60"), amount("c", "10")]
    count, shortage = state.reserve(wanted, limits(SUMS), BEGAN)
    assert count == 1
    assert shortage is not None
    assert (shortage.used, shortage.wait) == (Decimal(50), 1.0)  # held: an outcome may come at any time


def test_a_second_reservation_of_one_write_renews_it_and_takes_nothing_more() -> None:
    state = budgets(*SUMS)
    assert room(state, SUMS, "60", 0, "first")
    assert room(state, SUMS, "60", LEASE - 1, "first")
    assert not room(state, SUMS, "41", LEASE + SETTLING + HOUR, "second")
    assert room(state, SUMS, "40", LEASE + SETTLING + HOUR, "third")


@pytest.mark.parametrize(("outcome", "fits"), [("unpaid", False), ("never", True), ("paid", False)])
def test_a_refusal_proves_nothing_once_two_processes_have_reserved(outcome: Any, fits: bool) -> None:
    state = budgets(*SUMS)
    state.reserve([amount("first", "60")], limits(SUMS), BEGAN, "one")
    state.reserve([amount("first", "60")], limits(SUMS), BEGAN, "two")
    state.settle("first", outcome, BEGAN)
    assert room(state, SUMS, "41", 1) is fits


def test_an_outcome_of_what_is_not_held_changes_nothing() -> None:
    state = budgets(*SUMS)
    state.settle("unknown", "paid", BEGAN)
    assert room(state, SUMS, "100", 0)


def test_a_new_window_is_derived_from_a_longer_one_and_else_not_trusted() -> None:
    sums = (("GHS", DAY, 100),)
    state = budgets(*sums)
    for number, at in enumerate((0, 0, HOUR * 2)):
        assert room(state, sums, "10", at, str(number))
        state.settle(str(number), "paid", BEGAN + at)
    assert not room(state, (*sums, ("GHS", HOUR, 15)), "6", HOUR * 2 + 60)
    assert room(state, (*sums, ("GHS", HOUR, 15)), "5", HOUR * 2 + 60)
    week = (("GHS", DAY * 7, 10_000),)
    assert not room(state, week, "1", HOUR * 3, "week")
    _, shortage = state.reserve([amount("week", "1")], limits(week), BEGAN + HOUR * 3)
    assert shortage is not None
    assert (shortage.is_known, shortage.wait) == (False, LEASE + SETTLING + DAY * 7)
    assert room(state, week, "1", HOUR * 3 + LEASE + SETTLING + DAY * 7, "week")


WEEK = DAY * 7


@pytest.mark.parametrize(
    ("counted", "trusted", "at", "known_from"),
    [
        ((DAY,), (), 10, LEASE + SETTLING + HOUR),  # what a lost state may have paid until then is unknown
        ((DAY,), (), 2_000, 2_000 + HOUR),
        ((DAY,), (), LEASE + SETTLING + DAY - 60, LEASE + SETTLING + DAY),
        ((DAY,), (DAY,), 10, 0),
        ((WEEK, DAY), (DAY,), 10, 0),  # of two longer ones, the shorter
        ((), (), 10, 10 + LEASE + SETTLING + HOUR),
    ],
)
def test_from_when_on_a_new_window_of_an_hour_is_known(
    counted: Any, trusted: Any, at: float, known_from: float
) -> None:
    state = Budgets(BEGAN)
    for seconds in counted:
        state.window("GHS", seconds, BEGAN)
    state.begin(limits(("GHS", seconds, 100) for seconds in trusted), BEGAN)
    assert state.used("GHS", HOUR, BEGAN + at) == (0, 0, BEGAN + known_from)


# --- The row of a store ---


def change(
    row: Any, kind: str = "exchange", at: float = 0.0, waited: float = 0.0, **values: Any
) -> tuple[Any, Any]:
    """What the rule makes of a row, and its answer."""
    asked = {"sums": [("GHS", HOUR, "100")], "worker": "one", "last": None, "wall": None, "reached": None}
    asked |= {"outcomes": [], "groups": []}
    state, answer = BUDGETS.change(BUDGETS.read(row), kind, {**asked, **values}, BEGAN + at, waited)
    return BUDGETS.write(state), answer


def grants(row: Any, value: str, at: float, **values: Any) -> tuple[Any, bool, Any]:
    """The row after a request, whether it was granted, and what the process then knows."""
    row, answer = change(row, at=at, groups=[[("a " + str(at), "GHS", value)]], **values)
    return row, answer["granted"][0][0] == 1, answer["last"]


def test_a_row_is_trusted_after_its_window_or_at_once_when_an_operator_says_so() -> None:
    row, granted, _ = grants(None, "1", 0)
    assert not granted
    assert grants(row, "1", LEASE + SETTLING + HOUR - 1)[1] is False
    assert grants(row, "1", LEASE + SETTLING + HOUR)[1] is True
    begun, _ = change(row, "begin", 5)
    assert grants(begun, "100", 5)[1] is True


def test_what_was_paid_before_an_operator_says_so_again_still_counts() -> None:
    row, _ = change(None, "begin")
    row, granted, _ = grants(row, "60", 1)
    row, _ = change(row, "begin", 2)
    assert granted
    assert grants(row, "41", 3)[1] is False


@pytest.mark.parametrize("loss", ["empty", "put back"])
def test_a_row_that_is_behind_what_a_process_has_seen_is_trusted_no_more(loss: str) -> None:
    first, _ = change(None, "begin")
    _, _, seen = grants(first, "60", 1)
    later, granted, known = grants(None if loss == "empty" else first, "1", 2, last=[*seen, 1.0])
    assert not granted
    assert grants(later, "1", 3, last=[*known, 1.0])[1] is False
    begun, _ = change(later, "begin", 4)
    after, granted, _ = grants(begun, "1", 5, last=[*seen, 4.0])  # a process that knows only the old state
    assert granted
    assert grants(after, "1", 6, last=[*known, 4.0])[1] is True


@pytest.mark.parametrize("moved", [HOUR * 5.0, -HOUR * 5.0])
def test_a_stores_clock_that_is_set_brings_no_room_and_takes_none(moved: float) -> None:
    row, _ = change(None, "begin")
    row, _, seen = grants(row, "60", 1)
    row, _ = change(row, at=2, outcomes=[("a 1", "paid")], last=[*seen, 1.0])
    row, granted, seen = grants(row, "41", 10 + moved, last=[*seen, 9.0])
    assert not granted
    assert grants(row, "41", 20 + moved, last=[*seen, 10.0])[1] is False
    assert grants(row, "41", 20 + HOUR * 1.01 + moved, last=[*seen, HOUR * 1.01])[1] is True


@pytest.mark.parametrize("moved", [-HOUR * 5, HOUR * 5])
def test_what_is_held_stays_held_when_a_stores_clock_is_set(moved: float) -> None:
    row, _ = change(None, "begin")
    row, _, seen = grants(row, "60", 1)
    row, granted, _ = grants(row, "41", 10 + moved, last=[*seen, 9.0])
    assert not granted


def test_a_process_that_comes_first_after_a_stores_clock_was_set_forgets_nothing() -> None:
    row, _ = change(None, "begin", wall=BEGAN)
    row, _, _ = grants(row, "60", 1, wall=BEGAN + 1)
    row, _ = change(row, at=2, outcomes=[("a 1", "paid")], wall=BEGAN + 2)
    jumped = HOUR * 48.0
    row, answer = change(row, "show", jumped + 3, wall=BEGAN + 3)
    assert answer["used"][0][0] == "60"
    row, granted, _ = grants(row, "41", jumped + 4, wall=BEGAN + 4)
    assert not granted
    assert grants(row, "41", jumped + 4 + HOUR * 1.01, wall=BEGAN + 4 + HOUR * 1.01)[1] is True


@pytest.mark.parametrize(
    ("at", "waited", "moved"), [(12.0, 5.0, 0.0), (17.0, 5.0, 5.0), (112.0, 5.0, 100.0), (-88.0, 5.0, -100.0)]
)
def test_all_times_move_by_what_the_stores_clock_was_set(at: float, waited: float, moved: float) -> None:
    """Seven seconds after its last exchange a process asks, and the store takes five of them to answer it."""
    row, answer = change(None, "begin")
    for _ in range(2):  # another one that saw the same learns that it has been done
        row, _ = change(row, at=at, waited=waited, last=[*answer["last"], 7.0])
        ((_, _, known_from, _),) = row["windows"]
        assert (known_from, row["born"]) == (BEGAN + moved, BEGAN + bool(moved))


def test_the_difference_of_two_clocks_leaves_out_the_time_that_an_answer_took() -> None:
    row, _ = change(None, "begin", at=10, wall=BEGAN + 3, waited=2.0)
    assert row["ahead"] == 5.0


def test_a_clock_that_goes_back_a_little_is_taken_to_stand_still() -> None:
    row, _ = change(None, "begin")
    row, _ = change(row, at=10)
    _, answer = change(row, at=9)
    assert answer["last"][2] == BEGAN + 10


def test_who_only_looks_changes_nothing() -> None:
    row, _ = change(None, "begin")
    row, _, _ = grants(row, "60", 1)
    assert change(row, "show", HOUR * 9)[0] == row


def test_a_row_survives_being_written_and_read() -> None:
    row, _ = change(None, "begin")
    row, _, _ = grants(row, "60.10", 1)
    row, _ = change(row, at=2, outcomes=[("a 1", "paid")])
    row, _, _ = grants(row, "20", 3)
    assert BUDGETS.write(BUDGETS.read(row)) == row  # type: ignore[arg-type]
    _, answer = change(row, "show", 4)
    assert answer["used"] == [["60.10", "20", BEGAN]]


def test_the_last_hundred_refusals_are_kept() -> None:
    state: list[Any] = REFUSALS.read(None)
    for number in range(120):
        state, _ = REFUSALS.change(
            REFUSALS.read(REFUSALS.write(state)), "add", {"refusals": [number]}, 0.0, 0.0
        )
    _, shown = REFUSALS.change(state, "add", {"refusals": []}, 0.0, 0.0)
    assert shown == [*range(20, 120)]


# --- Chance ---


@pytest.mark.parametrize("seed", range(12))
def test_no_window_ever_holds_more_than_its_sum_and_hardly_a_fitting_amount_is_refused(seed: int) -> None:
    chance = random.Random(seed)
    sums = (("GHS", 60, 100), ("GHS", 600, 400), ("XOF", 60, 1_000))
    state, now = budgets(*sums), BEGAN
    paid: list[tuple[str, float, float, Decimal]] = []  # currency, made at, answered at
    waiting: list[tuple[str, float, WriteAmount]] = []
    refused = needless = 0
    for number in range(1_500):
        now += chance.choice([0.0, 0.1, 1.0, chance.expovariate(0.2)])
        wanted = WriteAmount(str(number), chance.choice(["GHS", "XOF"]), Decimal(chance.randint(1, 60)))
        count, _ = state.reserve([wanted], limits(sums), now)
        if count:
            waiting.append((wanted.currency, now, wanted))
        else:
            refused += 1
            held = sum(each.amount for currency, _, each in waiting if currency == wanted.currency)
            needless += all(
                held + wanted.amount + _in_window(paid, wanted.currency, now - seconds * 1.01, now) <= most
                for currency, seconds, most in sums
                if currency == wanted.currency
            )
        while waiting and chance.random() < 0.6:
            currency, began, each = waiting.pop(chance.randrange(len(waiting)))
            if chance.random() < 0.8:
                paid.append((currency, chance.uniform(began, now), now, each.amount))
                state.settle(each.name, "paid", now)
            else:
                state.settle(each.name, "unpaid", now)
    for currency, seconds, most in sums:
        for _, made, _, _ in paid:
            assert _in_window(paid, currency, made - seconds, made, by=1) <= most
    assert refused > 100
    assert needless == 0


def _in_window(paid: Any, currency: str, after: float, until: float, by: int = 2) -> Decimal:
    """What was made (1) or answered (2) in a window."""
    return sum((each[3] for each in paid if each[0] == currency and after < each[by] <= until), Decimal(0))
