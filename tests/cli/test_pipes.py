"""A reader that leaves before the end, as `head` does: a command that only shows ends with 141."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.payout_command import Exit, Here, main, payouts_file


@pytest.fixture
def here(here: Here) -> Here:
    payouts_file(here.folder, 2)
    assert here("run", "june.csv").code == Exit.DONE
    return here


@contextmanager
def left(monkeypatch: pytest.MonkeyPatch, *streams: str) -> Iterator[None]:
    """The reader of these streams has left."""
    opened = []
    with monkeypatch.context() as patched:
        for stream in streams:
            end, start = os.pipe()
            os.close(end)
            opened.append(os.fdopen(start, "w", buffering=1 if stream == "stderr" else -1))
            patched.setattr(sys, stream, opened[-1])
        yield
    for file in opened:
        file.close()  # fails when something is left to write


LOOKING = [
    ["payouts", "status", "june.csv.ledger"],
    ["payouts", "show", "june.csv.ledger", "1"],
    ["payouts", "export", "june.csv.ledger", "out.csv", "--overwrite"],
    ["payouts", "retry-failed", "june.csv.ledger", "--dry-run"],
    ["payouts", "run", "--help"],
    ["--version"],
]


@pytest.mark.parametrize("argv", [*LOOKING, *([*argv, "--json"] for argv in LOOKING[:4])], ids=" ".join)
def test_a_command_that_only_shows_ends_with_141_and_no_message(
    here: Here, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], argv: list[str]
) -> None:
    capsys.readouterr()
    with left(monkeypatch, "stdout"):
        assert main(argv) == Exit.READER_LEFT
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "JSON"])
def test_a_run_whose_reader_has_left_stops_in_order(
    here: Here, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    payouts_file(here.folder, 9, name="july.csv")
    with left(monkeypatch, "stdout"):
        assert main(["payouts", "run", "july.csv", *options]) == Exit.RESUMABLE
    assert here("run", "july.csv").code == Exit.DONE
    assert len(here.sandbox.books.payouts()) == 11


def test_an_export_is_whole_though_its_reader_has_left(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    with left(monkeypatch, "stdout"):
        main(["payouts", "export", "june.csv.ledger", "out.csv"])
    assert len((here.folder / "out.csv").read_text().splitlines()) == 3


def test_a_shell_sees_what_it_sees_of_any_other_command(here: Here) -> None:
    status = f"{sys.executable} -m payments_async._cli payouts status june.csv.ledger"
    line = f"{status} 2>&1 | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("141\n", "")
