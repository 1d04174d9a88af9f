"""What commands say: the same steps for people and for programs."""

from __future__ import annotations

import io
import json
from decimal import Decimal

import pytest
from rich.console import Console
from rich.text import Text

from payments_async._cli._output import JsonLines, Show, Terminal, show_for


def console(*, terminal: bool) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=60, highlight=False, color_system=None)


def written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def tell(show: Show) -> None:
    """A short story with everything in it."""
    show.heading("Job", "of five")
    with show.progress("Payouts", 5) as advance:
        for _ in range(5):
            advance()
    show.render(Text("a picture"))
    show.step("Books", "they agree", sum=Decimal("10.10"))
    show.step("Books", "they do not", good=False, sum=Decimal("9.10"))


def test_without_a_terminal_people_get_plain_lines_and_one_for_each_quarter() -> None:
    target = console(terminal=False)
    tell(Terminal(target))
    assert written(target).splitlines() == [
        "",
        "Job  of five",
        "  · Payouts    2 of 5",
        "  · Payouts    3 of 5",
        "  · Payouts    4 of 5",
        "  · Payouts    5 of 5",
        "a picture",
        "  ✓ Books      they agree",
        "  ✗ Books      they do not",
    ]


def test_a_terminal_gets_a_bar_that_goes_away() -> None:
    target = console(terminal=True)
    tell(Terminal(target))
    assert "━" in written(target)
    assert "5/5" in written(target)
    assert "·" not in written(target)
    erase_line = "\x1b[2K"
    assert written(target).rindex(erase_line) > written(target).rindex("━")


def test_programs_get_one_json_object_a_line_with_exact_amounts(capsys: pytest.CaptureFixture[str]) -> None:
    tell(JsonLines())
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [
        *({"about": "Job", "progress": "payouts", "done": done, "total": 5} for done in (2, 3, 4, 5)),
        {"about": "Job", "step": "books", "ok": True, "sum": "10.10"},
        {"about": "Job", "step": "books", "ok": False, "sum": "9.10"},
    ]


def test_what_is_copied_stays_on_one_line() -> None:
    target, link = console(terminal=True), "http://127.0.0.1:40000/?token=" + "t" * 26
    Terminal(target).step("Page", link, good=None, wrap=False)
    assert [line.rstrip() for line in written(target).splitlines()] == ["  · Page", f"  {link}"]


def test_the_json_flag_chooses() -> None:
    assert isinstance(show_for(as_json=True), JsonLines)
    assert isinstance(show_for(as_json=False), Terminal)


@pytest.mark.parametrize(("total", "lines"), [(1, 1), (2, 2), (3, 3), (4, 4), (1000, 4)])
def test_progress_never_takes_more_than_four_lines_and_ends_with_all(total: int, lines: int) -> None:
    target = console(terminal=False)
    with Terminal(target).progress("Payouts", total) as advance:
        for _ in range(total):
            advance()
    printed = written(target).splitlines()
    assert len(printed) == lines
    assert printed[-1].endswith(f"{total:,} of {total:,}")
