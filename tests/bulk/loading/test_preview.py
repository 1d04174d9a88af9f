"""A preview tells what loading would come to, and leaves everything as it was."""

from __future__ import annotations

import asyncio
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from payments_async.bulk import BulkError, LedgerMismatch, PayoutBatch, RowState, SourceErrors
from payments_async.sandbox import Sandbox
from tests.support.batches import item, items, ledger_rows
from tests.support.desks import Desk
from tests.support.payout_files import PHONE, csv_file


async def test_a_preview_reads_all_and_makes_nothing(service: Sandbox, tmp_path: Path) -> None:
    path = csv_file(tmp_path, PHONE, {**PHONE, "currency": "GHS", "amount": "1234567890123456.78"})
    report = await PayoutBatch.open(tmp_path / "l").preview(path)
    assert (report.rows, report.is_new, report.skipped) == (2, True, 0)
    assert report.totals == {"XCD": Decimal("50.10"), "GHS": Decimal("1234567890123456.78")}
    assert report.warnings[0].startswith("line 3, amount")
    assert os.listdir(tmp_path) == [path.name]
    assert service.requests == []


@pytest.mark.parametrize("address", ["{}", "sqlite:///{}"])
async def test_rejects_never_replace_the_ledger(tmp_path: Path, address: str) -> None:
    path, ledger = csv_file(tmp_path, {**PHONE, "amount": "0.5"}, PHONE), tmp_path / "l"
    batch = PayoutBatch.open(address.format(ledger))
    with pytest.raises(BulkError, match="is the ledger's own file"):
        await batch.preview(path, skip_invalid=True, rejects=ledger)
    assert not ledger.exists()


async def test_others_run_while_a_file_is_read(tmp_path: Path) -> None:
    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    turns = 0
    path = csv_file(tmp_path, *[PHONE] * 1_100)
    other = asyncio.create_task(count())
    await PayoutBatch.open(tmp_path / "l").preview(path)
    other.cancel()
    assert turns >= 10  # each hundred rows at least


async def test_a_preview_of_an_edited_input_tells_what_differs(batch: Any, tmp_path: Path) -> None:
    path = csv_file(tmp_path, PHONE, PHONE)
    await batch.load(path)
    assert not (await batch.preview(path)).is_new
    csv_file(tmp_path, {**PHONE, "amount": "60.10"}, PHONE)
    before = await ledger_rows(batch)
    report = await batch.preview(path)
    assert [(each.number, each.fields, each.state) for each in report.differences] == [
        (1, ("amount",), RowState.NEW)
    ]
    assert (report.differing, report.is_new, report.totals) == (1, False, {"XCD": Decimal("100.20")})
    assert report.input_totals == {"XCD": Decimal("110.20")}
    assert await ledger_rows(batch) == before
    csv_file(tmp_path, {**PHONE, "amount": "none"}, PHONE)
    with pytest.raises(SourceErrors):
        await batch.preview(path)
    report = await batch.preview(path, skip_invalid=True, rejects=tmp_path / "rejects.csv")
    assert [each.what for each in report.differences] == ["removed"]
    assert (report.skipped, (tmp_path / "rejects.csv").exists()) == (1, True)


async def test_a_preview_opens_a_ledger_for_itself(
    service: Sandbox, desk: Desk, client: Any, tmp_path: Path
) -> None:
    async with desk.open(tmp_path / "l", client) as batch:
        await batch.load(items(2))
    report = await PayoutBatch.open(tmp_path / "l").preview(items(1))
    assert [each.what for each in report.differences] == ["removed"]
    with pytest.raises(LedgerMismatch, match="its batch id is batch, and this run's is other"):
        await PayoutBatch.open(tmp_path / "l").preview(items(1), batch_id="other")
    elsewhere = desk.other_client(service.api_key, "http://127.0.0.1:9/v1")
    async with elsewhere, desk.open(tmp_path / "l", elsewhere) as batch:
        with pytest.raises(LedgerMismatch, match="its base URL is"):
            await batch.preview(items(2))


@pytest.mark.parametrize("skips", [False, True])
async def test_shared_names_are_reported_with_the_other_faults_and_never_skipped(
    batch: Any, tmp_path: Path, skips: bool
) -> None:
    rows = [item(1, reference="a"), item(2, reference="b"), item(3, reference="a"), item(2, reference="c")]
    rows += [item(1, reference="a"), item(4, reference=" ")]
    for reads in (PayoutBatch.open(tmp_path / "m").preview, batch.preview, batch.load):
        with pytest.raises(SourceErrors) as caught:
            await reads(rows, skip_invalid=skips)
        told = {(fault.number, fault.column) for fault in caught.value.faults}
        assert told == {
            *((6, "reference"), (3, "reference"), (4, "row_key")),
            *((5, "row_key"), (5, "reference")),
        }
        assert (caught.value.total, caught.value.rows, caught.value.can_skip) == (5, 4, False)
        assert "row 4, row_key: is that of row 2 too" in str(caught.value)
