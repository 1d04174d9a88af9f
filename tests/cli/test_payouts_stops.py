"""`payments payouts run` stopped, cut off and killed in processes of its own, and resumed."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import Any

import pytest

from payments_async._cli import main
from payments_async._cli._exit_codes import Exit
from payments_async._cli.payouts.run import RunProgress
from payments_async.bulk import BatchFigures
from tests.support.payout_command import (
    Here,
    OnTerminal,
    assert_paid_once,
    environment_of,
    payouts_file,
    started,
    until,
)

ROWS = 300


@pytest.fixture
def here(here: Here) -> Here:
    """With a file of payouts."""
    payouts_file(here.folder, ROWS)
    return here


def begun(here: Here, *options: str) -> subprocess.Popen[str]:
    """A run in a process of its own."""
    return started(environment_of(here.sandbox), "run", "june.csv", *options, cwd=here.folder)


def test_sigterm_drains_kill_9_kills_and_the_same_command_pays_each_row_once(here: Here) -> None:
    here.sandbox.on("payouts.create").respond("slow:0.2s", times=ROWS)
    with begun(here, "--concurrency", "8") as first:
        until(first, created=1)
        looked = here("status", "june.csv.ledger", "--json")
        assert (looked.code, looked.step("running")["pid"]) == (Exit.DONE, first.pid)
        assert looked.step("running")["rows"]["asked"] == ROWS
        assert looked.step("running")["doing"] == "paying"
        assert looked.step("running")["age"] >= 0
        assert f"process {first.pid} works on it" in here("status", "june.csv.ledger").out
        here("run", "june.csv").assert_one_message(
            Exit.USAGE, f"in use by process {first.pid}", "wait for it to end"
        )
        first.send_signal(signal.SIGTERM)
        _, err = first.communicate(timeout=300)
    assert first.returncode == Exit.RESUMABLE
    assert err == (
        "payments: Stopped: SIGTERM. The same `run` command resumes the batch; nothing is paid twice.\n"
    )
    standing = here("status", "june.csv.ledger", "--json").step("batch")
    assert standing["rows"]["under_way"] == 0
    assert "The same `run` command resumes the batch" in standing["next"]  # not `status`, run again

    with begun(here, "--concurrency", "8") as second:
        paid = len(here.sandbox.books.payouts())
        assert paid < ROWS
        until(second, created=paid + 1)
        second.kill()
        second.communicate(timeout=300)
    assert second.returncode == -signal.SIGKILL
    assert len(here.sandbox.books.payouts()) < ROWS
    here.sandbox.clear_rules()
    assert here("run", "june.csv").code == Exit.DONE
    assert_paid_once(here.sandbox, ROWS)


def test_a_reader_that_leaves_stops_the_run_in_order(here: Here) -> None:
    here.sandbox.on("payouts.create").respond("slow:0.2s", times=ROWS)
    with begun(here, "--concurrency", "4") as run:
        until(run, created=1)
        assert run.stdout is not None
        run.stdout.close()
        assert run.wait(300) == Exit.RESUMABLE
        assert run.stderr is not None
        err = run.stderr.read()
    assert err == (
        "payments: Stopped: the reader of the output left. "
        "The same `run` command resumes the batch; nothing is paid twice.\n"
    )
    assert 0 < len(here.sandbox.books.payouts()) < ROWS


def test_a_second_ctrl_c_cuts_at_once_and_a_row_that_hangs_is_found_out_later(here: Here) -> None:
    payouts_file(here.folder, 5)
    here.sandbox.on("payouts.create", amount="3.07").respond("hang")
    with OnTerminal(environment_of(here.sandbox), "run", "june.csv", cwd=here.folder) as terminal:
        terminal.until("4 created")
        terminal.type("\x03")
        terminal.until("Ctrl-C: finishing what is under way, 30 s at most")
        terminal.type("\x03")
        assert terminal.end() == Exit.RESUMABLE
        printed = terminal.seen.rpartition("once more")[2]
    assert "Under way" in printed
    assert (
        "payments: Stopped: Ctrl-C, twice. 1 row under way will be posted again first, unchanged."
        in " ".join(printed.split())
    )
    assert "Traceback" not in printed
    assert "idempotency key" not in terminal.seen.replace("\r\n", " "), "the ledger has each row"
    assert main(["payouts", "run", "june.csv"]) == Exit.DONE
    assert_paid_once(here.sandbox, 5)


def test_a_drain_ends_at_its_deadline(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    payouts_file(here.folder, 5)
    here.sandbox.on("payouts.create", amount="3.07").respond("hang")
    update, pressed = RunProgress.update, list[int]()

    def interrupted(self: RunProgress, progress: BatchFigures, *rest: Any) -> None:
        update(self, progress, *rest)
        if progress.counts.get("created") == 4 and not pressed:
            pressed.append(1)
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(RunProgress, "update", interrupted)
    done = here("run", "june.csv", "--drain", "0.2s")
    assert (done.code, done.step("finished")["rows"]["under_way"]) == (Exit.RESUMABLE, 1)
    assert done.step("note")["message"].startswith("Ctrl-C: finishing what is under way, 0.2 s at most")
    assert "1 row under way will be posted again first, unchanged" in done.err
