"""What commands say: the same steps for people, wrapped at 80 columns or fewer, and for programs."""

from __future__ import annotations

import io
import json
import sys
from decimal import Decimal

import pytest
from rich.console import Console
from rich.text import Text

from payments_async._cli._output import Show, show_for
from payments_async._cli._text import brief, print_message, wrapped
from payments_async.bulk._texts.quantities import duration_text


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


# Steps


def tell(show: Show) -> None:
    """A short story with everything in it."""
    show.heading("Job", "of five")
    show.render(Text("a picture"))
    show.step("Books", "they agree", sum=Decimal("10.10"))
    show.step("Books", "they do not", good=False, sum=Decimal("9.10"))
    show.step("Page", LINK, good=None, wrap=False)
    show.line("Note", "for people")
    show.paragraph("the end")


LINK = "http://127.0.0.1:40000/?token=" + "t" * 26


def test_people_get_plain_lines_and_what_is_copied_on_one() -> None:
    target = Console(file=io.StringIO(), width=60, highlight=False, color_system=None)
    tell(Show(target))
    assert isinstance(target.file, io.StringIO)
    assert [line.rstrip() for line in target.file.getvalue().splitlines()] == [
        *("", "Job  of five", "a picture", "  ✓ Books      they agree", "  ✗ Books      they do not"),
        *("  · Page", f"  {LINK}", "  · Note       for people", "  the end"),
    ]


def test_programs_get_one_json_object_a_line_with_exact_amounts(capsys: pytest.CaptureFixture[str]) -> None:
    tell(show_for(as_json=True))
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [
        {"about": "Job", "step": "books", "ok": True, "sum": "10.10"},
        {"about": "Job", "step": "books", "ok": False, "sum": "9.10"},
        {"about": "Job", "step": "page", "ok": True},
    ]
