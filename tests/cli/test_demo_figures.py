"""The demonstration's bookkeeping: what is counted, and which differences it sees."""

from __future__ import annotations

from decimal import Decimal
from io import StringIO
from typing import Any

import attrs
import pytest
from rich.console import Console

from payments_async import Amount, Checkout, Instrument, LimitSnapshot, PaymentIntent
from payments_async._cli._output import Terminal
from payments_async._cli.demo.compare import ClientFigures, EventCounts, SendResult, compare
from payments_async._cli.demo.output import show_result
from payments_async._cli.demo.payout_file import DemoPayout
from payments_async.sandbox import Books, PayoutEntry
from tests.support.snapshots import Snapshots

PHONE = Instrument.phone("+233200000001", "GH")
ROWS = [DemoPayout(f"r-{number}", Decimal("10.10"), "mobile_money", PHONE) for number in (1, 2)]


def entry(reference: str, amount: str = "10.10") -> PayoutEntry:
    return PayoutEntry("po_1", reference, Decimal(amount), "GHS", "pending", "mobile_money", "key", None, 0.0)


class Ledger(Books):
    """Books with these payouts and 25.50 collected."""

    def __init__(self, *entries: PayoutEntry) -> None:
        self._entries = list(entries)

    def payouts(self, **_: Any) -> list[PayoutEntry]:
        return self._entries

    def total(self, currency: str) -> Decimal:
        return sum((entry.amount for entry in self._entries), Decimal(0))

    def collected(self, currency: str) -> Decimal:
        return Decimal("25.50")


def paid(amount: Amount | None) -> Checkout:
    return Checkout(payment=PaymentIntent(status="completed", amount=amount))


def figures(books: Books, checkout: Checkout | None = None) -> ClientFigures:
    checkout = checkout or paid(Amount(Decimal("25.50")))
    sent = SendResult(checkout, [], 2.0, LimitSnapshot(60_000, 2, 998, 0.0))
    return compare("AsyncPayments", ROWS, {}, sent, EventCounts(), books)


def test_equal_books_have_no_problem_and_the_rate_is_that_of_the_sending() -> None:
    done = figures(Ledger(entry("r-1"), entry("r-2")))
    assert done.problems == []
    assert (done.asked_sum, done.booked_sum, done.per_second) == (Decimal("20.20"), Decimal("20.20"), 1.0)


@pytest.mark.parametrize(
    ("entries", "problems"),
    [
        (
            [entry("r-1"), entry("r-1"), entry("r-2")],
            [
                "r-1 is in the books 1 time(s) more than asked for",
                "the books have GHS 30.30 paid out; GHS 20.20 was asked for",
            ],
        ),
        (
            [entry("r-1")],
            ["r-2 is not in the books", "the books have GHS 10.10 paid out; GHS 20.20 was asked for"],
        ),
        (
            [entry("r-1"), entry("r-2", "10.11")],
            ["the books have GHS 20.21 paid out; GHS 20.20 was asked for"],
        ),
        (
            [entry("r-1"), entry("r-3")],
            ["r-3 is in the books 1 time(s) more than asked for", "r-2 is not in the books"],
        ),
    ],
    ids=["twice", "lost", "a cent off", "another one"],
)
def test_every_difference_of_the_payouts_is_a_problem(
    entries: list[PayoutEntry], problems: list[str]
) -> None:
    assert figures(Ledger(*entries)).problems == problems


@pytest.mark.parametrize("amount", [None, Amount(Decimal("25.51"))])
def test_a_payment_of_another_amount_is_a_problem(amount: Amount | None) -> None:
    done = figures(Ledger(entry("r-1"), entry("r-2")), paid(amount))
    assert done.problems == ["the books have GHS 25.50 collected, and the checkout reads back otherwise"]


def test_a_checkout_without_its_payment_is_a_problem() -> None:
    done = figures(Ledger(entry("r-1"), entry("r-2")), Checkout())
    assert done.problems == ["the checkout was paid, and does not read back as paid"]


def drawn(width: int) -> list[str]:
    """What the comparison of two results looks like in a terminal of this width."""
    console = Console(file=StringIO(), width=width, color_system=None)
    done = figures(Ledger(entry("r-1"), entry("r-2")))
    show_result([done, attrs.evolve(done, client="Payments")], Terminal(console))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize("width", [40, 59, 60])
def test_two_results_are_compared_beside_each_other_or_one_after_the_other(
    width: int, assert_snapshot: Snapshots
) -> None:
    lines = drawn(width)
    assert_snapshot(lines)
    assert not any("…" in line or len(line) > width for line in lines)
