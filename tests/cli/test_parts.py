"""Parts of the shell: how it wraps; what `payouts` takes, asks and draws; what is read of a delivery."""

from __future__ import annotations

import io
import json
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import attrs
import pytest
from rich.console import Console

from payments_async._cli._exit_codes import CommandEnded
from payments_async._cli._output import JsonLines, Show
from payments_async._cli._text import brief, print_message, wrapped
from payments_async._cli.payouts.confirm import ConfirmOptions, confirm_total, terminal
from payments_async._cli.payouts.options import delimiter_of, moment_of, require_address, seconds_of, state_of
from payments_async._cli.payouts.progress import BarView, LinesView
from payments_async._cli.payouts.summary import show_causes, state_table
from payments_async._cli.webhooks.payload import HIDDEN, read_delivery
from payments_async.bulk import Activity, BatchFigures, Cause, Outcome
from payments_async.bulk._protocol.outcomes import ExtraPayout
from payments_async.bulk._texts.quantities import amount_of, duration_text
from payments_async.bulk.report import batch_figures_of
from tests.cli.test_hostile_text import HOSTILE, assert_harmless
from tests.cli.test_ledger_address import URL
from tests.support.payout_command import Exit
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
    certifies = Activity(doing="reconciling", listed=12)
    bar.show(attrs.evolve(figures(arrived=28, failed=2), activity=certifies), 8.0)
    assert "of 30" not in "".join(drawn(bar, width)), "its end is not known"
    assert_snapshot(drawn(bar, width), "4 certifies")
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
    lines.end(figures(created=30))
    lines.end(figures(created=30))
    printed_last = [json.loads(line)["rows"]["created"] for line in capsys.readouterr().out.splitlines()]
    assert printed_last == [30], "once, so that the last line is not an old one"
    assert [line["rows"]["created"] for line in printed] == [0, 10, 20]
    assert [line["per_second"] for line in printed] == [0.0, 10.0, 10.0]
    assert [line["seconds_left"] for line in printed] == [None, 2, 1]


def test_the_address_is_given_or_of_the_environment_or_beside_the_file() -> None:
    given = require_address("a.ledger", {"PAYMENTS_LEDGER": URL})
    assert (given.text, given.is_default) == ("a.ledger", False)
    default = require_address(None, {"PAYMENTS_LEDGER": URL}, "june.csv.ledger")
    assert (default.text, default.is_default, default.has_visible_password) == (URL, True, False)
    assert require_address(None, {}, "june.csv.ledger").text == "june.csv.ledger"
    with pytest.raises(CommandEnded, match="set PAYMENTS_LEDGER") as missing:
        require_address(None, {"PAYMENTS_LEDGER": ""})
    assert missing.value.code == Exit.USAGE


def test_ctrl_c_just_before_the_answer_is_read_ends_the_question(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter([lambda: None, lambda: signal.raise_signal(signal.SIGINT)])
    monkeypatch.setattr("select.select", lambda *_: (next(looks)(), [], []))
    monkeypatch.setattr("sys.stdin", io.StringIO())
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    ask = terminal()
    assert ask is not None
    with pytest.raises(KeyboardInterrupt):
        ask("Type the GHS total to pay it:")


def test_a_total_is_taken_as_it_was_shown_and_a_slip_is_asked_about_again() -> None:
    said: list[str] = []

    def asking(*typed: str) -> ConfirmOptions:
        answers = iter(typed)

        def ask(text: str) -> str:
            said.append(text)
            return next(answers, "")

        return ConfirmOptions((), True, nullcontext, ask)

    totals = {"GHS": Decimal("5015.15")}
    for typed in ("5015.15", "5,015.15", "GHS 5,015.15", "GHS 5015.150"):
        assert confirm_total(totals, 2, asking(typed)) == "typed back"
    said.clear()
    assert confirm_total(totals, 2, asking("50,15.15", "5,015.16", "5,015.15")) == "typed back"
    assert ["1,200.50" in text for text in said] == [False, True, True]
    for wrong in (["5.015,15"] * 3 + ["5015.15"], [""]):
        with pytest.raises(CommandEnded, match="that is not the GHS total; nothing was sent"):
            confirm_total(totals, 2, asking(*wrong))


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a short text", ["a short text"]),
        ("a text of more than thirty columns", ["a text of more than thirty", "  columns"]),
        ("pay `payments payouts run may.csv` again", ["pay", "  `payments payouts run may.csv`", "  again"]),
        ("thirty columns, less (GHS 1,250.75)", ["thirty columns, less", "  (GHS 1,250.75)"]),
        ("every reading takes as much as 12 s", ["every reading takes as much as", "  12 s"]),
        ('missing: pip install "payments-sdk[cli]"', ["missing:", '  pip install "payments-sdk[cli]"']),
        ("to pay it: --confirm-total 'XCD 1200.50'", ["to pay it:", "  --confirm-total 'XCD 1200.50'"]),
        (f"see {'x' * 40} there", ["see", f"  {'x' * 40}", "  there"]),
        ("first\n  a second line that is longer", ["first", "  a second line that is longer"]),
        ("first\n  a second line, that is longer", ["first", "  a second line, that is", "    longer"]),
        ("first\na paragraph of its own, that is", ["first", "a paragraph of its own, that", "is"]),
    ],
)
def test_a_text_is_wrapped_at_word_ends_and_what_is_copied_stays_whole(text: str, lines: list[str]) -> None:
    assert wrapped(text, 30).split("\n") == lines


def test_a_word_that_is_longer_than_any_of_ours_is_cut() -> None:
    assert brief(f"po_1 {'x' * 100_000}") == f"po_1 {'x' * 200}…"


def test_a_message_is_wrapped_on_a_terminal_and_one_line_in_a_log(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    message = "the ledger is in use; wait for it"
    print_message(message)
    assert capsys.readouterr().err == f"payments: {message}\n"
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    print_message(message, "payments sandbox: ")
    assert capsys.readouterr().err == "payments sandbox: the ledger\n  is in use; wait for it\n"


@pytest.mark.parametrize(
    ("seconds", "text"), [(1.44, "1.4 s"), (200.0, "3 min 20 s"), (7500.0, "2 h 05 min")]
)
def test_times_are_short(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


def test_what_a_delivery_claims_is_harmless() -> None:
    amount = {"formatted": HOSTILE}
    body: Any = {"event": HOSTILE, "payout": {"id": HOSTILE, "status": HOSTILE, "amount": amount}}
    letter = read_delivery(json.dumps(body).encode())
    for text in (letter.event, letter.record, letter.status, letter.amount):
        assert_harmless(text)
        assert "owned" in text
        assert "\n" not in text


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        ({"value": 10.1, "currency": "GHS"}, "GHS 10.10"),
        ({"value": "1250.75", "currency": "GHS"}, "GHS 1,250.75"),
        ({"value": "9" * 60, "currency": "GHS", "formatted": "₵9"}, "₵9"),
        ("0244123456", ""),
    ],
)
def test_an_amount_is_shown_in_our_form_and_what_is_none_as_it_came(amount: object, shown: str) -> None:
    assert read_delivery(json.dumps({"payout": {"amount": amount}}).encode()).amount == shown


@pytest.mark.parametrize(
    "account",
    ["order-22961000077", "BJ66BJ0610100100144390000769", "acct_12345678", "Ada Agbo", 233244123456, ["x"]],
)
def test_a_reference_that_may_be_account_data_is_hidden(account: object) -> None:
    assert read_delivery(json.dumps({"payout": {"reference": account}}).encode()).reference == HIDDEN
