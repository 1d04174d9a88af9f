"""Bad input to `payments payouts`: one message, the reason and the way out, the right code, nothing sent."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.payout_command import PHONE, Exit, Here, assert_paid_once, payouts_file


def replaced(before: str, after: str) -> Callable[[], None]:
    """The file with something else in it."""

    def change() -> None:
        file = Path("june.csv")
        text = file.read_text()
        assert before in text
        file.write_text(text.replace(before, after))

    return change


def renamed(name: str) -> Callable[[], None]:
    def change() -> None:
        shutil.move("june.csv", name)

    return change


def made_by_others(name: str, *tables: str) -> None:
    """A database with such tables, which are no ledger's of today."""
    Path(name).unlink(missing_ok=True)
    with closing(sqlite3.connect(name)) as database:
        for table in tables:
            database.execute(f"CREATE TABLE {table} (batch INTEGER NOT NULL, schema INTEGER)")
    os.chmod(name, 0o600)


@pytest.mark.parametrize(
    ("change", "argv", "parts"),
    [
        (renamed("july.csv"), ["june.csv"], ["june.csv: cannot be read (No such file or directory)"]),
        (renamed("june.tab"), ["june.tab"], ["ends in .tab", ".csv, .tsv, .txt, .jsonl, .ndjson, .parquet"]),
        (lambda: os.mkdir("a.csv"), ["a.csv"], ["is not a regular file"]),
        (
            replaced("r3,", "r2,"),
            ["june.csv"],
            ["line 4, row_key: is that of line 3 too; make each unique", "does not choose"],
        ),
        (replaced("r3,", "r2,"), ["june.csv", "--dry-run"], ["row_key: is that of line 3"]),
        (replaced("amount", "amnt"), ["june.csv"], ["amnt", "did you mean amount?", "Correct the header"]),
        (replaced("2.07", "NaN"), ["june.csv"], ["line 3", "amount", "nothing was sent", "--rejects"]),
        (replaced("2.07", "1234567890123456.07"), ["june.csv", "--no-doubts"], ["line 3", "amount", "15"]),
        (lambda: None, ["june.csv", "--base-url", "ftp://127.0.0.1/v1"], ["base URL"]),
        (lambda: None, ["june.csv", "--confirm-total", "XCD twelve"], ["--confirm-total", "1200.50"]),
        (lambda: None, ["june.csv", "--confirm-total", "XCD 1"], ["--confirm-total 'XCD 7.21'"]),
        (
            lambda: os.chmod("june.csv", 0o600),
            ["june.csv", "--ledger", "june.csv"],
            ["june.csv: is no ledger"],
        ),
        (lambda: None, ["june.csv", "--ledger", "mysql://h/d"], ["not mysql://"]),
        (lambda: None, [], ["FILE is missing"]),
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
    assert (done.err, "with `--dry-run --skip-invalid" in printed["message"]) == ("", True)
    assert PHONE not in done.out
    assert here("run", "none.csv", "--json").step("refused")["kind"] == "SourceUnreadable"
    replaced("NaN", "2.07")()
    assert here("run", "june.csv", "--json").code == Exit.DONE
    replaced("2.07", "2.08")()
    edited = here("run", "june.csv", "--json").step("refused")
    assert (edited["kind"], len(edited["differences"]), edited["faults"]) == ("LedgerOfAnotherInput", 1, [])


def test_twenty_faults_are_shown_and_a_dry_run_writes_them_all(here: Here) -> None:
    file = payouts_file(here.folder, 30)
    file.write_text(file.read_text().replace(".07", ".x"))
    refused = here("run", "june.csv")
    assert (refused.told.count("  line "), "and 10 more" in refused.told) == (20, True)
    options = "--dry-run --skip-invalid --rejects rejects.csv"
    assert f"The same command with `{options}` writes all of them" in refused.told
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
    here("run", "june.csv", *option).assert_one_message(Exit.USAGE, option[0])
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
    ledger = ["june.csv.ledger"]
    commands = [["export", *ledger, "out.csv"], ["show", *ledger, "1"], ["run", "--ledger", *ledger]]
    commands += [["forget", *ledger, "--before", "2026-01-01"], ["watch", *ledger, "--page"]]
    looking = ("status", "watch", "batches", "reconcile", "retry-failed")
    commands += [[name, *ledger] for name in (*looking, "pause", "resume", "confirm", "cancel-rest")]
    for command in commands:
        here(*command).assert_one_message(
            Exit.USAGE, "june.csv.ledger: there is no ledger", "start the run first"
        )
    assert os.listdir(here.folder) == ["june.csv"]


def test_an_input_or_another_file_given_as_the_ledger_is_no_ledger(here: Here) -> None:
    os.chmod("june.csv", 0o600)
    for name in ("status", "reconcile", "resume"):
        here(name, "june.csv").assert_one_message(Exit.USAGE, "june.csv: is no ledger; choose another path")
    Path("empty.db").touch(mode=0o600)
    here("status", "empty.db").assert_one_message(Exit.USAGE, "empty.db: it holds no ledger's tables")
    refused = ("other.db: is no ledger of this form; choose another path", "this file was not touched")
    made_by_others("other.db", "mine")
    for line in (("run", "june.csv", "--ledger", "other.db"), ("status", "other.db")):
        here(*line).assert_one_message(Exit.USAGE, *refused)
    made_by_others("other.db", "payments_batches", "payments_rows", "payments_payouts", "payments_words")
    here("status", "other.db").assert_one_message(
        Exit.USAGE, "other.db: has other tables under the names of a ledger's", "a database of its own"
    )
    os.chmod("other.db", 0o644)
    here("run", "june.csv", "--ledger", "other.db").assert_one_message(Exit.USAGE, "chmod 600")


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs"])
def test_a_ledger_in_a_file_on_a_network_is_refused(
    here: Here, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    mounts = here.folder / "mountinfo"
    mounts.write_text(
        f"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n36 22 0:31 / {here.folder} rw - {kind} server rw\n"
    )
    monkeypatch.setattr("payments_async._files.MOUNTS", str(mounts))
    for line in (("run", "june.csv"), ("status", "june.csv.ledger")):
        here(*line).assert_one_message(
            Exit.USAGE, f"june.csv.ledger: lies on a file system of type {kind}", "on a local disk"
        )
    assert sorted(os.listdir(here.folder)) == ["june.csv", "mountinfo"]


def test_a_ledger_goes_with_its_batch_input_environment_address_and_key(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert here("run", "june.csv", "--batch-id", "june").code == Exit.DONE
    here("status", "june.csv.ledger", "--batch-id", "july").assert_one_message(
        Exit.USAGE, "june.csv.ledger: it has no batch july", "batches` lists"
    )
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
    said.assert_one_message(Exit.USAGE, "key fingerprint", "this sandbox was started after the batch")
    assert other not in said.err


def test_a_file_that_holds_several_batches_asks_for_the_name_of_one(here: Here) -> None:
    assert here("run", "june.csv", "--batch-id", "june").code == Exit.DONE
    payouts_file(here.folder, 2, name="july.csv")
    done = here("run", "july.csv", "--ledger", "june.csv.ledger", "--batch-id", "july")
    assert "`payments payouts reconcile june.csv.ledger --batch-id july`" in done.err
    here("status", "june.csv.ledger").assert_one_message(Exit.USAGE, "it has several batches", "--batch-id")
    named = [line["batch_id"] for line in here("batches", "june.csv.ledger", "--json").lines]
    assert named == ["july", "june"]


def test_a_damaged_ledger_is_refused_and_a_new_one_from_the_same_file_pays_nothing_twice(here: Here) -> None:
    assert here("run", "june.csv", "--max-rows", "2").code == Exit.RESUMABLE
    ledger = Path("june.csv.ledger")
    whole = ledger.read_bytes()
    ledger.write_bytes(whole[: len(whole) // 2])
    for argv in (["run", "june.csv"], ["status", "june.csv.ledger"]):
        here(*argv).assert_one_message(Exit.USAGE, "june.csv.ledger: ", "malformed")
    ledger.unlink()
    assert here("run", "june.csv").code == Exit.DONE  # the references are the same
    assert_paid_once(here.sandbox, 4)


def test_an_export_that_cannot_be_written_and_a_row_that_is_not_there_are_named(here: Here) -> None:
    assert here("run", "june.csv").code == Exit.DONE
    for line, said in (
        (("export", "june.csv.ledger", "no/where.csv"), "cannot be written"),
        (("export", "june.csv.ledger", "out.txt"), "ends in .txt"),
        (("export", "june.csv.ledger", "june.csv"), "batch's input"),
        (("export", "june.csv.ledger", "out.csv", "--state", "lost"), "is not a state"),
        (("retry-failed", "june.csv.ledger", "--row", "9"), "row 9"),
    ):
        here(*line).assert_one_message(Exit.USAGE, said)


def test_a_key_that_is_refused_stops_the_run_and_leaves_every_row_new(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAYMENTS_API_KEY", here.sandbox.new_key("inactive"))
    refused = "refused the API key (HTTP 401): use a valid key of the same project"
    done = here("run", "june.csv")
    end = done.step("finished")
    assert (done.code, end["rows"]["not_started"], end["resumable"]) == (Exit.USAGE, 4, "after_change")
    done.assert_one_message(Exit.USAGE, f"Stopped: the service {refused}. Change that first. The same `run`")
    here("reconcile", "june.csv.ledger").assert_one_message(Exit.USAGE, f"{refused}; then run")


@pytest.mark.parametrize(
    ("library", "ledger", "needed"),
    [
        ("sqlalchemy", "x.ledger", 'a ledger needs sqlalchemy: pip install "payments-sdk[bulk]"'),
        (
            "psycopg",
            "postgresql://127.0.0.1:9/payroll",
            'a ledger in PostgreSQL needs psycopg: pip install "payments-sdk[postgresql]"',
        ),
    ],
)
def test_without_an_extra_a_command_says_what_to_install(library: str, ledger: str, needed: str) -> None:
    commands = [["status", ledger], ["pause", ledger], ["reconcile", ledger]]
    code = (
        f"import sys; sys.modules[{library!r}] = None\n"
        "from payments_async._cli import main\n"
        f"print([int(main(['payouts', *command])) for command in {commands}])"
    )
    variables = {"PAYMENTS_API_KEY": "sk_sandbox_1", "PAYMENTS_BASE_URL": "http://127.0.0.1:9/v1"}
    line, environment = [sys.executable, "-c", code], {**os.environ, **variables}
    done = subprocess.run(line, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == f"{[int(Exit.USAGE)] * len(commands)}\n"
    assert done.stderr.count(needed) == done.stderr.count("\n") == len(commands)


def test_what_is_probably_a_slip_stands_beside_the_total(here: Here) -> None:
    replaced(f"2.07,XCD,mtn_bj,{PHONE}", "2.07,XCD,mtn_bj,+2250700000009")()
    dry = here("run", "june.csv", "--dry-run", as_text=True).out
    assert "instrument.phone_number does not begin with +229, the calling code of BJ" in " ".join(dry.split())
    assert "; 1 row with a doubt" in dry
    assert here("run", "june.csv", "--no-doubts").code == Exit.USAGE
    assert here.sandbox.books.payouts() == []
    done = here("run", "june.csv")
    assert [line["doubts"] for line in done.lines if "doubts" in line] == [1, 1, 1]
    shown = here("reconcile", "june.csv.ledger", as_text=True).out
    assert "1 row with a value that is probably a slip" in shown
