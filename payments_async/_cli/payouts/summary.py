"""Rows and sums of a batch: a table with a line for each outcome."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from rich.box import SIMPLE_HEAD
from rich.padding import Padding
from rich.table import Table

from ...bulk import BatchFigures, BatchReport, Cause, Outcome
from ...bulk._texts.advice import after_run
from ...bulk._texts.figures import shortfall_text, with_causes
from ...bulk._texts.ledger_address import LedgerAddress
from ...bulk._texts.outcomes import ALWAYS, EXTRA, NAMES, cause_text, more_causes
from ...bulk._texts.quantities import plain_sums
from ...models._masking import clean
from ...models.common import amount_text
from .._exit_codes import Exit
from .._output import Show
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


def state_table(figures: BatchFigures) -> Padding:
    """Money by outcome. Those without rows are left out, except the most important ones."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("")
    table.add_column("Rows", justify="right", min_width=9)
    table.add_column("Money", justify="right")
    for word, name in NAMES.items():
        number = figures.counts[word]
        if number or word in ALWAYS:
            money = [amount_text(code, sums[word]) for code, sums in figures.sums.items() if sums[word]]
            style = _STYLES.get(word, "") if number else "dim"
            table.add_row(name, f"{number:,}", "\n".join(money), style=style)
    return Padding(table, (1, 0, 1, 4), expand=False)


def show_money(figures: BatchFigures, show: Show) -> None:
    """The money by outcome, and what of it did not arrive."""
    show.render(state_table(figures))
    if text := shortfall_text(figures):
        show.line("Shortfall", text, good=False)


def show_causes(causes: Sequence[Cause], show: Show) -> None:
    for cause in causes[:_MOST_CAUSES]:
        is_open = cause.outcome is Outcome.IN_DOUBT
        show.line(
            NAMES[cause.outcome].strip().capitalize(), cause_text(cause), good=None if is_open else False
        )
    if more := more_causes(causes[_MOST_CAUSES:]):
        show.line("More", more)


def show_unreadable(rows: Iterable[str], show: Show) -> None:
    for trouble in rows:
        show.line("Unreadable", trouble, good=False)


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
        "unreadable": list(report.unreadable),
        "doubts": report.doubts,
        "payable": plain_sums(report.payable),
        "causes": [cause.facts() for cause in causes],
        "exit_code": report.exit_code,
        "next": " ".join(steps),
    }


def show_end(
    report: BatchReport, causes: Sequence[Cause], ledger: LedgerAddress, context: CommandContext
) -> Exit:
    report = with_causes(report, causes)
    steps, code = after_run(report, ledger), Exit(report.exit_code)
    show_money(report, context.show)
    if context.as_json:
        context.show.step("Finished", "", good=code is Exit.DONE, **result(report, steps, causes))
    else:
        show_causes(causes, context.show)
        show_unreadable(report.unreadable, context.show)
    for sentence in steps:
        print_message(clean(sentence))
    return code
