"""The demonstration's work: a payment is collected, the payouts are sent, the books are compared."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Final

import attrs

from ... import AsyncPayments
from ..._runtime import SYSTEM
from ...models import Checkout, Payout
from ...models.common import amount_text
from ...sandbox import Sandbox
from .._exit_codes import Exit
from .._output import Show
from .compare import DemoResult, EventCounts, payment_problems, payout_problems, show_books, show_faults
from .payout_file import CURRENCY, DemoPayout, disturbed, read_csv, show_plan, write_csv

PRICE: Final = Decimal("25.50")
"""Amount that the simulated payer pays, major units."""
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
        sent = asyncio.run(_work(sandbox, rows, show))
        return _compared(sent, rows, faults, sandbox, show)


async def _work(sandbox: Sandbox, rows: Sequence[DemoPayout], show: Show) -> DemoResult:
    counts = EventCounts()
    async with AsyncPayments(sandbox.api_key, base_url=sandbox.base_url, on_event=counts) as client:
        checkout = await client.checkouts.create(amount=PRICE, currency=CURRENCY)
        sandbox.pay(str(checkout.id))  # the payer pays
        checkout = await client.checkouts.retrieve(str(checkout.id))
        _show_checkout(checkout, show)
        started = SYSTEM.monotonic()
        payouts = await _send(client, rows)
        seconds = SYSTEM.monotonic() - started
    text = f"{len(rows):,} sent in {seconds:.1f} s, {len(rows) / seconds:,.0f} a second, {TASKS} at a time"
    show.step("Payouts", text, sent=len(rows), seconds=seconds)
    show.step("Requests", str(counts), **attrs.asdict(counts))
    return DemoResult(checkout, payouts)


async def _send(client: AsyncPayments, rows: Sequence[DemoPayout]) -> list[Payout]:
    left, payouts = iter(rows), list[Payout]()

    async def worker() -> None:
        for row in left:  # shared by the workers: each row is taken once
            payouts.append(await client.payouts.create(**row.arguments()))

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(TASKS):
                group.create_task(worker())
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return payouts


def _show_checkout(checkout: Checkout, show: Show) -> None:
    payment = checkout.payment
    paid = payment is not None and payment.is_successful
    amount = payment.amount.value if payment and payment.amount else None
    end = "paid" if paid else "NOT paid"
    asked = "no amount" if amount is None else amount_text(CURRENCY, amount)
    text = f"{asked}: created, paid by a simulated payer, read back as {end}"
    show.step("Checkout", text, good=paid, id=checkout.id, amount=amount, currency=CURRENCY)


def _compared(
    sent: DemoResult, rows: Sequence[DemoPayout], faults: Mapping[str, str], sandbox: Sandbox, show: Show
) -> Exit:
    """Show what became of each fault, and whether the books agree."""
    books = sandbox.books
    show_faults(sent.payouts, faults, books, show)
    collected = books.collected(CURRENCY)
    return show_books(
        [*payment_problems(sent.checkout, collected), *payout_problems(rows, books)], rows, show
    )
