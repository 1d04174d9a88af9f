"""A ledger with values that this package never writes is refused, in one line, and pays nothing more."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from tests.support.payout_command import Exit, Here, payouts_file

LEDGER = "june.csv.ledger"


@pytest.fixture
def here(here: Here) -> Here:
    """With a ledger of two batches."""
    for name in ("june", "july"):
        payouts_file(here.folder, 4, name=f"{name}.csv")
        run = ("run", f"{name}.csv", "--batch-id", name, "--ledger", LEDGER, "--pay-again")
        assert here(*run).code == Exit.DONE
    return here


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("rows", "units", -5),
        ("rows", "units", "x"),
        ("rows", "scale", 400),
        ("rows", "currency", "xo"),
        ("rows", "state", "LOST"),
        ("batches", "imported_sums", "no JSON"),
        ("batches", "imported_sums", "[]"),
        ("batches", "certificate", "no JSON"),
    ],
)
def test_a_ledger_that_cannot_be_read_is_refused_in_one_line(
    here: Here, table: str, column: str, value: object
) -> None:
    where = " AND row_key = 'r2'" if table == "rows" else ""
    with closing(sqlite3.connect(LEDGER)) as connection, connection:
        spoil = f"UPDATE payments_{table} SET {column} = ? WHERE batch_id = 'june'{where}"
        assert connection.execute(spoil, [value]).rowcount == 1
    for command in (("export", LEDGER, "out.csv"), ("reconcile", LEDGER)):
        refused = here(*command, "--batch-id", "june")
        assert refused.code == Exit.USAGE
        assert len(refused.err.splitlines()) == 1
        assert LEDGER in refused.err
    assert here("status", LEDGER, "--batch-id", "july").code == Exit.DONE
    assert len(here.sandbox.books.payouts()) == 8
