"""Where a batch stands, as a table: a line for each state, a column for each currency."""

from __future__ import annotations

from typing import Final

from rich.box import SIMPLE_HEAD
from rich.padding import Padding
from rich.table import Table

from .amounts import grouped
from .summary import STATES, Figures

_NAMES: Final = {
    "created": "Created",
    "rejected": "Rejected",
    "conflict": "Conflict",
    "in_doubt": "In doubt",
    "in_flight": "Under way",
    "new": "Not started",
    "cancelled": "Cancelled",
}
_ALWAYS: Final = ("created", "rejected", "in_doubt")
_MOST: Final = 3
"""Currencies that fit side by side into 80 columns."""


def standing(figures: Figures) -> Padding:
    """The table; states that no row is in are left out, but for those everybody looks for."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("")
    table.add_column("Rows", justify="right", min_width=9)
    beside = [*figures.sums] if len(figures.sums) <= _MOST else []
    for currency in beside:
        table.add_column(currency, justify="right", min_width=12)
    shown = [state for state in STATES if figures.counts[state] or state in _ALWAYS]
    for state in shown:
        sums = (figures.sum_of(currency, state) for currency in beside)
        cells = (grouped(amount) if amount else "" for amount in sums)
        name, style = _NAMES[state], _style(state, figures)
        ended = _ended(figures) if state == "created" else []
        is_last = state == shown[-1]
        table.add_row(
            name, f"{figures.counts[state]:,}", *cells, style=style, end_section=is_last and not ended
        )
        for told, number, shade in ended:
            table.add_row(
                f"  {told}", f"{number:,}", style=shade, end_section=is_last and told == ended[-1][0]
            )
    totals = (grouped(figures.sum_of(currency, *STATES)) for currency in beside)
    table.add_row("All", f"{figures.rows:,}", *totals)
    return Padding(table if beside else _with_list(table, figures), (1, 0, 1, 4), expand=False)


def _ended(figures: Figures) -> list[tuple[str, int, str]]:
    """What became of the created payouts: name, rows, style."""
    ended = figures.ended
    if ended is None or not figures.counts["created"]:
        return []
    told = [
        ("arrived", ended.arrived, "green"),
        ("failed", ended.failed, "bold red"),
        ("not final yet", ended.awaited, "dim"),
    ]
    return [each for each in told if each[1]]


def _with_list(table: Table, figures: Figures) -> Table:
    """So many currencies stand below each other, with what was created of each."""
    both = Table.grid()
    both.add_row(table)
    both.add_row("")
    money = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in ("", "Created", "All"):
        money.add_column(name, justify="right" if name else "left", min_width=12)
    for currency in figures.sums:
        created, total = figures.sum_of(currency, "created"), figures.sum_of(currency, *STATES)
        money.add_row(currency, grouped(created), grouped(total))
    both.add_row(money)
    return both


def _style(state: str, figures: Figures) -> str:
    if not figures.counts[state]:
        return "dim"
    return {"created": "green", "rejected": "red", "conflict": "red", "in_doubt": "bold yellow"}.get(
        state, ""
    )
