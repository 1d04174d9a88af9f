"""What happened in the demonstration: counted from events, and compared with the sandbox's books."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

import attrs

from ...events import AttemptEnded, Event, Replayed, RequestSent, RetryScheduled
from ...models import Checkout, Payout
from ...models.common import amount_text
from ...sandbox import Books
from .._exit_codes import Exit
from .._output import Show
from .payout_file import CURRENCY, FAULTS, DemoPayout, total


@attrs.define
class EventCounts:
    """A client's `on_event`: counts requests, retries, replays and refusals."""

    requests: int = 0
    retries: int = 0
    replays: int = 0
    refused: int = 0
    """Answers with status 429."""

    def __call__(self, event: Event) -> None:
        """Count one event."""
        match event:
            case RequestSent():
                self.requests += 1
            case RetryScheduled():
                self.retries += 1
            case Replayed():
                self.replays += 1
            case AttemptEnded(status=429):
                self.refused += 1

    def __str__(self) -> str:
        """`1,006: 4 retries, 2 replays, 1 × 429`."""
        return (
            f"{self.requests:,}: {self.retries:,} retries, {self.replays:,} replays, {self.refused:,} × 429"
        )


@attrs.frozen
class DemoResult:
    """The client's work."""

    checkout: Checkout
    """As read back after the payer paid."""
    payouts: Sequence[Payout]


def show_faults(payouts: Sequence[Payout], faults: Mapping[str, str], books: Books, show: Show) -> None:
    """Show each payout of {reference: fault}: its attempts, and how often the books have it."""
    booked = Counter(str(entry.reference) for entry in books.payouts())
    by_reference = {payout.reference: payout for payout in payouts}
    for reference, fault in faults.items():
        info = by_reference[reference].response
        assert info is not None  # every record that a call returns has one
        tries = [attempt.reason for attempt in info.attempts]
        answers = " → ".join(tries) + " replayed" * info.replayed
        times = "once" if booked[reference] == 1 else f"{booked[reference]} times"
        show.step(
            "Fault",
            f"{reference}  {FAULTS[fault]:<14}  {answers:<20}  created {times}",
            good=booked[reference] == 1,
            reference=reference,
            fault=fault,
            tries=tries,
            replayed=info.replayed,
            booked=booked[reference],
        )


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
