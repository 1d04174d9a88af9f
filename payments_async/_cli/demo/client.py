"""The demonstration's work: a payment is collected, the payouts are sent, the books are compared."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Final

from ... import AsyncPayments
from ..._runtime import SYSTEM
from ...bulk.sources import Row
from ...models import Checkout, Payout
from ...models.common import amount_text
from ...sandbox import Books, Sandbox
from .._exit_codes import Exit
from .._output import Show
from .payouts import CURRENCY, FAULTS, disturbed, payout_problems, read_csv, show_books, show_plan, write_csv

PRICE: Final = Decimal("25.50")  # amount that the simulated payer pays, major units
TASKS: Final = 64


def run_demo(count: int, seed: int, show: Show) -> Exit:
    """Collect the payment, send `count` payouts; `Exit.REFUSED` when the books do not agree.

    Raises PaymentsError when a call fails for good.
    """
    show.heading("payments demo", "a simulated service on this machine; nothing leaves it")
    with tempfile.TemporaryDirectory(prefix="payments-demo-") as folder:
        file = write_csv(Path(folder) / "payouts.csv", count, seed)
        rows = read_csv(file)
    show_plan(file, rows, show)
    faults = disturbed(rows, seed)
    with Sandbox(seed=seed) as sandbox:
        for reference, fault in faults.items():
            sandbox.on("payouts.create", reference=reference).respond(fault)
        checkout, payouts = asyncio.run(_work(sandbox, rows, show))
        _show_faults(payouts, faults, sandbox.books, show)
        problems = _payment_problems(checkout, sandbox.books.collected(CURRENCY))
        return show_books([*problems, *payout_problems(rows, sandbox.books)], rows, show)


async def _work(sandbox: Sandbox, rows: Sequence[Row], show: Show) -> tuple[Checkout, list[Payout]]:
    """Have the payer pay and send the payouts; the checkout is as read back after the payer paid."""
    async with AsyncPayments(sandbox.api_key, base_url=sandbox.base_url) as client:
        checkout = await client.checkouts.create(amount=PRICE, currency=CURRENCY)
        sandbox.pay(str(checkout.id))  # the payer pays
        checkout = await client.checkouts.retrieve(str(checkout.id))
        _show_checkout(checkout, show)
        started = SYSTEM.monotonic()
        payouts = await _send(client, rows)
        seconds = SYSTEM.monotonic() - started
    text = f"{len(rows):,} sent in {seconds:.1f} s, {len(rows) / seconds:,.0f} a second, {TASKS} at a time"
    show.step("Payouts", text, sent=len(rows), seconds=seconds)
    _show_requests(payouts, show)
    return checkout, payouts


def _show_checkout(checkout: Checkout, show: Show) -> None:
    payment = checkout.payment
    paid = payment is not None and payment.is_successful
    amount = payment.amount.value if payment and payment.amount else None
    asked = "no amount" if amount is None else amount_text(CURRENCY, amount)
    text = f"{asked}: created, paid by a simulated payer, read back as {'paid' if paid else 'NOT paid'}"
    show.step("Checkout", text, good=paid, id=checkout.id, amount=amount, currency=CURRENCY)


def _payment_problems(checkout: Checkout, collected: Decimal) -> Iterator[str]:
    payment = checkout.payment
    if payment is None or not payment.is_successful:
        yield "the checkout was paid, and does not read back as paid"
    elif payment.amount is None or payment.amount.value != collected:
        in_books = amount_text(CURRENCY, collected)
        yield f"the books have {in_books} collected, and the checkout reads back otherwise"


async def _send(client: AsyncPayments, rows: Sequence[Row]) -> list[Payout]:
    left, payouts = iter(rows), list[Payout]()

    async def worker() -> None:
        for row in left:  # shared by the workers: each row is taken once
            payouts.append(await client.payouts.create(**row.request.to_dict()))

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(TASKS):
                group.create_task(worker())
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return payouts


def _show_requests(payouts: Sequence[Payout], show: Show) -> None:
    answers = [payout.response for payout in payouts if payout.response is not None]
    tries = [attempt.reason for answer in answers for attempt in answer.attempts]
    retries, refused = len(tries) - len(answers), tries.count("429")
    replays = sum(answer.replayed for answer in answers)
    text = f"{len(tries):,}: {retries:,} retries, {replays:,} replays, {refused:,} × 429"
    show.step("Requests", text, requests=len(tries), retries=retries, replays=replays, refused=refused)


def _show_faults(payouts: Sequence[Payout], faults: Mapping[str, str], books: Books, show: Show) -> None:
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
