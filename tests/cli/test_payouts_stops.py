"""`payments payouts run` beside others, stopped, cut off and killed in processes of its own, and resumed."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
from contextlib import closing

import pytest

from tests.support.payout_command import (
    Exit,
    Here,
    OnTerminal,
    assert_paid_once,
    environment_of,
    main,
    payouts_file,
    started,
    until,
)

ROWS = 300


@pytest.fixture
def here(here: Here) -> Here:
    payouts_file(here.folder, ROWS)
    return here


def begun(here: Here, *options: str) -> subprocess.Popen[str]:
    return started(environment_of(here.sandbox), "run", *options, cwd=here.folder)


def test_two_processes_pay_one_batch_and_sigterm_drains_one_of_them(here: Here) -> None:
    here.sandbox.on("payouts.create").respond("slow:1s", times=ROWS)
    with (
        begun(here, "june.csv", "--concurrency", "4") as first,
        begun(here, "june.csv", "--concurrency", "4") as second,
    ):
        until(first, created=1)
        until(second, created=1)
        looked = here("status", "june.csv.ledger", "--json").step("batch")
        assert (looked["running"], looked["rows"]["asked"], looked["next"]) == (True, ROWS, "")
        assert {int(holder.split(":")[1]) for holder in looked["holders"]} <= {first.pid, second.pid}
        printed = " ".join(here("status", "june.csv.ledger").out.split())
        assert "a second" in printed
        assert f" {first.pid}" in printed or f" {second.pid}" in printed
        first.send_signal(signal.SIGTERM)
        _, err = first.communicate(timeout=300)
        assert first.returncode == Exit.RESUMABLE
        assert err == (
            "payments: Stopped: SIGTERM. The same `run` command resumes the batch; nothing is paid twice.\n"
        )
        here.sandbox.clear_rules()
        second.communicate(timeout=300)
        assert second.returncode == Exit.DONE
    assert_paid_once(here.sandbox, ROWS)


def a_minute_passes() -> None:
    """The rows that a process had taken are free again."""
    with closing(sqlite3.connect("june.csv.ledger")) as connection, connection:
        connection.execute("UPDATE payments_rows SET due = due - 60 WHERE due > 0")


def test_a_reader_that_leaves_stops_the_run_in_order(here: Here) -> None:
    here.sandbox.on("payouts.create").respond("slow:1s", times=ROWS)
    with begun(here, "june.csv", "--concurrency", "4") as run:
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
        seen = " ".join(terminal.seen.split())
    assert "Under way" in seen
    assert "payments: Stopped: Ctrl-C, twice. The same `run` command resumes the batch" in seen
    assert "Traceback" not in seen
    assert "idempotency key" not in seen, "the ledger has each row"
    a_minute_passes()
    assert main(["payouts", "run", "june.csv"]) == Exit.DONE
    assert_paid_once(here.sandbox, 5)


def test_a_batch_is_followed_from_another_terminal_until_it_is_complete_or_ctrl_c(here: Here) -> None:
    here.sandbox.on("payouts.create").respond("slow:1s", times=ROWS)
    with begun(here, "june.csv", "--concurrency", "4") as run:
        until(run, created=1)
        with OnTerminal({}, "watch", "june.csv.ledger", cwd=here.folder) as terminal:
            terminal.until(" of 300")
            terminal.until(" created")
            terminal.type("\x03")
            assert terminal.end() == Exit.DONE
            assert "Batch      not complete" in terminal.seen
        here.sandbox.clear_rules()
        watched = here("watch", "june.csv.ledger")
        assert (watched.code, watched.step("batch")["complete"]) == (Exit.DONE, True)
        run.communicate(timeout=300)
    assert_paid_once(here.sandbox, ROWS)
