"""Text for people: wrapped at word ends at 80 columns or fewer, whichever command prints it."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from payments_async._cli import _text, main
from payments_async._cli._output import OutputConsole
from payments_async._cli._text import print_message, text_width, wrapped
from payments_async._cli.sandbox import serve
from payments_async.bulk._texts.quantities import duration_text, took_text
from payments_async.sandbox import Sandbox, SandboxLimits
from tests.support.payout_command import environment_of, payouts_file

WIDE = 10_000


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a short text", ["a short text"]),
        ("a text of more than thirty columns", ["a text of more than thirty", "  columns"]),
        (
            "pay `payments payouts run june.csv` again",
            ["pay", "  `payments payouts run june.csv`", "  again"],
        ),
        ("thirty columns, less (GHS 1,250.75)", ["thirty columns, less", "  (GHS 1,250.75)"]),
        ("every reading takes as much as 12 s", ["every reading takes as much as", "  12 s"]),
        ('missing: pip install "payments-sdk[cli]"', ["missing:", '  pip install "payments-sdk[cli]"']),
        ("to pay it: --confirm-total 'XCD 1200.50'", ["to pay it:", "  --confirm-total 'XCD 1200.50'"]),
        (f"see {'x' * 40} there", ["see", f"  {'x' * 40}", "  there"]),
        ("one     two     three     four   five", ["one  two  three  four  five"]),
        ("first\n  a second line that is longer", ["first", "  a second line that is longer"]),
        ("first\n  a second line, that is longer", ["first", "  a second line, that is", "    longer"]),
        ("first\na paragraph of its own, that is", ["first", "a paragraph of its own, that", "is"]),
        ("漢字漢字漢字 漢字漢字漢字 漢字漢字漢字", ["漢字漢字漢字 漢字漢字漢字", "  漢字漢字漢字"]),
    ],
)
def test_a_text_is_wrapped_at_word_ends_and_what_is_copied_stays_whole(text: str, lines: list[str]) -> None:
    assert wrapped(text, 30).split("\n") == lines


def test_a_hanging_indent_leaves_room_for_words() -> None:
    assert wrapped("one two three four", 40, start=30, hang=15).split("\n") == [
        "one two",
        f"{'':15}three four",
    ]
    assert wrapped("one two three four", 30, start=15, hang=15).split("\n") == ["one two three", "  four"]


def test_text_is_as_wide_as_the_terminal_and_80_columns_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    for columns, width in ((50, 50), (80, 80), (200, 80)):
        monkeypatch.setenv("COLUMNS", str(columns))
        assert (text_width(), text_width(columns)) == (width, width)


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


COMMANDS = (
    "payouts run june.csv",
    "payouts run june.csv --max-amount 5 --ledger five.ledger",
    "payouts run june.csv --confirm-total 'XCD 1200.50' --ledger other.ledger",
    "payouts run bad.csv",
    "payouts run missing.csv",
    "payouts run june.csv --dry-run --batch-id other",
    "payouts run june.csv --workers 2",
    "payouts status june.csv.ledger",
    "payouts status five.ledger",
    "payouts status missing.ledger",
    "payouts check june.csv.ledger",
    "payouts export june.csv.ledger out.csv",
    "payouts export june.csv.ledger out.csv",
    "payouts export",
    "payouts reconcile june.csv.ledger",
    "payouts retry-failed june.csv.ledger --dry-run",
    "payouts retry-failed june.csv.ledger --rejected",
    "payouts resume june.csv.ledger",
    "payouts show june.csv.ledger r2",
    "payouts show june.csv.ledger nobody",
    "payouts watch missing.ledger",
    "payouts pause june.csv.ledger",
    "payouts batches postgresql://me:secret@127.0.0.1:1/payments",
    "payouts status postgresql://127.0.0.1:1/payments",
    "payouts drain",
    "doctor",
    "sandbox --seed 1",
    "sandbox --port 1 --scenario nonsense",
    "sandbox exec -- true",
    "sandbox exec --profile strict python -c pass --verbose",
    "sandbox exec -- missing-command",
    "webhooks resend wh_00000001",
    "webhooks listen --forward nowhere",
    "--help",
    "payouts run --help",
)


UNITS = {"ms", "s", "min", "h"}
"""A busy machine takes longer for one of the two runs that are compared."""
COPIED = re.compile(r"  [✓✗·] (?:Command|Written|Head|Missing)\b")
"""Steps whose text is copied."""


def test_no_command_prints_a_line_over_80_columns_or_breaks_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = {}
    for width in (WIDE, 80):
        with Sandbox(limits=SandboxLimits.off()) as sandbox, monkeypatch.context() as patched:
            folder = tmp_path / str(width)
            folder.mkdir()
            patched.chdir(folder)
            on_a_terminal(patched, sandbox, width)
            failing_batch(sandbox, folder)
            shown[width] = [said(line, capsys) for line in COMMANDS]
    for command, wide, narrow in zip(COMMANDS, shown[WIDE], shown[80], strict=True):
        broken = set(plain(narrow)) - set(plain(wide)) - UNITS
        assert broken == set(), f"{command!r} breaks a word"
        assert plain(narrow) != []
        for line in narrow.splitlines():
            is_one_word = len(_text._WORDS.findall(line)) <= 3  # with its mark and label
            assert len(line.rstrip()) <= 80 or is_one_word or COPIED.match(line), (command, line)


def on_a_terminal(patched: pytest.MonkeyPatch, sandbox: Sandbox, width: int) -> None:
    """As on a terminal of this width, which has no colours and moves no cursor."""
    variables = {"COLUMNS": str(width), "FORCE_COLOR": "1", "TERM": "dumb", **environment_of(sandbox)}
    for name, value in variables.items():
        patched.setenv(name, value)
    patched.setattr(_text, "WIDTH", width)
    patched.setattr(OutputConsole, "width", width)  # on a terminal without colours Rich takes it for 80
    patched.setattr(sys.stderr, "isatty", lambda: True)

    def interrupted() -> None:
        raise KeyboardInterrupt

    patched.setattr(serve, "until_interrupted", interrupted)


def failing_batch(sandbox: Sandbox, folder: Path) -> None:
    """A file of which one row is rejected and one payout fails, and one that is faulty."""
    path = payouts_file(folder, 3)
    sandbox.on("payouts.create", amount="1.07").outcome("fail:RECIPIENT_ERROR immediate")
    sandbox.on("payouts.create", amount="2.07").respond("http:422", times=None)
    sandbox.on("payouts.create").outcome("complete immediate")  # however long the commands take
    (folder / "bad.csv").write_text(path.read_text().replace("XCD", "francs").replace("3.07", "3,07"))


def said(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What a command prints, on stdout and stderr."""
    main(shlex.split(command))
    return "".join(capsys.readouterr())


def plain(text: str) -> list[str]:
    """The words of a text, without frames; numbers are those of a run."""
    for pattern, instead in ((r"[─│╭╮╰╯]", " "), (r"\b[0-9a-f]{32,}\b", "0"), (r"[0-9][0-9.,]*", "0")):
        text = re.sub(pattern, instead, text)
    return text.split()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0"),
        (0.0004, "0.4 ms"),
        (0.00168, "1.7 ms"),
        (0.00996, "10 ms"),
        (0.12, "120 ms"),
        (0.9999, "1 s"),
        (1.44, "1.4 s"),
        (63.0, "63 s"),
    ],
)
def test_times_are_short(seconds: float, text: str) -> None:
    assert took_text(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1.44, "1.4 s"), (42.0, "42 s"), (200.0, "3 min 20 s"), (7500.0, "2 h 05 min")],
)
def test_durations_are_short(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text
