"""What `payments demo --machines` has shown: file, ledger and service's books compared, and printed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path

import attrs
from rich.box import SIMPLE_HEAD
from rich.padding import Padding
from rich.table import Table

from ...bulk import Certificate
from ...models.common import amount_text
from ...sandbox import Books
from .._output import Show
from .compare import payout_problems
from .payout_file import CURRENCY, DemoPayout, total


@attrs.frozen
class Kill:
    """A worker that was killed, and the one that took its place."""

    killed: int
    started: int
    done: int
    """Rows that were done."""


@attrs.frozen
class Judged:
    """The figures of the payroll. Sums are in major units of `payout_file.CURRENCY`."""

    asked: int
    created: int
    """Rows that the ledger has as created."""
    booked: int
    """Payouts in the service's books."""
    asked_sum: Decimal
    created_sum: Decimal
    booked_sum: Decimal
    kills: int
    requests: int
    """Requests that the service got to make a payout."""
    seconds: float
    problems: Sequence[str]
    """Differences between file, ledger, list and books; empty when they agree."""


def compare(
    rows: Sequence[DemoPayout],
    certificate: Certificate,
    books: Books,
    *,
    kills: int,
    requests: int,
    seconds: float,
) -> Judged:
    """The figures, with every difference between what was asked for, recorded and paid."""
    booked, booked_sum = Counter(str(entry.reference) for entry in books.payouts()), books.total(CURRENCY)
    report = certificate.report
    created, created_sum = report.counts["created"], report.sums[CURRENCY]["created"]

    def problems() -> Iterator[str]:
        yield from payout_problems(rows, booked, booked_sum)
        if (created, created_sum) != (len(rows), total(rows)):
            yield f"the ledger has {created:,} rows created, {amount_text(CURRENCY, created_sum)}"
        yield from (f"the certificate is not clean: {finding}" for finding in certificate.findings)

    return Judged(
        len(rows),
        created,
        booked.total(),
        total(rows),
        created_sum,
        booked_sum,
        kills,
        requests,
        seconds,
        [*problems()],
    )


def show_plan(file: Path, rows: Sequence[DemoPayout], workers: Sequence[int], show: Show) -> None:
    """Show what will be paid, and by which processes."""
    note = "PostgreSQL, Temporal and a simulated service on this machine; nothing leaves it"
    show.heading("payments demo --machines", note)
    text = f"{len(rows):,} payouts, {amount_text(CURRENCY, total(rows))}"
    show.step("CSV", text, file=file.name, payouts=len(rows), sum=total(rows), currency=CURRENCY)
    text = f"processes {', '.join(map(str, workers))}; at most every 2 s one is killed"
    show.step("Workers", text, workers=workers)


def show_pages(workflow: str, batch: str, show: Show) -> None:
    """Show the addresses of the two pages."""
    show.step("Temporal", workflow, good=None, wrap=False, address=workflow)
    show.step("Page", batch, good=None, wrap=False, address=batch)


def show_kill(kill: Kill, rows: int, show: Show) -> None:
    """Show one kill."""
    text = f"{kill.killed} with {kill.done:,} of {rows:,} rows done; {kill.started} in its place"
    show.step("kill -9", text, good=None, **attrs.asdict(kill))


def show_figures(figures: Judged, show: Show) -> None:
    """Show the figures, and whether file, ledger, list and books agree."""
    rate = f"closed after {figures.seconds:.0f} s and {figures.kills:,} kills"
    show.step("Batch", rate, seconds=figures.seconds, kills=figures.kills)
    for problem in figures.problems:
        show.step("Books", problem, good=False, problem=problem)
    if not figures.problems:
        show.step("Books", f"{figures.booked:,} references, one payout each, to the cent")
        show.step("Ledger", "its certificate is clean: the service's list agrees with it")
    show.render(_table(figures))
    text = (
        "the books agree: nothing lost, nothing paid twice"
        if not figures.problems
        else "THE BOOKS DO NOT AGREE"
    )
    show.step("Result", text, good=not figures.problems, **attrs.asdict(figures))


def _table(figures: Judged) -> Padding:
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("")
    table.add_column("payouts", justify="right")
    table.add_column("sum", justify="right")
    for name, count, amount in (
        ("Asked for", figures.asked, figures.asked_sum),
        ("Created in the ledger", figures.created, figures.created_sum),
        ("In the service's books", figures.booked, figures.booked_sum),
    ):
        table.add_row(name, f"{count:,}", amount_text(CURRENCY, amount))
    table.add_section()
    table.add_row("Requests to pay", f"{figures.requests:,}", "")
    table.add_row("Workers killed", f"{figures.kills:,}", "")
    return Padding(table, (1, 0, 1, 2), expand=False)
