"""Bad input to `payments payouts`: one message, the reason and the way out, the right code, nothing sent."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from payments_async import AsyncPayments
from payments_async._cli._exit_codes import Exit
from payments_async._cli.payouts import command_context, confirm, payouts
from payments_async.bulk._ledger.sqlite import file as _ledger_file
from payments_async.bulk._ledger.sqlite import ledger as sqlite_ledger
from payments_async.bulk._ledger.sqlite.connection import LedgerConnection
from payments_async.bulk._ledger.sqlite.ledger import SqliteLedger
from payments_async.bulk._ledger.sqlite.lock import LedgerLock
from payments_async.bulk._ledger.transactions import Purpose
from payments_async.bulk._reconcile import same_account
from payments_async.bulk.ledger_errors import LedgerBroken, LedgerError, LedgerFull
from payments_async.sandbox import Sandbox
from tests.support.payout_command import PHONE, Here, assert_paid_once, environment_of, payouts_file


@pytest.fixture
def here(here: Here) -> Here:
    """With a file of four payouts."""
    payouts_file(here.folder, 4)
    return here


def replaced(before: str, after: str) -> Callable[[], None]:
    """The file with something else in it."""

    def change() -> None:
        file = Path("june.csv")
        text = file.read_text()
        assert before in text
        file.write_text(text.replace(before, after))

    return change


def renamed(name: str) -> Callable[[], None]:
    """The file under another name."""

    def change() -> None:
        shutil.move("june.csv", name)

    return change


@pytest.mark.parametrize(
    ("change", "argv", "parts"),
    [
        (renamed("july.csv"), ["june.csv"], ["june.csv: cannot be read (No such file or directory)"]),
        (renamed("june.txt"), ["june.txt"], ["ends in .txt", ".csv, .jsonl, .ndjson, .parquet and .xlsx"]),
        (lambda: os.mkdir("a.csv"), ["a.csv"], ["is not a regular file"]),
        (
            replaced("r3,", "r2,"),
            ["june.csv"],
            ["line 4, row_key: is that of line 3 too; make each unique", "does not choose"],
        ),
        (replaced("r3,", "r2,"), ["june.csv", "--dry-run"], ["row_key: is that of line 3"]),
        (
            lambda: replaced("r3,", "r2,")() or replaced("row_key", "reference")(),
            ["june.csv"],
            ["line 4, reference: is that of line 3 too", "1 fault in 1 row"],
        ),
        (replaced("amount", "amnt"), ["june.csv"], ["amnt", "did you mean amount?", "Correct the header"]),
        (replaced("2.07", "NaN"), ["june.csv"], ["line 3", "amount", "nothing was sent", "--rejects"]),
        (replaced("2.07", "-2"), ["june.csv"], ["line 3", "amount"]),
        (
            replaced("2.07", "1234567890123456.07"),
            ["june.csv", "--strict-amounts"],
            ["line 3", "amount", "15"],
        ),
        (lambda: None, ["june.csv", "--base-url", "ftp://127.0.0.1/v1"], ["base URL"]),
        (lambda: None, ["june.csv", "--confirm-total", "XOF twelve"], ["--confirm-total", "1200.50"]),
        (lambda: None, ["june.csv", "--confirm-total", "XOF 1"], ["--confirm-total 'XOF 7.21'"]),
        (lambda: None, ["june.csv", "--ledger", "june.csv"], ["is the file itself", "another path"]),
        (lambda: None, ["june.csv", "--ledger", "no/such/folder"], ["cannot be"]),
    ],
)
def test_an_input_that_cannot_be_paid_is_refused(
    here: Here, change: Callable[[], None], argv: list[str], parts: list[str]
) -> None:
    change()
    here("run", *argv).assert_one_message(Exit.USAGE, *parts)
    assert here.sandbox.books.payouts() == []


def test_programs_get_what_was_refused_and_where(here: Here) -> None:
    replaced("2.07", "NaN")()
    done = here("run", "june.csv", "--json")
    printed = done.step("refused")
    assert (done.code, printed["ok"], printed["kind"], printed["exit_code"]) == (2, False, "SourceErrors", 2)
    assert [(fault["line"], fault["column"]) for fault in printed["faults"]] == [(3, "amount")]
    assert printed["message"] in done.err
    assert PHONE not in done.out
    assert here("run", "none.csv", "--json").step("refused")["kind"] == "SourceUnreadable"
    replaced("NaN", "2.07")()
    assert here("run", "june.csv", "--json").code == Exit.DONE
    replaced("2.07", "2.08")()
    edited = here("run", "june.csv", "--json").step("refused")
    assert (edited["kind"], len(edited["differences"]), edited["faults"]) == ("LedgerOfAnotherInput", 1, [])


def test_rows_that_were_read_are_counted_not_their_faults(here: Here) -> None:
    Path("x.jsonl").write_text('{"a":1}\n{bad')
    done = here("run", "x.jsonl", "--json")
    assert (done.code, done.step("refused")["total"]) == (Exit.USAGE, 6)
    assert [line["rows"] for line in done.lines if line["step"] == "reading"] == [2]


def test_twenty_faults_are_shown_and_a_dry_run_writes_them_all(here: Here) -> None:
    file = payouts_file(here.folder, 30)
    file.write_text(file.read_text().replace(".07", ".x"))
    refused = here("run", "june.csv")
    assert (refused.err.count("  line "), "and 10 more" in refused.err) == (20, True)
    options = "--dry-run --skip-invalid --rejects rejects.csv"
    assert f"The same command with `{options}` writes all of them" in refused.err
    file.write_text(file.read_text().replace("30.x", "30.07"))
    assert here("run", "june.csv", *options.split()).code == Exit.DONE
    assert len((here.folder / "rejects.csv").read_text().splitlines()) == 30
    assert here.sandbox.requests == []


@pytest.mark.parametrize(
    "option",
    [
        ["--max-rows", "0"],
        ["--max-amount", "NaN"],
        ["--max-failure-rate", "2"],
        ["--concurrency", "0"],
        ["--concurrency", "100000"],
        ["--patience", "soon"],
        ["--wait-final", "999d"],
        ["--drain", ""],
    ],
)
def test_absurd_values_are_refused_before_the_file_is_read(here: Here, option: list[str]) -> None:
    done = here("run", "june.csv", *option)
    assert done.code == Exit.USAGE
    assert option[0] in done.err
    assert "Traceback" not in done.err
    assert here.sandbox.requests == []
    assert os.listdir(here.folder) == ["june.csv"]


def test_without_a_key_or_an_address_it_says_what_to_set(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PAYMENTS_BASE_URL")
    dry = here("run", "june.csv", "--dry-run")  # sends nothing
    assert (dry.code, dry.step("checked")["rows"]) == (Exit.DONE, 4)
    here("run", "june.csv").assert_one_message(Exit.USAGE, "--base-url", "PAYMENTS_BASE_URL")
    monkeypatch.delenv("PAYMENTS_API_KEY")
    for command, about in (("run", "june.csv"), ("reconcile", "june.csv.ledger")):
        refused = here(command, about)
        refused.assert_one_message(Exit.USAGE, "set PAYMENTS_API_KEY")
        assert refused.step("refused")["about"] == about
    assert os.listdir(here.folder) == ["june.csv"]


def test_a_ledger_that_is_not_there_is_made_by_run_alone(here: Here) -> None:
    for argv in (["status"], ["check"], ["reconcile"], ["retry-failed"], ["export"], ["archive"], ["resume"]):
        rest = {"export": ["out.csv"], "archive": ["--to", "june.parquet"]}.get(*argv, [])
        here(*argv, "june.csv.ledger", *rest).assert_one_message(
            Exit.USAGE, "june.csv.ledger: is not there", "start the run first"
        )
    assert os.listdir(here.folder) == ["june.csv"]


def test_a_ledger_in_a_file_is_resumed_by_the_run_command_unless_it_is_complete_or_in_use(here: Here) -> None:
    here("run", "june.csv", "--max-rows", "1")
    done = here("resume", "june.csv.ledger", "--json")
    printed = done.step("resume")
    assert (done.code, printed["resumed"]) == (Exit.DONE, False)
    assert printed["command"] == "payments payouts run FILE --ledger june.csv.ledger"
    lock = LedgerLock.acquire("june.csv.ledger", pid=os.getpid(), since=1.8e9)
    assert f"a run is under way: in use by process {os.getpid()}" in " ".join(
        here("resume", "june.csv.ledger").out.split()
    )
    lock.release()
    assert here("run", "june.csv").code == Exit.DONE
    assert "it is complete" in here("resume", "june.csv.ledger").out


def test_an_input_given_as_the_ledger_is_no_ledger_whatever_its_mode(here: Here) -> None:
    os.chmod("june.csv", 0o644)
    for name in ("status", "check", "reconcile", "resume"):
        refused = here(name, "june.csv")
        refused.assert_one_message(Exit.USAGE, "june.csv: is no ledger of this package")
        assert "chmod" not in refused.err


def test_a_ledger_goes_with_its_batch_input_environment_address_and_key(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert here("run", "june.csv", "--batch-id", "june").code == Exit.DONE
    here("run", "june.csv", "--batch-id", "july").assert_one_message(
        Exit.USAGE, "its batch is june, and this run's is july", "the ledger's batch as --batch-id"
    )
    for name in ("status", "check", "reconcile"):
        refused = here(name, "june.csv.ledger", "--batch-id", "july")
        refused.assert_one_message(
            Exit.USAGE, "june.csv.ledger: holds batch june, not july; give that batch id, or none"
        )
        assert not re.search("run|resume|paid", refused.err)
    here("run", "june.csv", "--batch-id", "july", "--ledger", "july.ledger").assert_one_message(
        Exit.USAGE, "same input as batch june", "could be paid again", "--pay-again", "--batch-id"
    )
    replaced("2.07", "2.08")()
    here("run", "june.csv").assert_one_message(
        Exit.USAGE, "row 2 (line 3, key r2): changed amount, CREATED", "cannot be taken over"
    )
    here("run", "june.csv", "--accept-edits").assert_one_message(Exit.USAGE, "row 2")
    replaced("2.08", "2.07")()
    other = here.sandbox.new_key()
    monkeypatch.setenv("PAYMENTS_API_KEY", other)
    said = here("run", "june.csv")
    said.assert_one_message(Exit.USAGE, "key fingerprint", "one of the same project")
    assert other not in said.err
    monkeypatch.setenv("PAYMENTS_API_KEY", here.sandbox.api_key)
    with Sandbox() as elsewhere:
        here("run", "june.csv", "--base-url", elsewhere.base_url).assert_one_message(
            Exit.USAGE, "its base URL is", elsewhere.base_url
        )
        assert elsewhere.requests == []
    monkeypatch.setenv("PAYMENTS_API_KEY", "sk_live_abcdef")
    here("run", "june.csv", "--base-url", "https://127.0.0.1:9/v1").assert_one_message(
        Exit.USAGE, "its environment is sandbox, and this run's is live"
    )
    assert_paid_once(here.sandbox, 4)


def test_every_command_refuses_a_damaged_ledger(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    assert here("run", "june.csv").code == Exit.DONE
    ledger = Path("june.csv.ledger")
    whole = ledger.read_bytes()
    monkeypatch.setattr(sqlite_ledger, "FORM", 0)
    here("run", "june.csv").assert_one_message(Exit.USAGE, "knows up to 0", "version that wrote it")
    monkeypatch.undo()
    monkeypatch.chdir(here.folder)
    for name, value in environment_of(here.sandbox).items():
        monkeypatch.setenv(name, value)
    os.chmod(ledger, 0o644)
    here("run", "june.csv").assert_one_message(Exit.USAGE, "chmod 600")
    os.chmod(ledger, 0o600)
    ledger.write_bytes(whole[: len(whole) // 2])
    for argv in (["run", "june.csv"], ["status", "june.csv.ledger"]):
        here(*argv).assert_one_message(Exit.USAGE, "june.csv.ledger", "newest whole copy")
    here("check", "june.csv.ledger").assert_one_message(Exit.REFUSED, "newest whole copy")
    ledger.write_bytes(whole[:-4096] + bytes(4096))
    assert here("check", "june.csv.ledger").code == Exit.REFUSED
    ledger.write_bytes(b"not a ledger at all" * 50)
    here("run", "june.csv").assert_one_message(Exit.USAGE, "is no ledger of this package", "another path")
    ledger.write_bytes(whole)
    assert here("run", "june.csv").code == Exit.DONE
    assert_paid_once(here.sandbox, 4)


@pytest.mark.parametrize("lost", ["the last page, cut off", "a page in the middle", "the last page"])
def test_a_ledger_that_lost_a_page_is_refused_before_anything_is_paid(here: Here, lost: str) -> None:
    payouts_file(here.folder, 200)
    assert here("run", "june.csv", "--max-rows", "20").code == Exit.RESUMABLE
    ledger, paid = Path("june.csv.ledger"), len(here.sandbox.books.payouts())
    whole, blank = ledger.read_bytes(), bytes(4096)
    middle = len(whole) // 8192 * 4096
    ledger.write_bytes(
        {
            "the last page, cut off": whole[:-4096],
            "a page in the middle": whole[:middle] + blank + whole[middle + 4096 :],
            "the last page": whole[:-4096] + blank,
        }[lost]
    )
    here("run", "june.csv").assert_one_message(Exit.USAGE, "put back the newest whole copy")
    here("check", ledger).assert_one_message(Exit.REFUSED, "put back the newest whole copy")
    assert len(here.sandbox.books.payouts()) == paid == 20


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_named(here: Here) -> None:
    os.chmod(here.folder, 0o500)
    try:
        here("run", "june.csv").assert_one_message(Exit.USAGE, "june.csv.ledger", "writable")
    finally:
        os.chmod(here.folder, 0o700)


def test_a_full_disk_stops_before_anything_is_sent(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_ledger_file.DiskReserve, "ready", lambda self: False)
    here("run", "june.csv").assert_one_message(Exit.USAGE, "no room is left on the disk", "make room")
    assert here.sandbox.books.payouts() == []


def test_a_run_resumes_after_a_disk_that_was_full_before_the_first_intent(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert here("run", "june.csv", "--max-rows", "1").code == Exit.RESUMABLE

    async def refuse(*_: object) -> None:
        raise LedgerFull("june.csv.ledger", "the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(same_account, "require_place", refuse)
        here("run", "june.csv").assert_one_message(Exit.RESUMABLE, "the disk is full", "make room")
    assert here("run", "june.csv").code == Exit.DONE
    assert_paid_once(here.sandbox, 4)


def test_the_command_has_a_connection_for_each_row_under_way_and_some_to_spare(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def watched(**options: object) -> AsyncPayments:
        seen.append(options["max_connections"])
        return AsyncPayments(**options)  # type: ignore[arg-type] # passed on as they came

    monkeypatch.setattr(command_context, "AsyncPayments", watched)
    assert here("run", "june.csv").code == Exit.DONE
    assert here("run", "june.csv", "--concurrency", "7").code == Exit.DONE
    assert here("reconcile", "june.csv.ledger").code == Exit.DONE
    assert seen == [288, 39, 32]


def test_a_ledger_deleted_in_mid_run_stops_it_and_the_same_command_pays_the_rest(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    payouts_file(here.folder, 60)
    here.sandbox.on("payouts.create", amount="1.07").respond("slow:0.2s")
    real = LedgerConnection.commit
    intents = []

    async def deleted(self: LedgerConnection, *given: Any, purpose: Purpose, **more: Any) -> object:
        if purpose is Purpose.INTENT:
            intents.append(purpose)
            if len(intents) == 2:
                os.unlink("june.csv.ledger")
        return await real(self, *given, purpose=purpose, **more)

    with monkeypatch.context() as patch:
        patch.setattr(LedgerConnection, "commit", deleted)
        done = here("run", "june.csv", "--concurrency", "10")
    assert done.code == Exit.OUTCOME_UNKNOWN, done
    assert "june.csv.ledger was deleted, moved or replaced" in done.err
    assert "Traceback" not in done.err
    for left in here.folder.glob("june.csv.ledger*"):
        left.unlink()
    assert here("run", "june.csv").code == Exit.DONE  # from the same file: the references are the same
    assert_paid_once(here.sandbox, 60)


@pytest.mark.parametrize(
    ("failure", "code"), [(LedgerFull, Exit.RESUMABLE), (LedgerBroken, Exit.OUTCOME_UNKNOWN)]
)
@pytest.mark.parametrize("is_writable", [True, False])
def test_outcomes_that_the_ledger_cannot_take_are_kept_elsewhere(
    here: Here, monkeypatch: pytest.MonkeyPatch, failure: type[LedgerError], code: Exit, is_writable: bool
) -> None:
    async def refuse(*_: object) -> None:
        raise failure("june.csv.ledger", "as planned")

    def no_room(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(SqliteLedger, "record", refuse)
        if not is_writable:
            patch.setattr(command_context, "write_text", no_room)
        done = here("run", "june.csv")
    done.assert_one_message(code, "as planned", "4 outcomes are not recorded")
    kept = Path("june.csv.ledger.unrecorded.json").read_text() if is_writable else done.out.splitlines()[-2]
    assert {outcome["number"] for outcome in json.loads(kept)} == {1, 2, 3, 4}
    assert here("run", "june.csv").code == Exit.DONE
    assert_paid_once(here.sandbox, 4)


def test_a_certificate_or_an_export_that_cannot_be_written_is_named(here: Here) -> None:
    assert here("run", "june.csv").code == Exit.DONE
    here("reconcile", "june.csv.ledger", "--certificate", "no/where.json").assert_one_message(
        Exit.REFUSED, "no/where.json", "No such file or directory"
    )
    here("export", "june.csv.ledger", "no/where.csv").assert_one_message(Exit.USAGE, "cannot be written")
    here("export", "june.csv.ledger", "out.txt").assert_one_message(Exit.USAGE, "ends in .txt")
    here("export", "june.csv.ledger", "june.csv").assert_one_message(Exit.USAGE, "batch's input")
    here("retry-failed", "june.csv.ledger", "--row", "9").assert_one_message(Exit.USAGE, "row 9")
    assert here("export", "june.csv.ledger", "out.csv", "--state", "lost").code == Exit.USAGE


def test_a_key_that_is_refused_stops_the_run_and_leaves_every_row_new(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAYMENTS_API_KEY", here.sandbox.new_key("inactive"))
    done = here("run", "june.csv")
    end = done.step("finished")
    assert (done.code, end["rows"]["not_started"], end["resumable"]) == (Exit.USAGE, 4, "after_change")
    assert done.err == (
        "payments: Stopped: the service refused the API key (HTTP 401): use a valid key of the same project. "
        "Fix that and run the same command again to resume; nothing is paid twice.\n"
    )
    assert here("run", "june.csv").err == done.err  # and so it says again
    here("reconcile", "june.csv.ledger").assert_one_message(
        Exit.USAGE, "refused the API key (HTTP 401): use a valid key of the same project; then run"
    )


@pytest.mark.parametrize(
    ("library", "needed"),
    [
        ("aiosqlite", 'payments payouts needs aiosqlite: pip install "payments-sdk[bulk]"'),
        ("psycopg", 'payments payouts needs psycopg: pip install "payments-sdk[machines]"'),
    ],
)
def test_without_an_extra_every_command_says_what_to_install(
    library: str, needed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_database = library == "psycopg"
    if is_database:
        monkeypatch.setenv("PAYMENTS_LEDGER", "postgresql://127.0.0.1:9/payroll")
    ledger = [] if is_database else ["x.ledger"]
    commands = [["run", "x.csv"], ["export", *ledger, "x.out"], ["show", *ledger, "x"]]
    commands += [["archive", *ledger, "--to", "x.parquet"]]
    commands += [[name, *ledger] for name in ("status", "watch", "check", "reconcile", "retry-failed")]
    commands += [[name] for name in ("worker", "batches", "workers", "confirm", "pause", "resume", "recover")]
    commands += [["cancel-rest"], ["drain", "--worker", "x"], ["forget", "--closed-before", "90d"]]
    commands += [["ledger", "check"], ["template", "x.xlsx"]]
    code = (
        f"import sys; sys.modules[{library!r}] = None\n"
        "from payments_async._cli import main\n"
        f"print([int(main(['payouts', *command])) for command in {commands}])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout == f"{[int(Exit.USAGE)] * len(commands)}\n"
    assert done.stderr == f"{needed}\n" * len(commands)
    one_payout = {"create", "find", "list", "wait"}  # which need neither
    assert len(commands) == len(set(payouts) - {"--help", "-h", "--version"} - one_payout)


def test_nothing_is_asked_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    with open(os.devnull) as empty:
        monkeypatch.setattr("sys.stdin", empty)
        assert confirm.terminal() is None
