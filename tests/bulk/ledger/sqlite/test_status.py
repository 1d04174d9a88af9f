"""The status file: whole at every moment, the owner's alone, no row in it."""

from __future__ import annotations

import json
import os
from decimal import Decimal
from pathlib import Path

import pytest

from payments_async.bulk._ledger.sqlite.status_file import StatusFile, report
from payments_async.bulk._protocol.outcomes import (
    EXACT,
    GROUPS,
    ExtraPayout,
    Outcome,
    RowTotals,
    Sums,
    as_text,
    by_currency,
    disagreements,
)
from payments_async.bulk._protocol.records import Header
from tests.support.ledgers import BINDING

TOTALS: RowTotals = {
    (Outcome.NOT_STARTED, "XOF"): (2, Decimal("20.20")),
    (Outcome.NOT_FINAL, "XOF"): (1, Decimal("1E+2")),
    (Outcome.NOT_FINAL, "GHS"): (3, Decimal("0.3")),
}
EXTRA = {(ExtraPayout.IN_EXCESS, "NGN"): (1, Decimal("7.50"))}
HEADER = Header(BINDING, 0.0, "0", 1, 6, by_currency(TOTALS), EXTRA)
WORDS = (*GROUPS, *ExtraPayout)


def test_the_report_counts_every_state_and_sums_every_currency() -> None:
    said = report(TOTALS, HEADER, pid=7, at=5.5, running=True)
    assert said == {
        "version": 2,
        "batch_id": "batch-1",
        "environment": "sandbox",
        "input_hash": "input-1",
        "pid": 7,
        "at": 5.5,
        "running": True,
        "activity": None,
        "speed": None,
        "rows": {
            **dict.fromkeys(WORDS, 0),
            "asked": 6,
            "not_started": 2,
            "created": 4,
            "not_final": 4,
            "in_excess": 1,
        },
        "sums": {
            "XOF": {
                **dict.fromkeys(WORDS, "0"),
                "asked": "120.20",
                "not_started": "20.20",
                **dict.fromkeys(("created", "not_final"), "100"),
            },
            "GHS": {**dict.fromkeys(WORDS, "0"), **dict.fromkeys(("asked", "created", "not_final"), "0.3")},
            "NGN": {**dict.fromkeys(WORDS, "0"), "in_excess": "7.50"},
        },
    }


def test_what_is_written_is_read_and_the_owners_alone(tmp_path: Path, path: Path) -> None:
    status = StatusFile.of(str(path))
    assert status.read() is None
    before = os.umask(0)
    try:
        assert status.write(report(TOTALS, HEADER, pid=7, at=5.5, running=True))
    finally:
        os.umask(before)
    assert status.read() == report(TOTALS, HEADER, pid=7, at=5.5, running=True)
    assert os.listdir(tmp_path) == ["ledger.status.json"]
    assert (tmp_path / "ledger.status.json").stat().st_mode & 0o777 == 0o600


def test_a_reader_sees_the_old_file_or_the_new_one_and_no_half(tmp_path: Path) -> None:
    status = StatusFile.of(str(tmp_path / "ledger"))
    status.write({"version": 2, "n": 1})
    with open(status.path, encoding="utf-8") as opened:
        status.write({"version": 2, "n": 2})
        assert json.load(opened)["n"] == 1
    assert status.read() == {"version": 2, "n": 2}


def test_a_status_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    assert not StatusFile(str(tmp_path / "nowhere" / "status")).write({})


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"version": 1}', b"\xff"])
def test_a_status_that_is_something_else_says_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "status").write_bytes(content)
    assert StatusFile(str(tmp_path / "status")).read() is None


def test_amounts_are_plain_digits() -> None:
    assert [as_text(Decimal(each)) for each in ("10.10", "1E+2", "0.000000001")] == [
        "10.10",
        "100",
        "0.000000001",
    ]


def test_sums_are_exact_or_refused() -> None:
    sums = Sums[str]()
    sums.add("XOF", Decimal("1E+30"))
    sums.add("XOF", Decimal("1E-40"))
    sums.remove("XOF", Decimal("1E+30"))
    assert sums.totals == {"XOF": (1, Decimal("1E-40"))}
    with pytest.raises(ArithmeticError):
        EXACT.add(Decimal("1E+300"), Decimal(1))


def test_totals_that_differ_are_reported() -> None:
    assert disagreements(TOTALS, TOTALS) == []
    fewer = {place: total for place, total in TOTALS.items() if place[1] == "XOF"}
    told = "rows not final: 3 recorded (GHS 0.30), 0 found (GHS 0)"
    assert disagreements(TOTALS, fewer) == [told]
    assert disagreements(fewer, TOTALS) == ["rows not final: 0 recorded (GHS 0), 3 found (GHS 0.30)"]
