"""What `payments payouts` counts, takes, advises and draws, without a run."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal

import attrs
import pytest
from rich.console import Console

from payments_async._cli._output import JsonLines, Show
from payments_async._cli.payouts.options import (
    delimiter_of,
    moment_of,
    seconds_of,
    state_of,
)
from payments_async._cli.payouts.progress import BarView, LinesView
from payments_async._cli.payouts.summary import show_causes, state_table
from payments_async.bulk import Activity, BatchFigures, Cause, Outcome
from payments_async.bulk._protocol.outcomes import ExtraPayout
from payments_async.bulk._texts.quantities import amount_of
from payments_async.bulk.report import batch_figures_of
from tests.support.snapshots import Snapshots


def figures(
    amount: str = "1.50", currencies: Sequence[str] = ("XCD",), in_excess: int = 0, **rows: int
) -> BatchFigures:
    """So many rows of each outcome, each of 1.50; `created` ones are not final."""
    totals = {
        (Outcome("not_final" if word == "created" else word), currency): (number, Decimal(amount) * number)
        for word, number in rows.items()
        for currency in currencies
    }
    return batch_figures_of(totals, {(ExtraPayout.IN_EXCESS, "XCD"): (in_excess, Decimal(in_excess))})


def drawn(renderable: object, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    console.print(renderable)
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


DAY = datetime(2026, 6, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("read", "given"),
    [
        (seconds_of, {"90": 90, "90s": 90, "15m": 900, "2h": 7200, "1.5h": 5400, "0": 0}),
        (amount_of, {"1200.50": Decimal("1200.50"), "7": 7}),
        (moment_of, dict.fromkeys(("2026-06-30", "2026-06-30T00:00:00Z", "2026-06-30T01:00:00+01:00"), DAY)),
        (state_of, {"not-final": "not_final", "in_doubt": "in_doubt", "created": "created"}),
        (delimiter_of, {";": ";", "|": "|", "tab": "\t", "\\t": "\t", "\t": "\t"}),
    ],
)
def test_options_are_read_as_people_write_them(
    read: Callable[[str], object], given: Mapping[str, object]
) -> None:
    assert {text: read(text) for text in given} == given


@pytest.mark.parametrize(
    ("read", "texts", "said"),
    [
        (seconds_of, ("", "-1", "soon", "1w", "1e9", "٣", "nan", "31d", " 5", "1h30m"), "is not a duration"),
        (
            amount_of,
            ("0", "0.00", "-1", "1e3", "NaN", "Infinity", "1,200", "٣", "", "1."),
            "is not an amount",
        ),
        (moment_of, ("30.6.2026", "", "yesterday", "2026-06-31"), "is not a date"),
        (state_of, ("lost",), "is not a state: there are created, not_started,"),
        (delimiter_of, ("", ";;", "a", "1", '"', "'", " ", "\n"), "is not a delimiter"),
    ],
)
def test_what_is_no_such_option_is_refused(
    read: Callable[[str], object], texts: Sequence[str], said: str
) -> None:
    for text in texts:
        with pytest.raises(ValueError, match=said):
            read(text)


def test_people_see_the_largest_causes_and_how_many_more_there_are(
    capsys: pytest.CaptureFixture[str], assert_snapshot: Snapshots
) -> None:
    sums = {"GHS": Decimal("649.60"), "XCD": Decimal("10.10")}
    rejected = Cause(Outcome.REJECTED, "HTTP 422: The given data was invalid.", 20, sums)
    doubt = Cause(Outcome.IN_DOUBT, None, 1, {"GHS": Decimal("0.10")})
    long = Cause(Outcome.FAILED, "so long " * 40, 2, {"GHS": Decimal(2)})
    unclear = Cause(Outcome.NOT_FINAL, "completed with failed_at", 1, {"GHS": Decimal(1)})
    show_causes([doubt, unclear, rejected, *[long] * 10], Show())
    assert_snapshot(capsys.readouterr().out)
    show_causes([], Show())
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("width", [60, 80])
def test_the_bar_fits_the_terminal_and_shows_what_is_done(width: int, assert_snapshot: Snapshots) -> None:
    bar = BarView("Paying")
    assert_snapshot(drawn(bar, width), "0")
    bar.show(figures(not_started=10_000), 0.0)
    paid = figures(not_started=8_000, created=1_990, rejected=7, in_doubt=3)
    bar.show(attrs.evolve(paid, activity=Activity(doing="paying")), 2.0)
    assert_snapshot(drawn(bar, width), "1 pays")
    waits = Activity(doing="waiting", why="rows have no clear answer yet", next_look=12.2)
    bar.show(attrs.evolve(figures(in_doubt=3, created=1), activity=waits), 4.0)
    bar.note("Ctrl-C: finishing")
    assert_snapshot(drawn(bar, width), "2 waits")
    follows = Activity(doing="following", next_look=9.0)
    bar.show(attrs.evolve(figures("1", arrived=20, failed=2, created=8), activity=follows), 6.0)
    assert_snapshot(drawn(bar, width), "3 follows")
    assert max(map(len, drawn(bar, width))) <= width


def test_the_table_fits_the_terminal_and_shows_what_became_of_rows(assert_snapshot: Snapshots) -> None:
    tables = {
        "ended": figures(arrived=2, returned=1, failed=3, created=4),
        "five currencies": figures(str(10**12), ("GHS", "KES", "NGN", "XAF", "XCD"), created=1),
    }
    for name, table in tables.items():
        lines = drawn(state_table(table), 60)
        assert max(map(len, lines)) <= 60
        assert_snapshot(lines, name)


def test_lines_come_at_most_once_a_second(capsys: pytest.CaptureFixture[str]) -> None:
    lines = LinesView(JsonLines())
    for moment in range(30):
        lines.show(figures(not_started=30 - moment, created=moment), moment / 10)
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["rows"]["created"] for line in printed] == [0, 10, 20]
    assert [line["per_second"] for line in printed] == [0.0, 10.0, 10.0]
    assert [line["seconds_left"] for line in printed] == [None, 2, 1]
