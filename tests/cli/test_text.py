"""What commands say: the same steps for people, wrapped at 80 columns or fewer, and for programs."""

from __future__ import annotations

import io
import json
import re
import shlex
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from rich.console import Console
from rich.text import Text

from payments_async._cli import _text, main
from payments_async._cli._output import OutputConsole, Show, show_for
from payments_async._cli._text import print_message, wrapped
from payments_async._cli.sandbox import serve
from payments_async.bulk._texts.quantities import duration_text
from payments_async.sandbox import Sandbox, SandboxLimits
from tests.support.payout_command import environment_of, payouts_file

WIDE = 10_000


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
    "payouts run june.csv --dry-run --batch-id other",
    "payouts status june.csv.ledger",
    "payouts status missing.ledger",
    "payouts export june.csv.ledger out.csv",
    "payouts export june.csv.ledger out.csv",
    "payouts reconcile june.csv.ledger",
    "payouts retry-failed june.csv.ledger --dry-run",
    "payouts show june.csv.ledger r2",
    "payouts pause june.csv.ledger",
    "payouts batches postgresql://me:secret@127.0.0.1:1/payments",
    "payouts find invoice-7",
    "payouts drain",
    "doctor",
    "sandbox --seed 1",
    "sandbox exec -- true",
    "sandbox exec --profile strict python -c pass --verbose",
    "webhooks resend wh_00000001",
    "webhooks listen --forward nowhere",
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
            words = _text._UNBROKEN.sub("x", line).split()
            is_one_word = len(words) <= 3  # with its mark and label
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
