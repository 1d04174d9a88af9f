"""`run --workers 2` and `worker` in processes of their own: watched, drained, stopped, killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest

from payments_async import client
from payments_async._cli._exit_codes import Exit
from payments_async._cli.payouts import worker_processes
from payments_async._cli.payouts.worker_processes import WorkerProcess, WorkerProcesses
from payments_async._rate_limit.registry import LimiterRegistry
from payments_async.bulk._ledger.postgresql import database as driver
from tests.support.databases import OpenDatabases
from tests.support.fleet import posts, shorten
from tests.support.payout_command import Here, assert_paid_once, environment_of, payouts_file, started, until
from tests.support.servers import PASSWORD, CutProxy, PostgresServer

ROWS = 40
NAMED = ("--batch-id", "june")


@pytest.fixture
def here(here: Here, database: str, monkeypatch: pytest.MonkeyPatch) -> Here:
    """With a file of payouts, and a database for their ledger."""
    payouts_file(here.folder, ROWS)
    monkeypatch.setenv("PAYMENTS_LEDGER", database)
    monkeypatch.setenv("PAYMENTS_RATE_SHARE", "1")  # the limit stays in each process
    return here


def begun(here: Here, *argv: str) -> subprocess.Popen[str]:
    """A command in a process of its own."""
    return started(environment_of(here.sandbox), *argv, cwd=here.folder)


def wait_until(is_true: Callable[[], bool]) -> None:
    """Wait for a condition that other processes bring about."""
    until = time.monotonic() + 60
    while not is_true():
        assert time.monotonic() < until
        time.sleep(0.05)


def workers(here: Here) -> list[int]:
    """The processes that hold chunks."""
    return [line["pid"] for line in here("workers", "--json").lines if line["leased_chunks"]]


@contextmanager
def once_posted(here: Here, act: Callable[[], object], rows: int = 1) -> Iterator[None]:
    """Act as soon as so many payouts have arrived."""

    def watch() -> None:
        wait_until(lambda: posts(here.sandbox) >= rows)
        act()

    thread = threading.Thread(target=watch)
    thread.start()
    yield
    thread.join()


def end_this_process() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def is_gone(pid: int) -> bool:
    """Whether a process has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] == "Z"
    except OSError:
        return True


@pytest.mark.slow
def test_two_workers_are_seen_one_is_drained_and_the_other_goes_on(here: Here) -> None:
    payouts_file(here.folder, 1200)  # three chunks: a worker holds two
    here.sandbox.on("payouts.create").respond("slow:0.2s", times=1200)
    with begun(here, "run", "june.csv", *NAMED, "--workers", "2", "--concurrency", "8") as run:
        until(run, created=1)
        wait_until(lambda: len(workers(here)) == 2)
        for pid in (run.pid, *workers(here)):
            assert PASSWORD.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes()
        listed = here("workers", "--json").lines
        assert [line["slots"] for line in listed] == [2, 2]
        assert {place["batch_id"] for line in listed for place in line["leased_chunks"]} == {"june"}
        table = here("workers").out
        assert all(f"{line['id'][:8]}  " in table and str(line["pid"]) in table for line in listed)
        found = here("status", *NAMED, "--json").step("batch")
        assert (found["running"], found["workers"]) == (True, 2)
        assert "2 workers, " in here("status", *NAMED).out
        drained = here("drain", "--worker", listed[0]["id"][:8], "--json").step("drained")
        assert (drained["pid"], drained["is_draining"]) == (listed[0]["pid"], True)
        wait_until(lambda: is_gone(drained["pid"]))
        assert here("cancel-rest", *NAMED, "--yes").code == Exit.DONE
        out, err = run.communicate(timeout=300)
    assert run.returncode == Exit.REFUSED, (out, err)
    assert "cancelled; every other row was created" in err
    assert here("status", *NAMED, "--json").step("batch")["state"] == "closed"
    assert PASSWORD not in out + err


def test_workers_end_with_their_run_and_the_same_command_resumes(here: Here) -> None:
    here.sandbox.on("payouts.create").respond("slow:0.2s", times=ROWS)
    run = ("run", "june.csv", *NAMED, "--workers", "2")
    with once_posted(here, end_this_process):
        stopped = here(*run, "--concurrency", "2")
    assert (stopped.code, stopped.step("finished")["stopped"]) == (Exit.RESUMABLE, "SIGTERM")
    assert "The same `run` command resumes the batch" in stopped.err
    assert here("workers", "--json").lines == []
    here.sandbox.clear_rules()
    done = here(*run[:-2])
    assert (done.code, done.step("certified")["clean"]) == (Exit.DONE, True)
    assert_paid_once(here.sandbox, ROWS)
    assert here("run", "june.csv", *NAMED, "--workers", "0").code == Exit.DONE
    assert_paid_once(here.sandbox, ROWS)


def test_a_worker_that_is_stopped_gives_back_what_it_holds(here: Here) -> None:
    here.sandbox.on("payouts.create").respond("slow:0.2s", times=ROWS)
    assert here("run", "june.csv", *NAMED, "--detach").code == Exit.DONE
    with once_posted(here, end_this_process):
        stopped = here("worker", "--concurrency", "2")
    assert (stopped.code, stopped.err) == (Exit.DONE, "")
    assert stopped.step("ended")["stopped"] == "SIGTERM"
    assert here("workers", "--json").lines == []
    assert here("status", *NAMED, "--json").step("batch")["rows"]["under_way"] == 0


def test_a_worker_that_the_service_refuses_exits_with_2(here: Here) -> None:
    here.sandbox.on("payouts.create").respond("http:401", times=None)
    assert here("run", "june.csv", *NAMED, "--detach").code == Exit.DONE
    refused = here("worker", "--until-idle")
    assert (refused.code, refused.step("ended")["ok"]) == (Exit.USAGE, False)
    assert refused.err.startswith("payments: the service refused the API key")
    assert here.sandbox.books.payouts() == []


def test_a_worker_that_loses_its_database_writes_what_it_learned_and_exits_with_75(
    here: Here, database: str, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PAYMENTS_RATE_SHARE")  # its rate is the database's, which is lost as well
    shorten(monkeypatch.setattr)
    opened = OpenDatabases(monkeypatch)
    assert here("run", "june.csv", *NAMED, "--detach").code == Exit.DONE
    here.sandbox.on("payouts.create").respond("slow:0.5s", times=None)

    def lost_for_good() -> None:
        proxy.cut()
        opened.lose_patience()

    with CutProxy(postgres.address) as proxy, once_posted(here, lost_for_good, rows=2):
        address = postgres.url(database.rpartition("/")[2], port=proxy.port)
        lost = here("worker", "--ledger", address, "--concurrency", "2", "--drain", "1s", "--json")
    assert lost.code == Exit.RESUMABLE, lost
    ended = lost.step("ended")
    assert (ended["exit_code"], "cannot be reached" in ended["stopped"]) == (75, True)
    (path,) = ended["unrecorded"]
    assert f"outcomes that could not be recorded are in {path}, as JSON" in lost.err
    assert {each["known"]["state"] for each in json.loads(Path(path).read_text())} == {"CREATED"}
    here.sandbox.clear_rules()
    monkeypatch.setattr(client, "PROCESS", LimiterRegistry())  # as in a process that was never cut off
    assert here("worker", "--until-idle").code == Exit.DONE
    assert_paid_once(here.sandbox, ROWS)


HASTY = """
import sys
from payments_async.bulk._ledger.postgresql import database
from payments_async._cli import main
from tests.support.fleet import shorten
shorten(setattr)
database.PATIENCE, database.ANSWER = 2.0, 10.0
sys.exit(main(sys.argv[1:]))
"""
"""A command that soon gives a lost database up."""


@pytest.mark.slow
def test_workers_of_a_run_that_loses_its_database_write_what_they_learned_and_the_run_names_the_files(
    here: Here, database: str, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_processes, "_COMMAND", (sys.executable, "-c", HASTY, "payouts", "worker"))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    opening: Any = driver.Database.open
    monkeypatch.setattr(
        opening.__func__, "__kwdefaults__", {"insecure_database": False, "patience": 0.2, "answer": 10.0}
    )
    assert here("run", "june.csv", *NAMED, "--detach").code == Exit.DONE
    here.sandbox.on("payouts.create").respond("slow:0.5s", times=None)
    with CutProxy(postgres.address) as proxy, once_posted(here, proxy.cut, rows=2):
        monkeypatch.setenv("PAYMENTS_LEDGER", postgres.url(database.rpartition("/")[2], port=proxy.port))
        lost = here("run", "june.csv", *NAMED, "--workers", "2", "--concurrency", "4", "--drain", "1s")
    paths = [path.name for path in Path().glob("*.unrecorded.json")]
    lost.assert_one_message(Exit.RESUMABLE, "cannot be reached", *paths)
    learned = [each for path in paths for each in json.loads(Path(path).read_text())]
    assert {each["known"]["state"] for each in learned} == {"CREATED"}
    here.sandbox.clear_rules()
    monkeypatch.setenv("PAYMENTS_LEDGER", database)
    assert here("run", "june.csv", *NAMED).code == Exit.DONE
    assert_paid_once(here.sandbox, ROWS)


async def test_a_worker_may_write_lines_of_any_length() -> None:
    script = (
        "import sys; sys.exit(print('x' * 200_000, 'payments: refused', sep='\\n', file=sys.stderr) or 2)"
    )
    pipe = asyncio.subprocess.PIPE
    worker = WorkerProcess(
        await asyncio.create_subprocess_exec(sys.executable, "-c", script, stdin=pipe, stderr=pipe)
    )
    await worker.ended()
    assert (worker.code, worker.message) == (Exit.USAGE, "refused")


@pytest.mark.parametrize(
    ("act", "end"),
    [("os.kill(os.getpid(), 9)", "killed by signal 9"), ("sys.exit(4)", "ended with 4"), ("", "drained")],
)
async def test_how_a_worker_has_ended_is_said(act: str, end: str) -> None:
    pipe = asyncio.subprocess.PIPE
    script = f"import os, sys; {act}"
    worker = WorkerProcess(await asyncio.create_subprocess_exec(sys.executable, "-c", script, stderr=pipe))
    await worker.ended()
    assert worker.end == f"process {worker._process.pid} {end}"


@pytest.mark.slow
def test_a_run_whose_workers_were_all_killed_or_drained_says_so(here: Here) -> None:
    payouts_file(here.folder, 1200)
    here.sandbox.on("payouts.create").respond("slow:0.2s", times=1200)
    with begun(here, "run", "june.csv", *NAMED, "--workers", "2", "--concurrency", "8", "--json") as run:
        until(run, created=1)
        wait_until(lambda: len(workers(here)) == 2)
        drained, killed = workers(here)
        (name,) = (line["id"] for line in here("workers", "--json").lines if line["pid"] == drained)
        assert here("drain", "--worker", name).code == Exit.DONE
        wait_until(lambda: is_gone(drained))
        os.kill(killed, signal.SIGKILL)
        out, _ = run.communicate(timeout=300)
    said = json.loads(out.splitlines()[-1])["stopped"]
    assert said.startswith("its workers ended: process ")
    assert f"process {drained} drained" in said
    assert f"process {killed} killed by signal 9" in said


def test_a_run_without_workers_says_that_none_is_running(here: Here) -> None:
    with begun(here, "run", "june.csv", *NAMED, "--workers", "0", "--json") as run:
        assert run.stdout is not None
        notes = (json.loads(line) for line in run.stdout)
        first = next(line for line in notes if line["step"] == "note")
        assert (
            first["message"] == "no worker is running: `payments payouts worker --batch-id june` starts one"
        )
        run.send_signal(signal.SIGINT)
        second = next(line for line in notes if line["step"] == "note")
        assert second["message"] == "Ctrl-C: the batch is left to its workers"


@attrs.frozen
class Ended:
    """A worker process that has ended."""

    code: int | None
    message: str = ""
    end: str = "process 7 killed by signal 9"


@pytest.mark.parametrize(
    ("processes", "failure"),
    [
        ([Ended(0), Ended(None)], None),
        ([Ended(75, "lost"), Ended(2, "refused"), Ended(0)], (Exit.USAGE, "refused; lost")),
        ([Ended(2, "refused"), Ended(3, "unrecorded")], (Exit.OUTCOME_UNKNOWN, "unrecorded; refused")),
        ([Ended(1, "broken"), Ended(1, "broken")], (Exit.RESUMABLE, "broken")),
        ([Ended(75)], (Exit.RESUMABLE, "its workers ended: process 7 killed by signal 9")),
    ],
)
def test_the_gravest_failure_of_a_worker_is_that_of_the_run(
    processes: list[WorkerProcess], failure: tuple[Exit, str] | None
) -> None:
    gone = WorkerProcesses(processes)
    assert (gone.failure, gone.are_gone) == (failure, all(each.code is not None for each in processes))
    assert WorkerProcesses([]).are_gone is False
