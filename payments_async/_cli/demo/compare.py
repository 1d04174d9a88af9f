"""The demonstration's result, compared with the sandbox's books."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal

from ...models import Checkout
from ...models.common import amount_text
from ...sandbox import Books
from .._exit_codes import Exit
from .._output import Show
from .payout_file import CURRENCY, DemoPayout, total


def show_books(problems: Sequence[str], rows: Sequence[DemoPayout], show: Show) -> Exit:
    """Show whether the books agree; `Exit.REFUSED` when they do not."""
    for problem in problems:
        show.step("Books", problem, good=False, problem=problem)
    if problems:
        show.step("Result", "THE BOOKS DO NOT AGREE", good=False)
        return Exit.REFUSED
    paid = amount_text(CURRENCY, total(rows))
    show.step("Books", f"{len(rows):,} references, one payout each; {paid} to the cent", payouts=len(rows))
    show.step("Result", "the books agree: nothing lost, nothing paid twice")
    return Exit.DONE


def payment_problems(checkout: Checkout, collected: Decimal) -> Iterator[str]:
    """The differences between the payment and what the books have collected."""
    payment = checkout.payment
    if payment is None or not payment.is_successful:
        yield "the checkout was paid, and does not read back as paid"
    elif payment.amount is None or payment.amount.value != collected:
        in_books = amount_text(CURRENCY, collected)
        yield f"the books have {in_books} collected, and the checkout reads back otherwise"


def payout_problems(rows: Sequence[DemoPayout], books: Books) -> Iterator[str]:
    """The differences between rows and the books' payouts: each once, and their sum."""
    booked = Counter(str(entry.reference) for entry in books.payouts())
    asked = Counter(row.reference for row in rows)
    for reference, times in sorted((booked - asked).items()):
        yield f"{reference} is in the books {times} time(s) more than asked for"
    for reference in sorted(asked - booked):
        yield f"{reference} is not in the books"
    if (booked_sum := books.total(CURRENCY)) != (asked_sum := total(rows)):
        booked_text, asked_text = amount_text(CURRENCY, booked_sum), amount_text(CURRENCY, asked_sum)
        yield f"the books have {booked_text} paid out; {asked_text} was asked for"
