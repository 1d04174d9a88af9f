"""Faults, reported together; rows left out because of them, none of which is paid twice once corrected."""

from __future__ import annotations

import csv
import pickle
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from payments_async.bulk import PayoutBatch, SourceErrors
from payments_async.bulk.errors import BulkError, SourceUnreadable
from payments_async.bulk.sources import Row, RowFault
from payments_async.errors import PaymentsError
from payments_async.sandbox import Sandbox
from tests.support.batches import item, items
from tests.support.desks import Desk
from tests.support.payout_files import PHONE, csv_file, read, reported, source_of
from tests.support.rows import RowIdentifiers

KEYED = {"row_key": "emp-1", **PHONE}
BAD = {"amount": "0.5"}
WORSE = {**PHONE, **BAD, "currency": "xof"}
UNIQUE = "is that of line {} too; make each unique"


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


async def reference_of(key: str, batch_id: str = "batch") -> str:
    """The reference that a row has in a batch of the sandbox."""
    (row,) = [each async for each in source_of([(key, item(1)[1])]).rows()]
    assert isinstance(row, Row)
    return RowIdentifiers("sandbox", batch_id).new_row(row).stem


@pytest.mark.parametrize(
    "rows",
    [
        [KEYED, {**KEYED, **BAD}],
        [{**KEYED, **BAD}, KEYED],
        [{**KEYED, **BAD}, {**KEYED, **BAD}],
        [{**KEYED, **BAD, "currency": "xof"}, {**KEYED, **BAD, "currency": "xof"}],
        [KEYED, {**KEYED, "row_key": "emp-1 "}],
        [KEYED, {**KEYED, "row_key": "emp\u200b-1"}],
    ],
)
async def test_a_key_shared_with_a_faulty_row_refuses_the_file_whatever_the_options(
    batch: Any, service: Sandbox, tmp_path: Path, rows: Sequence[dict[str, str]]
) -> None:
    path = csv_file(tmp_path, *rows, {**KEYED, "row_key": "emp-2"})
    for reads in (batch.preview, batch.load):
        with pytest.raises(SourceErrors) as caught:
            await reads(path, skip_invalid=True)
        assert (3, "row_key", UNIQUE.format(2)) in reported(caught.value.faults)
        assert not caught.value.can_skip
    assert service.requests == []


async def test_a_row_that_cannot_be_taken_apart_has_the_key_in_its_first_cell(
    batch: Any, tmp_path: Path
) -> None:
    path = csv_file(tmp_path, KEYED, {**KEYED, "row_key": "emp-2"})
    path.write_text(path.read_text() + "emp-1,50,10,XCD,mtn_bj,+2290190000000,BJ\n")
    with pytest.raises(SourceErrors) as caught:
        await batch.load(path, skip_invalid=True)
    assert reported(caught.value.faults) == [
        (4, "row_key", UNIQUE.format(2)),
        (4, None, "has 7 cells, the header names 6 columns; a decimal comma? write 50.10"),
    ]
    assert (caught.value.total, caught.value.rows) == (2, 1)


@pytest.mark.parametrize("batch_id", ["june", None])
async def test_rejects_carry_the_reference_of_their_row(
    desk: Desk, client: Any, tmp_path: Path, batch_id: str | None
) -> None:
    rejects = tmp_path / "rejects.csv"
    path = csv_file(tmp_path, {**KEYED, **BAD}, {**KEYED, "row_key": "emp-2"}, {**KEYED, "row_key": "emp-3 "})
    async with desk.open(tmp_path / "l", client, batch_id=batch_id) as batch:
        report = await batch.load(path, skip_invalid=True, rejects=rejects)
    amount, key = table(rejects)
    assert [*amount][:4] == ["line", "column", "reason", "reference"]
    assert amount["reference"] == await reference_of("emp-1", report.batch_id)
    assert key["reference"] == await reference_of("emp-3", report.batch_id)
    assert "reference" not in amount["reason"]
    assert key["reason"].endswith("needs a new one, and its reference cell emptied")


async def test_a_reject_that_was_paid_after_all_is_a_conflict_under_any_name(
    desk: Desk, service: Sandbox, client: Any, tmp_path: Path
) -> None:
    rejects = tmp_path / "rejects.csv"
    faulty = csv_file(tmp_path, {**KEYED, **BAD}, {**KEYED, "row_key": "emp-2"})
    async with desk.open(tmp_path / "l", client) as batch:
        await batch.load(faulty, skip_invalid=True, rejects=rejects)
        await batch.run()
    async with desk.open(tmp_path / "lost", client) as batch:  # the whole file, corrected
        await batch.load(csv_file(tmp_path, KEYED, {**KEYED, "row_key": "emp-2"}))
        await batch.run()
    rejects.write_text(rejects.read_text().replace("0.5", "50.10"))
    async with desk.open(tmp_path / "rejects", client, batch_id="july") as batch:
        await batch.load(rejects)
        report = await batch.run()
    assert (report.exit_code, report.counts["conflict"]) == (1, 1)
    assert len(service.books.payouts()) == 2


async def test_without_a_key_rejects_have_no_references_and_the_report_says_so(tmp_path: Path) -> None:
    rejects = tmp_path / "rejects.csv"
    path = csv_file(tmp_path, {**KEYED, **BAD}, {**KEYED, "row_key": "emp-2"})
    batch = PayoutBatch.open(tmp_path / "l", batch_id="june")
    report = await batch.preview(path, skip_invalid=True, rejects=rejects)
    assert "reference" not in table(rejects)[0]
    assert report.warnings[0].startswith("the rejects have no references")
    clean = csv_file(tmp_path, KEYED)
    assert (await batch.preview(clean, rejects=rejects)).warnings == ()


async def rejected(desk: Desk, service: Sandbox, folder: Path, source: Any) -> list[dict[str, str]]:
    async with desk.client(service) as client, desk.open(folder / "l", client) as batch:
        await batch.preview(source, skip_invalid=True, rejects=folder / "rejects.csv")
    return table(folder / "rejects.csv")


async def test_an_operators_own_reference_stays_as_it_is(
    desk: Desk, service: Sandbox, tmp_path: Path
) -> None:
    path = csv_file(
        tmp_path,
        {**KEYED, **BAD, "reference": "inv-1"},
        {**KEYED, **BAD, "row_key": "emp-2", "reference": ""},
        {**KEYED, "row_key": "emp-3", "reference": " "},
        {**KEYED, "row_key": "emp-4", "reference": "inv-4 "},
        {**KEYED, "row_key": "emp-5", "reference": ""},
    )
    path.write_text(path.read_text() + "emp-6,50,10,XCD,mtn_bj,+2290190000000,BJ,\n")
    own, empty, blank, trailing, wide = await rejected(desk, service, tmp_path, path)
    assert own["reference"] == "inv-1"
    assert empty["reference"] == await reference_of("emp-2")
    assert blank["reference"] == await reference_of("emp-3")
    assert trailing["reference"] == "inv-4 "
    assert wide["reason"].endswith("no reference could be given to it: see that no other row pays the same")


@pytest.mark.parametrize(
    ("columns", "broken", "skipped"),
    [
        ((*PHONE, "row_key"), "10,50,XCD,mtn_bj,+2290190000000,BJ,emp-1", False),
        (tuple(PHONE), "10,50,XCD,mtn_bj,+2290190000000,BJ", True),
    ],
)
async def test_a_row_whose_key_cannot_be_read_may_be_anothers_and_is_never_left_out(
    batch: Any, tmp_path: Path, columns: tuple[str, ...], broken: str, skipped: bool
) -> None:
    good = {**PHONE, "row_key": "emp-1"}
    path = csv_file(tmp_path, {column: good[column] for column in columns})
    path.write_text(f"{path.read_text()}{broken}\n")
    rejects = tmp_path / "rejects.csv"
    if skipped:
        await batch.load(path, skip_invalid=True, rejects=rejects)
        assert table(rejects)[0]["reference"] == await reference_of("2"), "its number is its key"
    else:
        with pytest.raises(SourceErrors, match="its row_key cannot be read") as caught:
            await batch.load(path, skip_invalid=True, rejects=rejects)
        assert not caught.value.can_skip
    assert [row["line"] for row in table(rejects)] == ["3"]


async def test_an_input_that_changes_between_its_readings_is_refused(batch: Any) -> None:
    class Restless:
        readings = 0

        def __iter__(self) -> Any:
            self.readings += 1
            return iter([*items(2), item(1 if self.readings == 1 else 3)])

    with pytest.raises(Exception, match="changed while it was read"):
        await batch.load(Restless())


@pytest.mark.parametrize("name", ["payouts.csv", "./payouts.csv", "l", "l-wal", "l-journal"])
async def test_rejects_take_the_place_of_no_file_of_the_batch(batch: Any, tmp_path: Path, name: str) -> None:
    path = csv_file(tmp_path, KEYED, {**KEYED, **BAD, "row_key": "emp-2"})
    before = path.read_bytes()
    rejects = f"{tmp_path}/{name}"
    for reads in (batch.preview, batch.load):
        with pytest.raises(BulkError, match="choose another path"):
            await reads(path, skip_invalid=True, rejects=rejects)
    assert path.read_bytes() == before
    assert (await batch.load(path, skip_invalid=True)).rows == 1
    path.write_bytes(before + b"\n")
    with pytest.raises(BulkError, match="choose another path"):
        await batch.load(path, skip_invalid=True, accept_edits=True, rejects=rejects)


async def refusal_of(path: Path) -> SourceErrors:
    with pytest.raises(SourceErrors) as caught:
        await PayoutBatch.open(path.parent / "l").preview(path)
    return caught.value


async def test_the_first_faults_are_kept_and_all_are_counted(tmp_path: Path) -> None:
    path = csv_file(tmp_path, WORSE, PHONE, *[WORSE] * 59)
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
    error = await refusal_of(csv_file(tmp_path, WORSE))
    assert isinstance(error, BulkError | PaymentsError)
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.faults, copy.total, copy.effect) == (str(error), error.faults, 2, "none")
    assert b"22990000000" not in pickle.dumps(error)
    assert pickle.loads(pickle.dumps(SourceUnreadable("a.csv", "is bad", line=3))).line == 3


async def test_rejects_replace_an_older_file_whole_or_not_at_all(tmp_path: Path) -> None:
    class Breaking:
        readings = 0

        def __iter__(self) -> Any:
            self.readings += 1
            yield item(1, amount="0.5")
            if self.readings == 2:  # while the rejects are written
                raise RuntimeError

    target, path = tmp_path / "rejects.csv", csv_file(tmp_path, {**PHONE, **BAD}, PHONE)
    target.write_text("older")
    with pytest.raises(RuntimeError):
        await PayoutBatch.open(tmp_path / "l").preview(Breaking(), skip_invalid=True, rejects=target)
    assert target.read_text() == "older"
    await PayoutBatch.open(tmp_path / "l").preview(path, skip_invalid=True, rejects=target)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert len(target.read_text().splitlines()) == 2
    assert not list(tmp_path.glob("*.part"))


async def test_corrected_rejects_are_imported_as_they_are(tmp_path: Path) -> None:
    odd = {**PHONE, **BAD, "description": "=1+1", "metadata.quote": "'tis", "metadata.byte": "QQ"}
    path, target = csv_file(tmp_path, odd, {**odd, "amount": "2"}), tmp_path / "rejects.csv"
    path.write_bytes(path.read_bytes().replace(b"QQ", b"\xe9", 1))
    await PayoutBatch.open(tmp_path / "l").preview(path, skip_invalid=True, rejects=target)
    assert b"\xe9" in target.read_bytes()
    target.write_bytes(target.read_bytes().replace(b",0.5,", b",50,").replace(b"\xe9", b"QQ"))
    ((row,), faults) = read(target)
    assert faults == []
    ((direct,), _) = read(csv_file(tmp_path, {**odd, "amount": "50"}))
    assert row.request == direct.request


def test_a_fault_reads_as_a_sentence_and_hides_the_row() -> None:
    fault = RowFault(7, 6, "amount", "is required", ("+2290190000000",))
    assert str(fault) == "line 7, amount: is required"
    assert str(RowFault(None, 6, None, "is odd")) == "row 6: is odd"
    assert str(RowFault(None, None, "amount", "is missing")) == "header, amount: is missing"
    assert "22990000000" not in repr(fault)
