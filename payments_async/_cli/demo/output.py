"""The output of the demonstration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import Final

import attrs
from rich.box import SIMPLE_HEAD
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ...models import Checkout
from ...models.common import amount_text
from .._output import FirstThatFits, Show
from .compare import ClientFigures
from .payout_file import CURRENCY, FAULTS, DemoPayout, total

_GROUPS: Final[tuple[tuple[tuple[str, Callable[[ClientFigures], str]], ...], ...]] = (
    (
        ("Collected", lambda of: amount_text(CURRENCY, of.collected)),
        ("Payouts asked for", lambda of: f"{of.asked:,}"),
        ("Payouts in the books", lambda of: f"{of.booked:,}"),
        ("Sum asked for", lambda of: amount_text(CURRENCY, of.asked_sum)),
        ("Sum in the books", lambda of: amount_text(CURRENCY, of.booked_sum)),
    ),
    (
        ("Requests", lambda of: f"{of.requests:,}"),
        ("Retries", lambda of: f"{of.retries:,}"),
        ("Replays", lambda of: f"{of.replays:,}"),
        ("Refused (429)", lambda of: f"{of.refused:,}"),
    ),
    (
        ("Payouts a second", lambda of: f"{of.per_second:,.0f}"),
        ("Limit a second", lambda of: f"{of.limit / 60:,.0f}"),
        ("Seconds", lambda of: f"{of.seconds:.1f}"),
    ),
)
"""The lines of the table, in groups with a rule between them."""


def show_plan(file: Path, rows: Sequence[DemoPayout], show: Show) -> None:
    """Show what will be sent."""
    show.heading("payments demo", "a simulated service on this machine; nothing leaves it")
    text = f"{len(rows):,} payouts, {amount_text(CURRENCY, total(rows))}"
    show.step("CSV", text, file=file.name, payouts=len(rows), sum=total(rows), currency=CURRENCY)


def show_checkout(checkout: Checkout, show: Show) -> None:
    """Show the payment as it was read back."""
    payment = checkout.payment
    paid = payment is not None and payment.is_successful
    amount = payment.amount.value if payment and payment.amount else None
    end = "paid" if paid else "NOT paid"
    asked = "no amount" if amount is None else amount_text(CURRENCY, amount)
    text = f"{asked}: created, paid by a simulated payer, read back as {end}"
    show.step("Checkout", text, good=paid, id=checkout.id, amount=amount, currency=CURRENCY)


def show_figures(figures: ClientFigures, show: Show) -> None:
    """Show one client's payouts, faults and books."""
    text = f"{figures.asked:,} sent in {figures.seconds:.1f} s, {figures.per_second:,.0f} a second"
    show.step("Payouts", text, sent=figures.asked, seconds=figures.seconds)
    for one in figures.disturbances:
        times = {1: "once"}.get(one.booked, f"{one.booked} times")
        answers = " → ".join(one.tries) + " replayed" * one.replayed
        text = f"{one.reference}  {FAULTS[one.fault]:<14}  {answers:<20}  created {times}"
        show.step("Fault", text, good=one.booked == 1, **attrs.asdict(one))
    if figures.problems:
        for problem in figures.problems:
            show.step("Books", problem, good=False, problem=problem)
        return
    booked_sum = amount_text(CURRENCY, figures.booked_sum)
    text = f"{figures.booked:,} references, one payout each; {booked_sum} to the cent"
    show.step("Books", text)


def show_result(results: Sequence[ClientFigures], show: Show) -> None:
    """Show all figures side by side, and whether the books agree."""
    show.heading("Both", "counted from the clients' events and in the simulated service's own books")
    show.render(FirstThatFits([_table(results), _lists(results)]))
    agree = not any(figures.problems for figures in results)
    text = "the books agree: nothing lost, nothing paid twice" if agree else "THE BOOKS DO NOT AGREE"
    show.step("Result", text, good=agree, clients=[attrs.asdict(figures) for figures in results])


def _table(results: Sequence[ClientFigures]) -> Padding:
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("")
    for figures in results:
        table.add_column(figures.client, justify="right", min_width=16)
    for group in _GROUPS:
        for name, figure in group:
            table.add_row(name, *(figure(each) for each in results), end_section=name == group[-1][0])
    return Padding(table, (1, 0, 1, 2), expand=False)


def _lists(results: Sequence[ClientFigures]) -> Text:
    lines = [""]
    for figures in results:
        listed = (f"  {name:<20}  {figure(figures)}" for name, figure in chain(*_GROUPS))
        lines += [figures.client, *listed, ""]
    return Text("\n".join(lines))
