"""Runs the demonstration: the payment and the payouts, awaited and blocking."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs

from ... import AsyncPayments
from ..._runtime import SYSTEM
from ...models import Checkout, Payout
from ...sandbox import Sandbox
from .._exit_codes import Exit
from .._output import Show
from .compare import ClientFigures, EventCounts, SendResult, compare
from .output import show_checkout, show_figures, show_plan, show_result
from .payout_file import CURRENCY, DemoPayout, disturbed, read_csv, write_csv

if TYPE_CHECKING:
    from payments_sync import Payments

PRICE: Final = Decimal("25.50")
"""Amount that the simulated payer pays, major units."""
TASKS: Final = 64
THREADS: Final = 16


@attrs.frozen
class Job:
    """The work of one client."""

    sandbox: Sandbox
    rows: Sequence[DemoPayout]
    counts: EventCounts
    show: Show


def awaited(job: Job) -> SendResult:
    """Collect the payment and send the payouts with `AsyncPayments`; PaymentsError when a call fails."""
    return asyncio.run(_awaited(job))


async def _awaited(job: Job) -> SendResult:
    async with AsyncPayments(
        job.sandbox.api_key, base_url=job.sandbox.base_url, on_event=job.counts
    ) as client:
        checkout = await _collect(client, job.sandbox)
        show_checkout(checkout, job.show)
        started = SYSTEM.monotonic()
        with job.show.progress("Payouts", len(job.rows)) as advance:
            payouts = await _send(client, job.rows, advance)
        return SendResult(checkout, payouts, SYSTEM.monotonic() - started, client.limits_snapshot()["write"])


async def _collect(client: AsyncPayments, sandbox: Sandbox) -> Checkout:
    checkout = await client.checkouts.create(amount=PRICE, currency=CURRENCY)
    sandbox.pay(str(checkout.id))
    return await client.checkouts.retrieve(str(checkout.id))


async def _send(
    client: AsyncPayments, rows: Sequence[DemoPayout], advance: Callable[[], None]
) -> list[Payout]:
    left, payouts = iter(rows), list[Payout]()

    async def worker() -> None:
        for row in left:  # shared by the workers: each row is taken once
            payouts.append(await client.payouts.create(**row.arguments()))
            advance()

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(TASKS):
                group.create_task(worker())
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return payouts


def blocking(job: Job) -> SendResult:
    """Collect the payment and send the payouts with `Payments`; PaymentsError when a call fails."""
    from payments_sync import Payments  # it imports this package

    with Payments(job.sandbox.api_key, base_url=job.sandbox.base_url, on_event=job.counts) as client:
        checkout = _collect_blocking(client, job.sandbox)
        show_checkout(checkout, job.show)
        started = SYSTEM.monotonic()
        with job.show.progress("Payouts", len(job.rows)) as advance:
            payouts = _send_blocking(client, job.rows, advance)
        return SendResult(checkout, payouts, SYSTEM.monotonic() - started, client.limits_snapshot()["write"])


def _collect_blocking(client: Payments, sandbox: Sandbox) -> Checkout:
    checkout = client.checkouts.create(amount=PRICE, currency=CURRENCY)
    sandbox.pay(str(checkout.id))
    return client.checkouts.retrieve(str(checkout.id))


def _send_blocking(client: Payments, rows: Sequence[DemoPayout], advance: Callable[[], None]) -> list[Payout]:
    payouts = list[Payout]()

    def send(row: DemoPayout) -> Payout:
        return client.payouts.create(**row.arguments())

    with ThreadPoolExecutor(THREADS) as pool:
        for payout in pool.map(send, rows):
            payouts.append(payout)
            advance()
    return payouts


@attrs.frozen
class Surface:
    """A client and its way of working."""

    client: str
    manner: str
    work: Callable[[Job], SendResult]


SURFACES: Final = (
    Surface("AsyncPayments", f"awaited, {TASKS} at a time", awaited),
    Surface("Payments", f"blocking, {THREADS} threads", blocking),
)


def run_demo(count: int, seed: int, show: Show) -> Exit:
    """Send `count` payouts with each client; `Exit.REFUSED` when the books do not agree.

    Raises PaymentsError when a call fails for good.
    """
    with tempfile.TemporaryDirectory(prefix="payments-demo-") as folder:
        file = write_csv(Path(folder) / "payouts.csv", count, seed)
        rows = read_csv(file)
    show_plan(file, rows, show)
    faults = disturbed(rows, seed)
    done = [_run(surface, rows, faults, seed + number, show) for number, surface in enumerate(SURFACES)]
    show_result(done, show)
    return Exit.REFUSED if any(figures.problems for figures in done) else Exit.DONE


def _run(
    surface: Surface, rows: Sequence[DemoPayout], faults: Mapping[str, str], seed: int, show: Show
) -> ClientFigures:
    """Do the work with one client and a sandbox that disturbs the payouts in `faults`; compare its books."""
    show.heading(surface.client, surface.manner)
    counts = EventCounts()
    with Sandbox(seed=seed) as sandbox:
        for reference, fault in faults.items():
            sandbox.on("payouts.create", reference=reference).respond(fault)
        sent = surface.work(Job(sandbox, rows, counts, show))
        figures = compare(surface.client, rows, faults, sent, counts, sandbox.books)
    show_figures(figures, show)
    return figures
