"""The `payments` command itself: what ends as which exit code."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import payments_async
from payments_async import ConfigurationError, InvalidRequest, PaymentsError, _cli
from payments_async._cli import _app, main
from payments_async._cli._exit_codes import Exit, exit_of
from payments_async._cli._help import commands_of, examples


def given(monkeypatch: pytest.MonkeyPatch, raised: BaseException) -> None:
    """Make `payments work` a command that ends with this error."""

    def work() -> int:
        raise raised

    monkeypatch.setattr(_app, "COMMANDS", (work,))


@pytest.mark.parametrize("argv", [[], ["--help"]])
def test_help_names_every_command(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == Exit.DONE
    printed = capsys.readouterr().out
    names = ["api", "checkouts", "demo", "doctor", "guard", "mcp", "payouts", "sandbox", "webhooks"]
    assert re.findall(r"^│ ([a-z]+) +\w", printed, re.MULTILINE) == names


def commands() -> list[str]:
    """Each command, such as `payouts run`; not the groups of commands."""
    return [name for name, app in commands_of(_app.make_app()) if app.default_command is not None]


@pytest.mark.parametrize("command", commands())
def test_a_command_s_help_ends_with_examples_that_it_understands_and_one_list_of_exit_codes(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command.split(), "--help"]) == Exit.DONE
    printed = capsys.readouterr().out
    assert printed.count("Exit codes:") == 1
    lines = printed.partition("Examples:")[2].splitlines()
    assert examples(command)
    for example in examples(command):
        assert {each.strip() for each in example.split("\n")} <= {line.strip() for line in lines}
        assert all(len(each) <= 80 for each in example.split("\n"))
        words = shlex.split(example.replace("\\\n", ""))[1:]
        _app.make_app().parse_args(words, exit_on_error=False, print_error=False)


def test_help_explains_every_option_on_two_screens(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["payouts", "run", "--help"]) == Exit.DONE
    printed = capsys.readouterr().out
    assert len(re.findall(r"^│ --[a-z-]+ ", printed, re.MULTILINE)) == 27
    assert len(printed.splitlines()) <= 2 * 50


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("nope", 'unknown command "nope"; `payments --help` shows how it is used'),
        ("payouts rn", 'unknown command "rn"; did you mean "run"? `payments payouts --help` shows'),
        ("demo --nope", "unknown option: --nope; `payments demo --help` shows how it is used"),
        ("demo --seed", "--seed needs a value; `payments demo"),
        ("demo --payouts many", 'invalid value for --payouts: unable to convert "many" into int; `payments'),
        ("demo --payouts 0", 'invalid value "0" for --payouts; must be >= 1; `payments demo'),
        ("demo x y", "unexpected argument: x y; `payments demo"),
        ("payouts run", "FILE is missing, or the ledger of a batch to join (--ledger)"),
        ("payouts run june.csv --workers 2", "unknown option: --workers; `payments payouts run --help`"),
        ("payouts forget db", "--before is missing; `payments payouts forget --help`"),
        ("payouts forget --before=", "'' is not a date"),
        ("payouts create --reference R-1", "--amount is missing; `payments payouts create --help`"),
        ("trigger payout.failed", 'unknown command "trigger"'),
        ("sandbox exec pytest -x", "put -- before the command: `payments sandbox exec -- python first.py`"),
    ],
)
def test_an_error_of_use_is_one_message_as_any_other_and_exits_2(
    line: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(line.split()) == Exit.USAGE
    captured = capsys.readouterr()
    assert captured.err.startswith("payments: ")
    assert said in captured.err
    assert (captured.err.count("\n"), captured.out) == (1, "")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (PaymentsError("no", effect="none"), Exit.REFUSED),
        (PaymentsError("paid, unreadable", effect="happened"), Exit.REFUSED),
        (ConfigurationError("--port: is taken"), Exit.USAGE),
        (PaymentsError("who knows", effect="unknown"), Exit.OUTCOME_UNKNOWN),
        (InvalidRequest({"amount": ["too small"]}), Exit.REFUSED),
    ],
)
def test_an_error_is_one_line_and_its_effect_decides_the_exit_code(
    error: PaymentsError, code: Exit, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given(monkeypatch, error)
    assert main(["work"]) == code == exit_of(error)
    name = "" if isinstance(error, ConfigurationError) else f"{type(error).__name__}: "
    assert capsys.readouterr().err == f"payments: {name}{error}\n"


def test_ctrl_c_while_the_command_loads_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(_cli, "missing_libraries", interrupted)
    assert main(["work"]) == Exit.INTERRUPTED
    assert capsys.readouterr().err == "payments: stopped\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the disk that is always full is Linux's")
@pytest.mark.parametrize(
    "argv", [["--help"], ["demo", "--payouts", "1"], ["demo", "--payouts", "1", "--json"]]
)
def test_a_full_disk_is_one_line_and_exits_1(argv: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "payments_async._cli", *argv],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (Exit.REFUSED, "payments: No space left on device\n")


def test_what_was_said_before_a_failure_of_the_machine_is_not_lost(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def work() -> int:
        print("half")
        raise OSError("no file descriptors left")

    monkeypatch.setattr(_app, "COMMANDS", (work,))
    assert main(["work"]) == Exit.REFUSED
    assert capsys.readouterr() == ("half\n", "payments: no file descriptors left\n")


def test_a_broken_import_is_not_taken_for_a_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, ImportError("cannot import name"))
    with pytest.raises(ImportError, match="cannot import name"):
        main(["work"])


ABSENT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {libraries!r}:
            raise ModuleNotFoundError("not installed", name=name)

sys.meta_path.insert(0, Absent())
"""
"""Imports fail as they do where the library was never installed."""


def without(libraries: tuple[str, ...], *words: str) -> subprocess.CompletedProcess[str]:
    """Run `payments` where these libraries were never installed."""
    code = (
        f"{ABSENT.format(libraries=libraries)}from payments_async._cli import main; sys.exit(main({words!r}))"
    )
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_without_extras_one_line_names_all_that_a_command_needs() -> None:
    done = without(("cyclopts", "rich", "babel", "jinja2", "segno"), "demo")
    assert (done.returncode, done.stdout) == (Exit.USAGE, "")
    assert done.stderr == (
        'payments demo needs cyclopts, rich, babel, jinja2, segno: pip install "payments-sdk[cli,sandbox]"\n'
    )


def test_without_extras_the_help_and_the_version_are_there() -> None:
    done = without(("cyclopts",), "--help")
    assert (done.returncode, done.stderr) == (Exit.DONE, "")
    assert 'payments payouts   pip install "payments-sdk[cli,bulk]"' in done.stdout
    nothing = without(("cyclopts",))
    assert (nothing.returncode, nothing.stdout, nothing.stderr) == (Exit.USAGE, "", done.stdout)
    assert without(("rich",), "--version").stdout == f"{payments_async.__version__}\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_can_be_installed(shell: str, tmp_path: Path) -> None:
    script = tmp_path / "payments"
    assert main(["--install-completion", "--shell", shell, "--output", str(script)]) == Exit.DONE
    assert {"demo", "payouts", "sandbox", "webhooks"} <= set(re.findall(r"\w+", script.read_text()))


def test_python_dash_m_runs_the_command() -> None:
    # a process of its own: pytest's import hook, which a plugin of this distribution turns on, confuses runpy
    for module in ("payments_async", "payments_async._cli"):
        line = [sys.executable, "-m", module, "--version"]
        done = subprocess.run(line, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == payments_async.__version__


def test_a_terminal_without_unicode_gets_question_marks() -> None:
    done = run_command("demo", "--payouts", "1", encoding="ascii")
    assert done.returncode == Exit.DONE, done.stderr
    assert "? Checkout" in done.stdout


def test_help_does_not_load_the_client_or_the_sandbox() -> None:
    code = (
        "import sys; from payments_async._cli import main; main(['--help'])\n"
        "assert not {'aiohttp', 'payments_async.client', 'payments_async.sandbox'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)


def run_command(*argv: str, encoding: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "payments_async._cli", *argv],
        env={**os.environ, "PYTHONIOENCODING": encoding},
        capture_output=True,
        text=True,
        check=False,
    )
