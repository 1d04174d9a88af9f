"""Batches in a database: planned, paid by workers, watched, paused, cancelled, examined."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from payments_async import _postgresql, client
from payments_async._cli._exit_codes import Exit
from payments_async._cli.payouts import machines
from payments_async._rate_limit.registry import LimiterRegistry
from payments_async.bulk._ledger import importing
from payments_async.bulk._ledger.postgresql import granting
from payments_async.bulk.ledger_errors import RightsMissing
from payments_async.bulk.workers import PayoutWorker, WorkerReport, _worker
from tests.support.databases import run
from tests.support.payout_command import PHONE, Here, Said, assert_paid_once, payouts_file
from tests.support.servers import PASSWORD, PostgresServer

ROWS = 6
NAMED = ("--batch-id", "june")


@pytest.fixture
def here(here: Here, database: str, monkeypatch: pytest.MonkeyPatch) -> Here:
    """With a file of payouts, a database for their ledger, and a worker that does not wait."""
    payouts_file(here.folder, ROWS)
    monkeypatch.setenv("PAYMENTS_LEDGER", database)
    monkeypatch.setenv("PAYMENTS_RATE_SHARE", "1")  # the limit stays in this process
    monkeypatch.setattr(_worker, "POLL", 0.05)
    monkeypatch.setattr(_worker, "AGAIN", 0.05)
    monkeypatch.setattr(importing, "BLOCK", 2)
    return here


def planned(here: Here, *options: str) -> Said:
    """A batch that workers may begin."""
    done = here("run", "june.csv", *NAMED, "--detach", *options)
    assert done.code == Exit.DONE, done
    return done


def state(here: Here) -> tuple[str, int, int]:
    """The batch's state, its new rows and its created ones."""
    found = here("status", *NAMED, "--json").step("batch")
    return found["state"], found["rows"]["not_started"], found["rows"]["created"]


def without_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """What only looks needs no key."""
    monkeypatch.delenv("PAYMENTS_API_KEY")


def test_a_planned_batch_is_paid_by_a_worker_and_examined_by_its_name(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = planned(here)
    assert done.step("planned")["worker"] == "payments payouts worker --batch-id june"
    assert "`payments payouts status --batch-id june` shows how far it is" in done.err
    assert here.sandbox.books.payouts() == []
    assert state(here) == ("open", ROWS, 0)

    worked = here("worker", "--until-idle")
    assert (worked.code, worked.step("ended")["rows"], worked.step("ended")["stopped"]) == (0, ROWS, None)
    assert_paid_once(here.sandbox, ROWS)
    assert here("reconcile", *NAMED).step("certified")["path"] == "june.certificate.json"
    assert json.loads(Path("june.certificate.json").read_text())["clean"]
    assert "nothing to pay again" in here("retry-failed", *NAMED).out

    without_key(monkeypatch)
    found = here("status", *NAMED, "--json").step("batch")
    assert (found["complete"], found["rows"]["created"], found["running"]) == (True, ROWS, False)
    assert (found["state"], found["chunks"]["open"], found["chunks"]["leased"]) == ("closed", 0, 0)
    checked = here("check", *NAMED, "--chunks", "chunks.jsonl", "--json").step("check")
    assert checked["findings"] == []
    assert hashlib.sha256(Path("chunks.jsonl").read_bytes()).hexdigest() == checked["head"]
    assert here("export", "out.csv", *NAMED).code == Exit.DONE
    assert len((here.folder / "out.csv").read_text().splitlines()) == ROWS + 1
    (listed,) = here("batches", "--json").lines
    assert (listed["batch_id"], listed["done"], listed["state"]) == ("june", ROWS, "closed")
    assert here("workers", "--json").lines == []


def test_a_run_is_one_worker_and_certifies(here: Here) -> None:
    run = ("run", "june.csv", *NAMED)
    here.sandbox.on("payouts.create").outcome("complete immediate")
    stopped = here(*run, "--max-rows", "4")
    assert (stopped.code, stopped.step("finished")["resumable"]) == (Exit.RESUMABLE, "after_change")
    assert "Raise that limit and run the same command again" in stopped.err
    done = here(*run, "--wait-final", "30")
    assert (done.code, done.step("certified")["clean"]) == (Exit.DONE, True)
    assert (done.step("loaded")["is_new"], done.step("finished")["rows"]["arrived"]) == (False, ROWS)
    assert_paid_once(here.sandbox, ROWS)
    assert done.step("finished")["certificate"] == "june.certificate.json"
    here("run", "june.csv", "--batch-id", "july").assert_one_message(
        Exit.USAGE, "has the same input as batch june", "--pay-again"
    )


def test_people_get_tables(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    assert here("run", "june.csv", *NAMED, "--detach").code == Exit.DONE
    printed = here("status", *NAMED).out
    assert "· Batch      nothing was sent yet" in printed
    assert "0 of 3 done" in printed
    assert "Or start workers: `payments payouts worker --batch-id june`." in " ".join(printed.split())
    table = here("batches").out.splitlines()
    assert "1 batch" in table[1]
    assert table[-2].split() == ["june", "open", "6", "0", "0/3"]
    assert "as it was written" in here("check", *NAMED).out
    assert "0 workers" in here("workers").out
    for columns, line in (("60", ["june", "open", "6", "0"]), ("30", ["Chunks", "0/3"])):
        monkeypatch.setenv("COLUMNS", columns)
        assert here("batches").out.splitlines()[-2].split() == line


def test_a_damaged_batch_is_named_and_the_others_are_listed(here: Here, database: str) -> None:
    planned(here)
    payouts_file(here.folder, 1, name="july.csv")
    assert here("run", "july.csv", "--batch-id", "july", "--detach").code == Exit.DONE
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "UPDATE payments.chunks SET totals = 'x' WHERE batch = "
            "(SELECT batch FROM payments.batches WHERE batch_id = 'june')"
        )
    listed = here("batches", "--json")
    assert listed.step("batch")["batch_id"] == "july"
    listed.assert_one_message(Exit.REFUSED, "batch june: a chunk cannot be read", "payouts check")
    printed = here("batches")
    assert (printed.code, "2 batches" in printed.out, "batch june: " in printed.err) == (1, True, True)
    assert printed.out.splitlines()[-2].split()[:2] == ["july", "open"]
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("UPDATE payments.batches SET schema = 6 WHERE batch_id = 'july'")
    here("batches").assert_one_message(
        Exit.REFUSED, "batch june: a chunk", "batch july: its form is number 6"
    )


@pytest.mark.parametrize(("columns", "has_version"), [("80", False), ("140", True)])
def test_a_workers_id_is_whole_on_any_terminal_and_one_that_is_gone_has_no_speed(
    here: Here, database: str, monkeypatch: pytest.MonkeyPatch, columns: str, has_version: bool
) -> None:
    here("ledger", "init")
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO payments.workers (id, host, pid, version, slots, started, last_seen, rows, pace) "
            "SELECT decode(repeat(id, 16), 'hex'), repeat('pay-', 9), 24546, '0.1.0', slots, "
            "now() - interval '1 hour', now() - silent, 12345678, 56789 "
            "FROM (VALUES ('1f', interval '0 s', 2), ('2e', interval '1 hour', 0)) AS of (id, silent, slots)"
        )
    monkeypatch.setenv("COLUMNS", columns)
    table = here("workers").out
    assert "Worker  " in table
    (live,) = (line for line in table.splitlines() if line.split()[:1] == ["1f1f1f1f"])
    (gone,) = (line for line in table.splitlines() if line.split()[:1] == ["2e2e2e2e"])
    assert ("56,789" in live, "56,789" in gone, "gone" in gone) == (True, False, True)
    assert ("0.1.0" in live) == has_version
    assert ("0 of 2" in live, "0 of" in gone) == (has_version, False)
    assert "rests" not in table
    monkeypatch.setenv("COLUMNS", "50")
    narrow = here("workers").out.splitlines()
    assert narrow[4:8] == [
        "  1f1f1f1f",
        f"    Host      {'pay-' * 9}",
        "    Process   24546",
        "    Version   0.1.0",
    ]
    assert max(map(len, narrow[2:])) <= 50


def test_a_worker_that_is_gone_is_drained_only_should_it_come_back(here: Here, database: str) -> None:
    here("ledger", "init")
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO payments.workers (id, host, pid, version, slots, started, last_seen, rows) "
            "SELECT decode(repeat(id, 16), 'hex'), 'host-1', 24546, '0.1.0', 2, now(), now() + silent, 3 "
            "FROM (VALUES ('1f', interval '1 hour'), ('2e', interval '-1 hour')) AS of (id, silent)"
        )
    assert here("drain", "--worker", "1f1f", "--json").step("drained")["is_draining"]
    gone = here("drain", "--worker", "2e2e", "--json")
    assert (gone.code, gone.step("drain")["drained"]) == (Exit.DONE, False)
    printed = " ".join(here("drain", "--worker", "2e2e").out.split())
    assert "process 24546 on host-1 has not reported for 1 h" in printed
    assert "it is gone, or cut off from the database, and ends should it come back" in printed
    assert all(line["is_draining"] for line in here("workers", "--json").lines)


def test_a_batch_is_not_paid_before_its_total_was_confirmed(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    from payments_async._cli.payouts import run

    monkeypatch.setattr(run, "is_live", lambda key: True)
    refused = here("run", "june.csv", *NAMED, "--detach")
    refused.assert_one_message(Exit.USAGE, "a live key pays real money", "nothing was sent")
    assert here("batches", "--json").lines == []  # the refused input is not in the way of the next one
    total = ("--confirm-total", "GHS 9.14", "--confirm-total", "XOF 12.28")
    planned(here, *total)
    assert json.loads(Path("june.confirmed.json").read_text())["batch_id"] == "june"
    planned(here)  # no second time


def test_a_batch_that_a_step_has_imported_is_paid_once_its_total_is_confirmed(
    here: Here, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned(here)
    with psycopg.connect(database, autocommit=True) as connection:  # as a step leaves a live batch
        connection.execute("UPDATE payments.batches SET state = 'imported', environment = 'live'")
    without_key(monkeypatch)
    confirm = ("confirm", *NAMED)
    here(*confirm).assert_one_message(Exit.USAGE, "a live key pays real money", "nothing was sent")
    here(*confirm, "--confirm-total", "GHS 9.15", "--confirm-total", "XOF 12.28").assert_one_message(
        Exit.USAGE, "GHS 9.15 was confirmed, and the batch comes to GHS 9.14"
    )
    assert state(here)[0] == "imported"
    total = ("--confirm-total", "GHS 9.14", "--confirm-total", "XOF 12.28")
    done = here(*confirm, *total, "--max-rows", "4", "--json").step("confirmed")
    assert (done["state"], done["batch_id"]) == ("open", "june")
    with psycopg.connect(database) as connection:
        assert connection.execute("SELECT rules FROM payments.batches").fetchall() == [("[null, 4, null]",)]
    assert "it was planned before; nothing was changed" in here(*confirm).out


def test_a_paused_batch_is_left_alone_until_it_is_resumed(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned(here)
    with monkeypatch.context() as patched:
        without_key(patched)
        paused = here("pause", *NAMED, "--reason", "lunch", "--json").step("paused")
        assert (paused["state"], paused["reason"]) == ("paused", "lunch")
        assert "nothing was sent yet; paused: lunch" in here("status", *NAMED).out
    assert here("worker", "--until-idle").step("ended")["rows"] == 0
    assert state(here) == ("paused", ROWS, 0)
    resumed = " ".join(here("resume", *NAMED).out.split())
    assert "no worker is running: `payments payouts worker --batch-id june` starts one" in resumed
    assert state(here)[0] == "open"
    assert here("worker", "--until-idle", *NAMED).step("ended")["rows"] == ROWS
    assert_paid_once(here.sandbox, ROWS)


def test_what_is_not_paused_is_resumed_by_the_command_that_is_printed(here: Here, database: str) -> None:
    planned(here)
    done = here("resume", *NAMED, "--json").step("resume")
    assert (done["resumed"], done["command"]) == (False, "payments payouts run FILE --batch-id june")
    assert "it is not paused" in here("resume", *NAMED).out
    here("pause", "june.ledger").assert_one_message(
        Exit.USAGE, "june.ledger: is not the address of a database"
    )
    here("worker", "--until-idle")
    assert "it is complete" in here("resume", *NAMED).out
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("UPDATE payments.batches SET state = 'imported'")
        here("pause", *NAMED).assert_one_message(Exit.USAGE, "was not planned yet")
        assert "`payments payouts run FILE --batch-id june` asks for the total" in " ".join(
            here("status", *NAMED).out.split()
        )
        connection.execute("UPDATE payments.batches SET state = 'closed'")
        done = here("pause", *NAMED, "--json").step("pause")
        assert (done["paused"], done["state"]) == (False, "closed")
        assert "every row is decided; nothing was changed" in here("pause", *NAMED).out
        connection.execute(
            "UPDATE payments.batches SET state = 'suspect', reason = 'a fail-over', resumes_as = 'open'"
        )
        assert "it is suspect; after `recover` it stays paused" in here("pause", *NAMED).out
        assert connection.execute("SELECT resumes_as FROM payments.batches").fetchall() == [("paused",)]
    assert "recover" in " ".join(here("status", *NAMED).out.split())


def test_a_batch_that_its_rules_have_stopped_is_resumed_by_another_limit(here: Here) -> None:
    planned(here, "--max-rows", "2")
    assert here("worker", "--until-idle").step("ended")["rows"] == 2
    said = here("resume", *NAMED).out
    assert "not paused: 2 rows were taken, as many as --max-rows allows; raise that limit" in " ".join(
        said.split()
    )
    assert "payments payouts run FILE --batch-id june" in said


def test_the_rest_is_cancelled_once_its_name_was_typed(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    planned(here, "--max-rows", "2")
    assert here("worker", "--until-idle").code == Exit.DONE
    assert state(here) == ("open", 4, 2)
    assert "stopped: " in here("status", *NAMED).out
    refused = here("cancel-rest", *NAMED)
    refused.assert_one_message(
        Exit.USAGE, "4 rows", "would be cancelled", "To cancel them: `payments payouts cancel-rest --yes"
    )
    for typed in ("yes\n", "june\n"):
        monkeypatch.setattr(machines, "terminal", lambda typed=typed: lambda text: typed)
        done = here("cancel-rest", *NAMED, "--json")
        assert done.code == (Exit.DONE if typed == "june\n" else Exit.USAGE)
    assert done.step("cancelled")["rows"] == 4
    said = " ".join(here("cancel-rest", *NAMED).out.split())
    assert "nothing was changed; a worker closes it" in said
    assert here("cancel-rest", *NAMED, "--json").step("cancelled")["rows"] == 0
    found = here("status", *NAMED, "--json").step("batch")
    assert (found["complete"], found["state"]) == (True, "open")
    said = " ".join(here("status", *NAMED).out.split())
    assert "complete; not closed yet" in said
    assert "no worker is running: `payments payouts worker --batch-id june` starts one, and closes it" in said
    assert here("worker", "--until-idle").code == Exit.DONE
    assert "closed" not in here("status", *NAMED).out
    assert len(here.sandbox.books.payouts()) == 2


@pytest.mark.slow
def test_a_settled_batch_is_forgotten_once_that_was_confirmed(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ("run", "june.csv", *NAMED, "--workers", "1")
    assert here(*run, "--wait-final", "2h").code == Exit.DONE
    reference = here.sandbox.books.payouts()[0].reference
    forget = ("forget", "--closed-before")
    assert here(*forget, "90d", "--json").step("freed")["batches"] == 0
    would = here(*forget, "0", "--dry-run", "--json")
    assert would.step("would forget")["rows"] == ROWS
    assert would.step("would free")["bytes"] > 100_000
    here(*forget, "0").assert_one_message(
        Exit.USAGE,
        f"1 batch, {ROWS} rows ({ROWS} arrived), ",
        "would be forgotten",
        f"`payments payouts forget {forget[1]} 0 --yes`",
    )
    for typed in ("june\n", "forget\n"):
        monkeypatch.setattr(machines, "terminal", lambda typed=typed: lambda text: typed)
        done = here(*forget, "0", "--unsettled", "june")
        assert done.code == (Exit.DONE if typed == "forget\n" else Exit.USAGE)
    assert f"june: {ROWS} rows ({ROWS} arrived), " in done.out
    listed = here("status", *NAMED, "--json").step("batch")
    assert (listed["state"], listed["rows"]["arrived"]) == ("forgotten", ROWS)
    assert listed["forgotten"]["certificate"]["settled"] is True
    said = " ".join(here("status", *NAMED).out.split())
    assert "forgotten on 20" in said
    assert f"Its root is {listed['forgotten']['root']}" in said
    words = ("was forgotten on 20", f"{ROWS} rows were asked for")
    for command in (
        run,
        (*run[:4], "--dry-run"),
        ("export", "out.csv", *NAMED),
        ("worker", "--until-idle", *NAMED),
        ("retry-failed", *NAMED),
        *((name, *NAMED) for name in ("reconcile", "recover", "check", "watch")),
        *((name, *NAMED) for name in ("pause", "resume", "confirm", "cancel-rest")),
    ):
        here(*command).assert_one_message(Exit.USAGE, *words)
    for named in ((), NAMED):
        here("show", reference, *named).assert_one_message(
            Exit.USAGE, "this reference was of batch june, forgotten", f"of all its rows: {ROWS} arrived"
        )
    here("show", "row-1").assert_one_message(Exit.USAGE, "name one with --batch-id")
    here("show", "row-1", *NAMED).assert_one_message(Exit.USAGE, *words)
    here("run", "june.csv", "--batch-id", "july").assert_one_message(
        Exit.USAGE, "the same input as batch june, which was forgotten", "--pay-again"
    )
    assert_paid_once(here.sandbox, ROWS)


@pytest.mark.slow
def test_a_batch_that_becomes_settled_while_a_person_confirms_is_kept(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    july = ("--batch-id", "july", "--pay-again")
    assert here("run", "june.csv", *NAMED, "--workers", "1", "--wait-final", "2h").code == Exit.DONE
    assert here("run", "june.csv", *july, "--workers", "1", "--wait-final", "2h").code == Exit.DONE
    certificate = "UPDATE payments.batches SET certificate = {} WHERE batch_id = 'july'"
    address = os.environ["PAYMENTS_LEDGER"]
    ((kept,),) = run(address, "SELECT certificate FROM payments.batches WHERE batch_id = 'july'")
    run(address, certificate.format("NULL"))

    def asked(text: str) -> str:
        assert f"1 batch, {ROWS} rows ({ROWS} arrived)" in text
        run(address, certificate.format(f"'{kept}'"))
        return "forget\n"

    monkeypatch.setattr(machines, "terminal", lambda: asked)
    done = here("forget", "--closed-before", "0")
    assert "Kept" in done.out
    assert f"1 batch, {ROWS} rows ({ROWS} arrived)" in " ".join(done.out.split())
    states = run(address, "SELECT state FROM payments.batches ORDER BY batch_id")
    assert states == [("closed",), ("forgotten",)]


def test_a_batch_that_is_kept_is_shown_with_the_reason(here: Here) -> None:
    assert here("run", "june.csv", *NAMED, "--workers", "1").code == Exit.DONE
    kept = here("forget", "--closed-before", "0", "--yes")
    assert f"june: {ROWS} of its payouts are not final" in kept.out
    assert "`payments payouts reconcile --batch-id june` reads the service's list" in " ".join(
        kept.out.split()
    )
    assert "0 batches, 0 rows, 0 bytes" in kept.out
    refused = here("forget", "--closed-before", "0", "--unsettled", "july")
    refused.assert_one_message(Exit.USAGE, "batch july is not there: nothing was forgotten")
    here("forget", "june.ledger", "--closed-before", "0").assert_one_message(
        Exit.USAGE, "archive it, and delete the file"
    )
    bad = here("forget", "--closed-before", "x")
    assert (bad.code, "'x' is not an age" in bad.err) == (Exit.USAGE, True)
    assert here("forget", "--closed-before", "0", "--unsettled", "june", "--yes").code == Exit.DONE
    here("show", "reference-of-nobody", *NAMED).assert_one_message(Exit.USAGE, "was forgotten on 20")


def test_a_recovery_by_hand_is_over_once_no_command_is_missing(here: Here) -> None:
    planned(here)
    assert here("recover", *NAMED).step("recovered")["reason"] is None
    begun = here("recover", *NAMED, "--by-hand")
    said = begun.step("recovered")
    assert (begun.code, said["is_suspect"]) == (Exit.RESUMABLE, True)
    assert [command["kind"] for command in said["commands"]][:2] == ["import", "plan"]
    assert "payments payouts recover --commands-complete --batch-id june" in begun.err
    assert begun.err.index("again at") < begun.err.index("--commands-complete")  # in the order of the steps
    assert state(here)[0] == "suspect"
    assert here("worker", "--until-idle").step("ended")["rows"] == 0
    ended = here("recover", *NAMED, "--commands-complete")
    assert ended.step("recovered")["is_suspect"] is False
    assert "cannot be cancelled, edited or retried" in ended.err
    assert re.search(r"Run `payments payouts recover --batch-id june` again at \d\d:\d\d, in ", ended.err)
    assert state(here)[0] == "open"


def test_while_a_recovery_is_under_way_no_certificate_replaces_a_clean_one(here: Here) -> None:
    run, certificate = ("run", "june.csv", *NAMED), Path("june.certificate.json")
    assert here(*run).code == Exit.DONE
    clean = certificate.read_text()
    suspect = here("recover", *NAMED, "--by-hand")
    assert "No more rows are sent until you confirm" in suspect.err
    here("recover", *NAMED, "--commands-complete")
    again = "Commits were lost: run `payments payouts recover --batch-id june`"
    for command in (run, ("reconcile", *NAMED)):
        done = here(*command)
        assert (done.code, done.step("certified")["clean"]) == (Exit.REFUSED, False)
        assert (done.step("certified")["path"], done.step("finished")["certificate"]) == (None, None)
        assert again in done.err
        assert "15 minutes" not in done.err
        assert certificate.read_text() == clean
    printed = " ".join(here("status", *NAMED).out.split())
    assert "a recovery is under way" in printed
    assert again in printed
    certificate.write_text("[]")  # by another program
    assert here("reconcile", *NAMED).step("certified")["path"] == str(certificate)
    assert json.loads(certificate.read_text())["clean"] is False


# Addresses


def test_a_password_among_the_arguments_is_warned_of_once_and_shown_nowhere(
    here: Here, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PAYMENTS_LEDGER")
    ledger = ("--ledger", database)
    said = [
        here("run", "june.csv", *NAMED, *ledger, "--detach"),
        here("worker", "--until-idle", *ledger),
        here("status", database, *NAMED),
        here("status", database, *NAMED, "--json"),
        here("batches", database),
        here("status", database),
        here("status", database, "--batch-id", "july"),
        here("drain", database, "--worker", "abc"),
        here("ledger", "check", database),
    ]
    for each in said:
        assert PASSWORD not in each.out + each.err
        assert each.err.count("the database's password is on the command line") == 1
        assert PHONE not in each.out + each.err
    assert "status 'postgresql://postgres:***@" in said[0].err
    left = "".join(path.read_text() for path in here.folder.iterdir() if path.suffix == ".json")
    assert PASSWORD not in left


def test_a_password_of_the_limit_store_is_warned_of_too(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PAYMENTS_RATE_SHARE")
    monkeypatch.setattr(client, "PROCESS", LimiterRegistry())
    here("ledger", "init")
    ended = here("worker", "--until-idle", "--limit-store", "redis://:CANARY@127.0.0.1:1/0")
    assert (ended.code, "CANARY" in ended.out + ended.err) == (Exit.DONE, False)
    assert "the limit store's password is on the command line" in ended.err
    assert "put the address into PAYMENTS_LIMIT_STORE" in ended.err
    assert "command line" not in here("worker", "--until-idle", "--limit-store", "redis://127.0.0.1:1/0").err


def test_a_service_file_names_the_database(
    here: Here, postgres: PostgresServer, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = database.rpartition("/")[2]
    place = f"host=127.0.0.1\nport={postgres.port}\nuser=postgres\ndbname={name}\n"
    (here.folder / "services").write_text(f"[payroll]\n{place}")
    passwords = here.folder / "passwords"
    passwords.write_text(f"127.0.0.1:{postgres.port}:*:postgres:{PASSWORD}\n")
    passwords.chmod(0o600)
    monkeypatch.setenv("PGSERVICEFILE", "services")
    monkeypatch.setenv("PGPASSFILE", str(passwords))
    planned(here)
    monkeypatch.setenv("PAYMENTS_LEDGER", "postgresql:///?service=payroll")
    assert state(here) == ("open", ROWS, 0)


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["status"], ["name one with --batch-id", "`payments payouts batches` lists them"]),
        (["status", *NAMED], ["holds no ledger's tables", "ledger init"]),
        (["export", *NAMED], ["export: OUT is missing, the file to write"]),
        (["workers", "june.ledger"], ["june.ledger: is not the address of a database"]),
        (["batches", "mysql://pay@127.0.0.1/payroll"], ["a ledger is a file on a local disk or"]),
        (["batches", "june.ledger"], ["is not the address of a database"]),
        (["status", "mysql://pay@127.0.0.1/payroll", *NAMED], ["a ledger is a file on a local disk or"]),
        (["batches", "postgresql://db.example.com/payroll"], ["sslmode=verify-full"]),
        (["run", "june.csv", "--ledger", "postgresql://db.example.com/payroll"], ["sslmode=verify-full"]),
        (["worker", "--ledger", "postgresql://db.example.com/payroll"], ["sslmode=verify-full"]),
        (["batches", "postgresql://127.0.0.1/payroll?nope=1"], ["special characters percent-encoded"]),
        (["run", "june.csv", "--ledger", "june.ledger", "--workers", "2"], ["a file has one process"]),
        (["run", "june.csv", "--ledger", "june.ledger", "--detach"], ["a file has one process"]),
        (["worker", "--ledger", "june.ledger"], ["june.ledger: is not the address of a database"]),
        (["worker", "--until-eof"], ["--until-eof: the standard input is not a pipe"]),
    ],
)
def test_an_address_that_cannot_be_used_is_refused_and_said(
    here: Here, argv: list[str], said: list[str]
) -> None:
    here(*argv).assert_one_message(Exit.USAGE, *said)
    assert here.sandbox.requests == []


def test_an_unreachable_database_may_be_back_later(here: Here) -> None:
    lost = here("batches", "postgresql://127.0.0.1:9/payroll")
    lost.assert_one_message(Exit.RESUMABLE, "cannot be reached", "every row is as it was recorded last")


@pytest.mark.parametrize("command", [["batches"], ["worker", "--until-idle"], ["status", *NAMED]])
def test_a_database_that_refuses_the_user_is_not_asked_again(
    here: Here, postgres: PostgresServer, command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAYMENTS_LEDGER", postgres.url("nothing"))
    here(*command).assert_one_message(Exit.USAGE, "it refused the user, the password or the database's name")


def test_a_worker_that_lost_its_database_says_where_outcomes_are_and_exits_with_75(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = WorkerReport("1f2e", 3, 1, "the database is lost", 75, ("june-1f2e-1.unrecorded.json",))

    async def run(worker: PayoutWorker) -> WorkerReport:
        return report

    planned(here)
    monkeypatch.setattr(PayoutWorker, "run", run)
    lost = here("worker")
    assert (lost.code, lost.step("ended")["unrecorded"]) == (Exit.RESUMABLE, [*report.unrecorded])
    lost.assert_one_message(
        Exit.RESUMABLE,
        "the database is lost; "
        "outcomes that could not be recorded are in june-1f2e-1.unrecorded.json, as JSON",
    )


def test_a_worker_that_rests_is_told_with_its_reason(here: Here, database: str) -> None:
    here("ledger", "init")
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO payments.workers (id, host, pid, version, slots, started, last_seen, rows, trouble) "
            "SELECT decode(repeat(id, 16), 'hex'), 'pay', 24546, '0.1.0', 2, now(), now() - silent, 5, "
            "'something else than the service answered ' || id "
            "FROM (VALUES ('1f', interval '0 s'), ('2e', interval '1 hour')) AS of (id, silent)"
        )
    shown = " ".join(here("workers").out.split())
    assert "✗ Rests 1f1f1f1f: something else than the service answered 1f" in shown
    assert "answered 2e" not in shown  # it is gone
    lines = here("workers", "--json").lines
    assert [(line["ok"], line["trouble"][-2:]) for line in lines if line["step"] == "worker"] == [
        (False, "1f"),
        (False, "2e"),
    ]


def test_a_worker_that_ends_when_idle_names_the_batches_that_stay_open(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run(worker: PayoutWorker) -> WorkerReport:
        return WorkerReport("1f2e", 3, 1, left_open=("june", "july"))

    planned(here)
    monkeypatch.setattr(PayoutWorker, "run", run)
    assert here("worker", "--until-idle").step("ended")["left_open"] == ["june", "july"]


def test_a_batch_that_is_not_there_is_looked_for_in_the_list(here: Here) -> None:
    planned(here)
    for command in (["worker"], ["export", "out.csv"]):
        missing = here(*command, "--batch-id", "nosuch")
        missing.assert_one_message(
            Exit.USAGE, "no such batch; `payments payouts batches` lists those there are"
        )


def test_a_paused_batch_is_resumed_by_the_command_that_a_run_names(here: Here) -> None:
    planned(here)
    here("pause", *NAMED, "--reason", "lunch")
    stopped = here("run", "june.csv", *NAMED)
    assert (stopped.code, stopped.step("finished")["resumable"]) == (Exit.RESUMABLE, "after_change")
    assert (
        "Stopped: the batch is paused: lunch. `payments payouts resume --batch-id june` first." in stopped.err
    )
    assert here.sandbox.books.payouts() == []


# The database itself


def test_tables_are_made_once_checked_and_upgraded(here: Here, database: str) -> None:
    fresh = here("ledger", "check", "--json")
    assert (fresh.code, fresh.step("database")["tables"]) == (Exit.DONE, None)
    assert "`payments payouts ledger init` makes them" in here("ledger", "check").out
    assert [here("ledger", "init", "--json").step("tables")["made"] for _ in range(2)] == [True, False]
    upgraded = here("ledger", "upgrade", "--json").step("tables")
    assert upgraded["before"] == upgraded["now"]
    checked = here("ledger", "check", "--json").step("database")
    assert (checked["problems"], checked["standbys"], checked["is_pooled"]) == ([], "none", False)
    assert checked["connections"] == {"run": 4, "worker": 6}
    shown = " ".join(here("ledger", "check").out.split())
    assert "PostgreSQL" in shown
    assert "a run needs up to 4, and 6 for each worker; a pool must be as large" in shown
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("UPDATE payments.meta SET version = 99")
    here("worker", "--until-idle").assert_one_message(Exit.USAGE, "number 99")
    here("batches").assert_one_message(Exit.USAGE, "number 99")
    here("ledger", "check", "--json").assert_one_message(Exit.REFUSED, "its tables are number 99")


@pytest.fixture
def clerk(here: Here, postgres: PostgresServer, database: str) -> Iterator[str]:
    """The address for a user without rights."""
    name = database.rpartition("/")[2]
    here("ledger", "init")
    postgres.query(name, f'CREATE ROLE "{name}" LOGIN')
    yield postgres.url(name, user=name)
    postgres.query(name, f'DROP OWNED BY "{name}"')
    postgres.query(name, f'DROP ROLE "{name}"')


def test_missing_rights_are_printed_as_sql_that_gives_them(
    here: Here, clerk: str, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned(here)
    monkeypatch.setenv("PAYMENTS_LEDGER", clerk)
    here("batches").assert_one_message(Exit.USAGE, "lacks rights", "GRANT")
    assert "Tables     there, and may not be read" in here("ledger", "check").out

    def grant(role: str, *, rows: bool) -> int:
        check = ("ledger", "check", "--role", role, "--json")
        lacking = here(*check)
        lacking.assert_one_message(Exit.REFUSED, "its user lacks rights")
        with psycopg.connect(database, autocommit=True) as connection:
            for statement in lacking.step("database")["grants"]:
                if rows or " ON payments.row" not in statement:
                    connection.execute(statement)
        return here(*check).code

    assert grant("reader", rows=True) == Exit.DONE
    here("worker", "--until-idle").assert_one_message(
        Exit.USAGE, "lacks rights: GRANT UPDATE ON payments.batches"
    )
    assert here("status", *NAMED, "--json").step("batch")["rows"]["asked"] == ROWS
    printed = here("ledger", "check", "--role", "worker")
    assert (printed.code, "✗ Missing    GRANT " in printed.out) == (Exit.REFUSED, True)

    assert grant("worker", rows=False) == Exit.REFUSED  # the batch was imported before this user came
    monkeypatch.delenv("PAYMENTS_RATE_SHARE")  # another process shares its limit through the same database
    monkeypatch.setattr(client, "PROCESS", LimiterRegistry())
    refused = here("worker", "--until-idle")
    assert (refused.code, "lacks rights; let an owner" in refused.err) == (Exit.USAGE, True)
    assert state(here)[0] == "open"  # for workers that may
    assert grant("worker", rows=True) == Exit.DONE
    assert here("worker", "--until-idle").step("ended")["rows"] == ROWS


def test_what_fails_in_every_part_of_a_worker_is_one_message(
    here: Here, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    parts = asyncio.Barrier(2)

    async def refused(*_: object, **__: object) -> None:
        await parts.wait()
        raise RightsMissing("the database", ["GRANT UPDATE ON payments.chunks TO clerk"])

    planned(here)
    monkeypatch.setattr(granting, "grant", refused)
    here("worker", "--json").assert_one_message(Exit.USAGE, "lacks rights: GRANT UPDATE ON payments.chunks")
    gc.collect()
    assert caplog.records == []


COMMANDS: tuple[tuple[str, ...], ...] = (
    ("ledger", "init"),
    ("ledger", "upgrade"),
    ("ledger", "check"),
    ("run", "june.csv", *NAMED, "--detach"),
    ("batches",),
    ("workers",),
    ("status", *NAMED),
    ("check", *NAMED),
    ("export", "out.csv", *NAMED),
    ("confirm", *NAMED),
    ("pause", *NAMED),
    ("resume", *NAMED),
    ("run", "june.csv", *NAMED, "--workers", "1"),
    ("worker", "--until-idle"),
    ("reconcile", *NAMED),
    ("archive", "--to", "june.parquet", *NAMED),
    ("retry-failed", *NAMED),
    ("recover", *NAMED),
    ("cancel-rest", *NAMED, "--yes"),
    ("forget", "--closed-before", "90d"),
)


def test_another_machines_database_without_verified_tls_is_refused_unless_every_command_is_told(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_postgresql, "is_here", lambda hosts: False)
    for command in COMMANDS:
        refused = here(*command)
        assert refused.code in (Exit.USAGE, Exit.REFUSED), command
        assert "it is on another host, and sslmode=verify-full is not set" in refused.err, command
        assert here(*command, "--insecure-database").code == Exit.DONE, command
    assert_paid_once(here.sandbox, ROWS)
