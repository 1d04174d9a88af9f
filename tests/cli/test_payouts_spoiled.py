"""A ledger with values that this package never writes: what is wrong is named, and the others go on."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing

import pytest

from tests.support.payout_command import Exit, Here, payouts_file

LEDGER = "june.csv.ledger"
DEEP = "[" * 100_000


@pytest.fixture
def here(here: Here) -> Here:
    for name in ("june", "july"):
        payouts_file(here.folder, 4, name=f"{name}.csv")
        run = ("run", f"{name}.csv", "--batch-id", name, "--ledger", LEDGER, "--pay-again")
        assert here(*run).code == Exit.DONE
    return here


def write(statement: str, values: Sequence[object]) -> None:
    with closing(sqlite3.connect(LEDGER)) as connection, connection:
        assert connection.execute(statement, values).rowcount == 1


@pytest.mark.parametrize(
    ("column", "value"),
    [
        *(("units", value) for value in (-5, "x")),
        *(("scale", 400), ("currency", b"\0\0\0"), ("state", "LOST"), ("body", bytes(70_000))),
        ("takes", "x"),
        ("first_sent", 1e300),
        ("payout_id", bytes(9)),
        ("failure_message", "m" * 1_000_000),
    ],
)
def test_a_row_that_cannot_be_read_is_named_and_the_others_go_on(
    here: Here, column: str, value: object
) -> None:
    write(f"UPDATE payments_rows SET {column} = ? WHERE batch_id = 'june' AND row_key = 'r2'", [value])
    named = (LEDGER, "--batch-id", "june")
    here("show", LEDGER, "r2", *named[1:]).assert_one_message(Exit.USAGE, "row 2 cannot be read: ")
    assert here("show", LEDGER, "r3", *named[1:]).code == Exit.DONE
    for file in ("out.csv", "out.xlsx"):
        exported = here("export", LEDGER, file, *named[1:])
        assert exported.code == Exit.REFUSED
        assert "3 rows" in exported.out
        assert "✗ Unreadable row 2 cannot be read: " in exported.out
    for line in (("status", *named), ("reconcile", *named), ("batches", LEDGER)):
        done = here(*line, as_text=True)
        assert done.code in (Exit.DONE, Exit.REFUSED)
        assert len(done.out + done.err) < 5_000
    run = here("run", "--ledger", LEDGER, "--batch-id", "june", "--patience", "0")
    assert (run.code, len(run.out + run.err) < 20_000) == (Exit.REFUSED, True)
    assert len(here.sandbox.books.payouts()) == 8


@pytest.mark.parametrize(
    ("column", "value"),
    [
        *(("imported_sums", text) for text in ("[]", DEEP, '{"XCD": "1e999999999"}')),
        ("imported_rows", "x"),
        *(("created_at", value) for value in ("x", 1e300)),
        ("paused", "p" * 1_000_000),
        ("reader_until", "x"),
    ],
)
def test_a_batch_that_cannot_be_read_is_named_and_the_others_go_on(
    here: Here, column: str, value: object
) -> None:
    write(f"UPDATE payments_batches SET {column} = ? WHERE batch_id = 'june'", [value])
    listed = here("batches", LEDGER)
    assert listed.code == Exit.REFUSED
    assert "✗ Batch      june cannot be read: it" in listed.out
    assert "july: certified; 4 rows" in listed.out
    states = {line["batch_id"]: line["state"] for line in here("batches", LEDGER, "--json").lines}
    assert states == {"june": "unreadable", "july": "certified"}
    for name in ("status", "reconcile", "pause", "confirm"):
        refused = here(name, LEDGER, "--batch-id", "june")
        refused.assert_one_message(Exit.USAGE, f"{LEDGER}: its batch june cannot be read: it")
    assert here("status", LEDGER, "--batch-id", "july").code == Exit.DONE


@pytest.mark.parametrize("text", ["no JSON", '{"clean": true, "settled": true}', DEEP])
def test_a_certificate_that_cannot_be_read_is_none_and_made_anew(here: Here, text: str) -> None:
    write("UPDATE payments_batches SET certificate = ? WHERE batch_id = 'june'", [text])
    named = (LEDGER, "--batch-id", "june")
    assert here("status", *named, "--json").step("batch")["certificate"] is None
    assert "june: open; 4 rows" in here("batches", LEDGER).out
    assert here("export", LEDGER, "out.xlsx", *named[1:]).code == Exit.DONE
    here("forget", *named, "--before", "2026-01-01").assert_one_message(Exit.USAGE, "run it again")
    assert here("reconcile", *named).step("certified")["clean"]
    assert here("status", *named, "--json").step("batch")["certificate"]["clean"]
