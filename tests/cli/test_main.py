"""The `payments` command itself: what ends as which exit code."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cyclopts import App

import payments_async
from payments_async import ConfigurationError, InvalidRequest, PaymentsError
from tests.support.payout_command import Exit, main, make_app


def given(monkeypatch: pytest.MonkeyPatch, raised: BaseException) -> None:
    def work() -> int:
        raise raised

    monkeypatch.setattr("payments_async._cli._app.COMMANDS", (work,))


@pytest.mark.parametrize("argv", [[], ["--help"]])
def test_help_names_every_command(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == Exit.DONE
    printed = capsys.readouterr().out
    names = ["api", "checkouts", "demo", "doctor", "guard", "mcp", "payouts", "sandbox", "webhooks"]
    assert re.findall(r"^│ ([a-z]+) +\w", printed, re.MULTILINE) == names


def commands(app: App, name: str = "") -> Iterator[str]:
    """Each command below an app, such as `payouts run`; not the groups of commands."""
    for word in app:
        if not word.startswith("-"):
            inner = f"{name} {word}".strip()
            yield from [inner] * (app[word].default_command is not None)
            yield from commands(app[word], inner)


@pytest.mark.parametrize("command", [*commands(make_app())])
def test_a_command_s_help_ends_with_one_list_of_exit_codes(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command.split(), "--help"]) == Exit.DONE
    assert capsys.readouterr().out.count("Exit codes:") == 1


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
    assert main(["work"]) == code
    name = "" if isinstance(error, ConfigurationError) else f"{type(error).__name__}: "
    assert capsys.readouterr().err == f"payments: {name}{error}\n"


def test_ctrl_c_while_the_command_loads_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupted:
        @staticmethod
        def find_spec(name: str, *_: object) -> None:
            raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "payments_async._cli._app")
    monkeypatch.setattr(sys, "meta_path", [Interrupted])
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

    monkeypatch.setattr("payments_async._cli._app.COMMANDS", (work,))
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


@pytest.mark.parametrize(
    ("libraries", "line", "said"),
    [
        (("cyclopts", "rich"), "--help", 'payments needs cyclopts, rich: pip install "payments-sdk[cli]"'),
        (
            ("babel", "jinja2", "segno"),
            "demo",
            'payments: the sandbox needs babel, jinja2, segno: pip install "payments-sdk[sandbox]"',
        ),
        (("mcp",), "mcp", 'payments: payments mcp needs mcp: pip install "payments-sdk[mcp]"'),
    ],
)
def test_without_an_extra_one_line_names_what_a_command_needs(
    libraries: tuple[str, ...], line: str, said: str
) -> None:
    main_of_line = f"from payments_async._cli import main; sys.exit(main({line.split()!r}))"
    code = f"{ABSENT.format(libraries=libraries)}{main_of_line}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (Exit.USAGE, "", f"{said}\n")


COMPLETED = {
    "zsh": (
        r"\*--ledger\[[^']*:ledger:_files'",
        r"\*--instrument\[[^']*:instrument:_files'",
        r"'1:The payouts\. [^']*:_files'",
        r":state:\(created not_started [a-z_ ]*returned\)",
        r"\(/payouts /payment/intents [^)]*/payouts\?status=failed",
    ),
    "fish": (
        r"payouts run' -l ledger -r -F ",
        r"payouts create' -l instrument -r -F ",
        r"payouts export' -l state -x -a 'created not_started [a-z_ ]*returned'",
        r"command api; .* = 1' -f -a '/payouts /payment/intents ",
    ),
}
"""What the scripts of shells that are rarely installed must have."""


@pytest.mark.parametrize("shell", ["bash", *COMPLETED])
def test_completion_can_be_installed(shell: str, tmp_path: Path) -> None:
    script = tmp_path / "payments"
    assert main(["--install-completion", "--shell", shell, "--output", str(script)]) == Exit.DONE
    text = script.read_text()
    assert {"demo", "payouts", "sandbox", "webhooks"} <= set(re.findall(r"\w+", text))
    for wanted in COMPLETED.get(shell, ()):
        assert re.search(wanted, text), wanted
    if shutil.which(shell):
        subprocess.run([shell, "-n", script], check=True)


_COMPLETE = r"""
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_payments; printf '%s\n' "${COMPREPLY[@]}"
"""


@pytest.mark.skipif(not shutil.which("bash"), reason="there is no bash")
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("pay", "payouts"),
        ("payouts status ju", "june.csv june.ledger"),
        ("payouts run ju", "june.csv june.ledger"),
        ("payouts run june.csv --ledger j", "june.csv june.ledger"),
        ("payouts export june.ledger ou", "out.csv"),
        ("payouts export june.ledger out.csv --state not", "not_started not_final"),
        ("payouts create --instrument acc", "account.json"),
        ("guard show --guard g", "guard.toml"),
        ("sandbox --profile h", "hostile"),
        ("api P", "POST PUT PATCH"),
        ("api GET /payment/intents?status=pa", r"/payment/intents\?status=partially_refunded"),
        ("payouts run june.csv --batch-id j", ""),
    ],
)
def test_bash_completes_files_ledgers_states_and_lists(line: str, words: str, tmp_path: Path) -> None:
    main(["--install-completion", "--shell", "bash", "--output", str(tmp_path / "script")])
    for name in ("june.csv", "june.ledger", "out.csv", "account.json", "guard.toml"):
        (tmp_path / name).touch()
    command = ["bash", "-c", _COMPLETE, "bash", "./script", "payments", *line.split(" ")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (sorted(done.stdout.split()), done.stderr) == (sorted(words.split()), "")


@pytest.mark.parametrize(
    ("line", "code", "kind"),
    [
        ("payouts nope --json", Exit.USAGE, "CommandEnded"),
        ("payouts run --json", Exit.USAGE, "CommandEnded"),
        ("payouts run none.csv --json", Exit.USAGE, "SourceUnreadable"),
        ("payouts find R-1 --json", Exit.USAGE, "CommandEnded"),
        ("guard show --guard none.toml --json", Exit.USAGE, "ConfigurationError"),
        ("sandbox --port 1 --scenario nope --json", Exit.USAGE, "ConfigurationError"),
    ],
)
def test_a_refusal_is_told_once_as_json_where_that_is_asked_for(
    line: str, code: Exit, kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("PAYMENTS_API_KEY", raising=False)
    assert main(line.split()) == code
    told = capsys.readouterr()
    refused = json.loads(told.out)
    assert (refused["step"], refused["ok"], refused["exit_code"], refused["kind"]) == (
        *("refused", False),
        *(code, kind),
    )
    assert (told.err, told.out.count("\n")) == ("", 1)
    assert main([word for word in line.split() if word != "--json"]) == code
    told = capsys.readouterr()
    assert (told.err.startswith("payments: "), told.err.count("\n"), told.out) == (True, 1, "")
    assert refused["message"] == told.err.removeprefix("payments: ").rstrip("\n")


def test_python_dash_m_runs_the_command() -> None:
    # a process of its own: pytest's import hook, which a plugin of this distribution turns on, confuses runpy
    for module in ("payments_async", "payments_async._cli"):
        line = [sys.executable, "-m", module, "--version"]
        done = subprocess.run(line, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == payments_async.__version__


def test_a_terminal_without_unicode_gets_question_marks() -> None:
    command = [sys.executable, "-m", "payments_async._cli", "demo", "--payouts", "1"]
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, env=ascii_only, capture_output=True, text=True, check=True)
    assert "? Checkout" in done.stdout


def test_help_does_not_load_the_client_or_the_sandbox() -> None:
    code = (
        "import sys; from payments_async._cli import main; main(['--help'])\n"
        "assert not {'aiohttp', 'payments_async.client', 'payments_async.sandbox'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
