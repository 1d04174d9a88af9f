"""Rows and sums of a batch: a table with a line for each outcome and a column for each currency."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from rich.box import SIMPLE_HEAD
from rich.padding import Padding
from rich.table import Table

from ...bulk import BatchFigures, BatchReport, Cause, Outcome
from ...bulk._texts.advice import after_run
from ...bulk._texts.figures import leading, with_causes
from ...bulk._texts.ledger_address import LedgerAddress
from ...bulk._texts.outcomes import ALWAYS, EXTRA, NAMES, cause_text, more_causes
from ...bulk._texts.quantities import plain_sums
from ...models._masking import clean
from ...models.common import grouped
from .._exit_codes import Exit
from .._output import FirstThatFits, Show
from .._text import print_message

if TYPE_CHECKING:
    from .command_context import CommandContext

_MOST_CAUSES: Final = 10
_STYLES: Final = {
    "asked": "bold",
    **dict.fromkeys(("created", "arrived"), "green"),
    **dict.fromkeys(("returned", "failed", *EXTRA), "bold red"),
    "not_final": "dim",
    **dict.fromkeys(("in_doubt", "rejected", "conflict"), "bold yellow"),
}


def state_table(figures: BatchFigures) -> FirstThatFits:
    """Money by outcome. Those without rows are left out, except the most important ones.

    Currencies that have no room side by side come below it.
    """
    beside, below = _states(figures, [*figures.sums]), _with_list(_states(figures, []), figures)
    return FirstThatFits([Padding(table, (1, 0, 1, 4), expand=False) for table in (beside, below)])


def _states(figures: BatchFigures, beside: Sequence[str]) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("")
    table.add_column("Rows", justify="right", min_width=9)
    for currency in beside:
        table.add_column(currency, justify="right", min_width=12)
    for word, name in NAMES.items():
        number = figures.counts[word]
        if number or word in ALWAYS:
            sums = ((figures.sums[currency][word], currency) for currency in beside)
            cells = (grouped(amount, currency) if amount else "" for amount, currency in sums)
            style = _STYLES.get(word, "") if number else "dim"
            table.add_row(name, f"{number:,}", *cells, style=style)
    return table


def _with_list(table: Table, figures: BatchFigures) -> Table:
    """The table, and below it the currencies, which are too many for columns."""
    both = Table.grid()
    both.add_row(table)
    both.add_row("")
    money = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    word = leading(figures)
    for name in ("", word.capitalize(), "Asked"):
        money.add_column(name, justify="right" if name else "left", min_width=12 if name else None)
    for currency, sums in figures.sums.items():
        money.add_row(currency, grouped(sums[word], currency), grouped(sums["asked"], currency))
    both.add_row(money)
    return both


def show_causes(causes: Sequence[Cause], show: Show) -> None:
    """Show people the rows to look at by cause."""
    for cause in causes[:_MOST_CAUSES]:
        is_open = cause.outcome is Outcome.IN_DOUBT
        show.line(
            NAMES[cause.outcome].strip().capitalize(), cause_text(cause), good=None if is_open else False
        )
    if more := more_causes(causes[_MOST_CAUSES:]):
        show.line("More", more)


def result(report: BatchReport, steps: Iterable[str], causes: Iterable[Cause] = ()) -> dict[str, Any]:
    """A report for programs, with the rows to look at by cause, the exit code and what to do next."""
    return {
        "batch_id": report.batch_id,
        **report.facts(),
        "complete": report.is_complete,
        "balanced": report.is_balanced,
        "stopped": report.stopped,
        "resumable": report.resumable,
        "seconds_until_more": report.next,
        "throttled": report.throttled,
        "doubts": report.doubts,
        "payable": plain_sums(report.payable),
        "causes": [cause.facts() for cause in causes],
        "exit_code": report.exit_code,
        "next": " ".join(steps),
    }


def show_end(
    report: BatchReport, causes: Sequence[Cause], ledger: LedgerAddress, context: CommandContext
) -> Exit:
    """Show how work on a batch has ended, and what to do next."""
    report = with_causes(report, causes)
    steps, code = after_run(report, ledger), Exit(report.exit_code)
    context.show.render(state_table(report))
    if context.as_json:
        context.show.step("Finished", "", good=code is Exit.DONE, **result(report, steps, causes))
    else:
        show_causes(causes, context.show)
    for sentence in steps:
        print_message(clean(sentence))
    return code
