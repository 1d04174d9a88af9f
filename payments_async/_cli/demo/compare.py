"""The figures of the demonstration: counted from events, and compared with the sandbox's books."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

import attrs

from ... import LimitSnapshot
from ...events import AttemptEnded, Event, Replayed, RequestSent, RetryScheduled
from ...models import Checkout, Payout
from ...models.common import amount_text
from ...sandbox import Books
from .payout_file import CURRENCY, DemoPayout, total


class EventCounts:
    """A client's `on_event`: counts requests, retries, replays and refusals."""

    def __init__(self) -> None:
        self.requests: int = 0
        self.retries: int = 0
        self.replays: int = 0
        self.refused: int = 0
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


@attrs.frozen
class SendResult:
    """The work of one client, measured."""

    checkout: Checkout
    """As read back after the payer paid."""
    payouts: Sequence[Payout]
    seconds: float
    """From the start of the first payout to the answer of the last."""
    limit: LimitSnapshot
    """The limit on writes, afterwards."""


@attrs.frozen
class Disturbance:
    """A payout that a fault disturbed."""

    reference: str
    fault: str
    tries: Sequence[str]
    """The result of each attempt: `reset`, `201`."""
    replayed: bool
    """True if the last answer was the service's stored one."""
    booked: int
    """Number of times that the books have the payout."""


@attrs.frozen
class ClientFigures:
    """One client's figures. Sums are in major units of `payout_file.CURRENCY`."""

    client: str
    collected: Decimal
    asked: int
    booked: int
    """Payouts in the books."""
    asked_sum: Decimal
    booked_sum: Decimal
    requests: int
    retries: int
    replays: int
    refused: int
    per_second: float
    """Payouts a second."""
    limit: int
    """Writes a minute."""
    seconds: float
    disturbances: Sequence[Disturbance]
    problems: Sequence[str]
    """Differences between the requests and the books; empty when they agree."""


def compare(
    client: str,
    rows: Sequence[DemoPayout],
    faults: Mapping[str, str],
    sent: SendResult,
    counts: EventCounts,
    books: Books,
) -> ClientFigures:
    """A client's figures, with every difference between the requests and the books."""
    booked = Counter(str(entry.reference) for entry in books.payouts())
    collected, booked_sum = books.collected(CURRENCY), books.total(CURRENCY)
    by_reference = {payout.reference: payout for payout in sent.payouts}
    return ClientFigures(
        client,
        collected,
        asked=len(rows),
        booked=booked.total(),
        asked_sum=total(rows),
        booked_sum=booked_sum,
        requests=counts.requests,
        retries=counts.retries,
        replays=counts.replays,
        refused=counts.refused,
        per_second=len(rows) / sent.seconds,
        limit=sent.limit.limit,
        seconds=sent.seconds,
        disturbances=[
            _disturbance(by_reference[reference], fault, booked[reference])
            for reference, fault in faults.items()
        ],
        problems=[*_payment_problems(sent.checkout, collected), *payout_problems(rows, booked, booked_sum)],
    )


def _disturbance(payout: Payout, fault: str, booked: int) -> Disturbance:
    info = payout.response
    assert info is not None  # every record that a call returns has one
    tries = [attempt.reason for attempt in info.attempts]
    return Disturbance(str(payout.reference), fault, tries, info.replayed, booked)


def _payment_problems(checkout: Checkout, collected: Decimal) -> Iterator[str]:
    payment = checkout.payment
    if payment is None or not payment.is_successful:
        yield "the checkout was paid, and does not read back as paid"
    elif payment.amount is None or payment.amount.value != collected:
        in_books = amount_text(CURRENCY, collected)
        yield f"the books have {in_books} collected, and the checkout reads back otherwise"


def payout_problems(rows: Sequence[DemoPayout], booked: Counter[str], booked_sum: Decimal) -> Iterator[str]:
    """The differences between rows and the books' payouts: {reference: times}, and their sum."""
    asked = Counter(row.reference for row in rows)
    for reference, times in sorted((booked - asked).items()):
        yield f"{reference} is in the books {times} time(s) more than asked for"
    for reference in sorted(asked - booked):
        yield f"{reference} is not in the books"
    asked_sum = total(rows)
    if booked_sum != asked_sum:
        booked_text, asked_text = amount_text(CURRENCY, booked_sum), amount_text(CURRENCY, asked_sum)
        yield f"the books have {booked_text} paid out; {asked_text} was asked for"
