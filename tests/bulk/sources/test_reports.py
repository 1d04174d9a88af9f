"""Faults reported together, and rejects that can be corrected and imported."""

from __future__ import annotations

import csv
import pickle
import stat
from pathlib import Path

import pytest

from payments_async.bulk import PayoutBatch
from payments_async.bulk.errors import BulkError, SourceErrors, SourceUnreadable
from payments_async.bulk.sources import RejectsFile, RowFault, open_source
from payments_async.errors import PaymentsError
from tests.support.payout_files import PHONE, csv_file, read, split

BAD = {**PHONE, "currency": "xof", "amount": "0.5"}


async def refusal_of(path: Path) -> SourceErrors:
    with pytest.raises(SourceErrors) as caught:
        await PayoutBatch.open(path.parent / "l").preview(path)
    return caught.value


async def test_the_first_faults_are_kept_and_all_are_counted(tmp_path: Path) -> None:
    path = csv_file(tmp_path, BAD, PHONE, *[BAD] * 59)
    error = await refusal_of(path)
    assert (error.total, error.rows, error.source) == (120, 60, str(path))
    assert [(fault.line, fault.column) for fault in error.faults[:3]] == [
        (2, "amount"),
        (2, "currency"),
        (4, "amount"),
    ]
    assert len(error.faults) == 100
    lines = str(error).splitlines()
    assert [*lines[:3], lines[21]] == [
        f"{path}: 120 faults in 60 rows, nothing was sent",
        "  line 2, amount: must be at least 1, in major units",
        "  line 2, currency: must be three uppercase letters (ISO 4217): write it in capitals",
        "  and 100 more",
    ]
    one = str(await refusal_of(csv_file(tmp_path, {**PHONE, "currency": "xof"})))
    assert one.splitlines()[0] == f"{path}: 1 fault in 1 row, nothing was sent"
    assert "more" not in one


async def test_the_errors_are_payments_errors_that_travel_without_the_rows(tmp_path: Path) -> None:
    error = await refusal_of(csv_file(tmp_path, BAD))
    assert isinstance(error, BulkError | PaymentsError)
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.faults, copy.total, copy.effect) == (str(error), error.faults, 2, "none")
    assert b"22990000000" not in pickle.dumps(error)
    assert pickle.loads(pickle.dumps(SourceUnreadable("a.csv", "is bad", line=3))).line == 3


def rejects_of(path: Path, to: Path) -> list[list[str]]:
    """Write the rejects of a file; give their cells."""
    source = open_source(path)
    rejects = RejectsFile(to, source)
    with rejects.written():
        for fault in split(source)[1]:
            rejects.add(fault)
    with to.open(newline="", encoding="utf-8", errors="surrogateescape") as file:
        return list(csv.reader(file))


def test_rejects_replace_an_older_file_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "rejects.csv"
    target.write_text("older")
    source = open_source(csv_file(tmp_path, BAD))
    rejects = RejectsFile(target, source)
    with pytest.raises(RuntimeError), rejects.written():
        rejects.add(split(source)[1][0])
        raise RuntimeError
    assert target.read_text() == "older"
    rejects_of(csv_file(tmp_path, BAD), target)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert len(target.read_text().splitlines()) == 2
    assert not list(tmp_path.glob("*.part"))


def test_corrected_rejects_are_imported_as_they_are(tmp_path: Path) -> None:
    odd = {**BAD, "description": "=1+1", "metadata.quote": "'tis", "metadata.byte": "QQ"}
    path = csv_file(tmp_path, odd)
    path.write_bytes(path.read_bytes().replace(b"QQ", b"\xe9"))
    target = tmp_path / "rejects.csv"
    rejects_of(path, target)
    assert b"\xe9" in target.read_bytes()
    target.write_bytes(
        target.read_bytes().replace(b"xof", b"XCD").replace(b"0.5", b"50").replace(b"\xe9", b"QQ")
    )
    ((row,), faults) = read(target)
    assert faults == []
    corrected = {**odd, "currency": "XCD", "amount": "50"}
    ((direct,), _) = read(csv_file(tmp_path, corrected))
    assert row.request == direct.request


def test_a_fault_reads_as_a_sentence_and_hides_the_row() -> None:
    fault = RowFault(7, 6, "amount", "is required", ("+2290190000000",))
    assert str(fault) == "line 7, amount: is required"
    assert str(RowFault(None, 6, None, "is odd")) == "row 6: is odd"
    assert str(RowFault(None, None, "amount", "is missing")) == "header, amount: is missing"
    assert "22990000000" not in repr(fault)
