"""How the demonstration is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import Final

import attrs
from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ...models import Checkout
from .._output import Show
from .compare import Figures
from .payout_file import CURRENCY, FAULTS, Row, total

_GROUPS: Final[tuple[tuple[tuple[str, Callable[[Figures], str]], ...], ...]] = (
    (
        ("Collected", lambda leg: f"{leg.collected:,} {CURRENCY}"),
        ("Payouts asked for", lambda leg: f"{leg.asked:,}"),
        ("Payouts in the books", lambda leg: f"{leg.booked:,}"),
        ("Sum asked for", lambda leg: f"{leg.asked_sum:,} {CURRENCY}"),
        ("Sum in the books", lambda leg: f"{leg.booked_sum:,} {CURRENCY}"),
    ),
    (
        ("Requests", lambda leg: f"{leg.requests:,}"),
        ("Retries", lambda leg: f"{leg.retries:,}"),
        ("Replays", lambda leg: f"{leg.replays:,}"),
        ("Refused (429)", lambda leg: f"{leg.refused:,}"),
    ),
    (
        ("Payouts a second", lambda leg: f"{leg.per_second:,.0f}"),
        ("Limit a second", lambda leg: f"{leg.limit / 60:,.0f}"),
        ("Seconds", lambda leg: f"{leg.seconds:.1f}"),
    ),
)
"""The table's lines, in groups with a rule between them."""

_ANY_WIDTH: Final = 1_000


def tell_plan(file: Path, rows: Sequence[Row], show: Show) -> None:
    """What is going to be sent."""
    show.heading("payments demo", "a simulated service on this machine; nothing leaves it")
    told = f"{len(rows):,} payouts, {total(rows):,} {CURRENCY}"
    show.step("CSV", told, file=file.name, payouts=len(rows), sum=total(rows), currency=CURRENCY)


def tell_checkout(checkout: Checkout, show: Show) -> None:
    """The payment as it was read back."""
    payment = checkout.payment
    paid = payment is not None and payment.is_successful
    amount = payment.amount.value if payment and payment.amount else None
    end = "paid" if paid else "NOT paid"
    told = f"{amount} {CURRENCY}: created, paid by a simulated payer, read back as {end}"
    show.step("Checkout", told, good=paid, id=checkout.id, amount=amount, currency=CURRENCY)


def tell_leg(figures: Figures, show: Show) -> None:
    """One leg's payouts, faults and books."""
    told = f"{figures.asked:,} sent in {figures.seconds:.1f} s, {figures.per_second:,.0f} a second"
    show.step("Payouts", told, sent=figures.asked, seconds=figures.seconds)
    for one in figures.disturbances:
        times = {1: "once"}.get(one.booked, f"{one.booked} times")
        answers = " → ".join(one.tries) + " replayed" * one.replayed
        told = f"{one.reference}  {FAULTS[one.fault]:<14}  {answers:<20}  created {times}"
        show.step("Fault", told, good=one.booked == 1, **attrs.asdict(one))
    if figures.problems:
        for problem in figures.problems:
            show.step("Books", problem, good=False, problem=problem)
        return
    told = f"{figures.booked:,} references, one payout each; {figures.booked_sum:,} {CURRENCY} to the cent"
    show.step("Books", told)


def tell_result(legs: Sequence[Figures], show: Show) -> None:
    """All figures side by side, and whether the books agree."""
    show.heading("Both", "counted from the clients' events and in the simulated service's own books")
    show.picture(_Comparison(legs))
    agree = not any(leg.problems for leg in legs)
    told = "the books agree: nothing lost, nothing paid twice" if agree else "THE BOOKS DO NOT AGREE"
    show.step("Result", told, good=agree, clients=[attrs.asdict(leg) for leg in legs])


@attrs.frozen
class _Comparison:
    """The legs side by side; one after the other where the table would not fit, so that no figure is cut."""

    legs: Sequence[Figures]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = _table(self.legs)
        wanted = console.measure(table, options=options.update(max_width=_ANY_WIDTH)).maximum
        fits = wanted <= options.max_width
        yield table if fits else _lists(self.legs)


def _table(legs: Sequence[Figures]) -> Padding:
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("")
    for leg in legs:
        table.add_column(leg.client, justify="right", min_width=16)
    for group in _GROUPS:
        for name, figure in group:
            table.add_row(name, *(figure(leg) for leg in legs), end_section=name == group[-1][0])
    return Padding(table, (1, 0, 1, 2), expand=False)


def _lists(legs: Sequence[Figures]) -> Text:
    lines = [""]
    for leg in legs:
        lines += [leg.client, *(f"  {name:<20}  {figure(leg)}" for name, figure in chain(*_GROUPS)), ""]
    return Text("\n".join(lines))
