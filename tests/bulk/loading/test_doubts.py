"""What is allowed and probably a slip stops nothing, and stands wherever a person decides."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from payments_async.bulk import PayoutBatch, SourceErrors
from payments_async.sandbox import Sandbox
from tests.support.desks import Desk
from tests.support.payout_files import PHONE, csv_file

OTHER = {**PHONE, "instrument.phone_number": "+2250700000009"}
DOUBT = "instrument.phone_number does not begin with +229, the calling code of BJ"


async def test_a_doubt_stands_in_preview_report_and_certificate(
    service: Sandbox, desk: Desk, tmp_path: Path
) -> None:
    path = csv_file(tmp_path, PHONE, OTHER, OTHER)
    async with desk.client(service) as client, desk.open(tmp_path / "l", client) as batch:
        for report in (await batch.preview(path), await batch.load(path), await batch.load(path)):
            assert report.doubts == 2
        paid = await batch.run()
        assert (paid.exit_code, paid.doubts, paid.counts["created"]) == (0, 2, 3)
        assert json.loads((await batch.reconcile()).to_json())["doubts"] == 2


async def test_an_edit_counts_them_anew(service: Sandbox, desk: Desk, tmp_path: Path) -> None:
    async with desk.client(service) as client, desk.open(tmp_path / "l", client, batch_id="b") as batch:
        await batch.load(csv_file(tmp_path, PHONE, OTHER))
        report = await batch.load(csv_file(tmp_path, PHONE, PHONE), accept_edits=True)
        assert (report.corrected, report.doubts, (await batch.status()).doubts) == (1, 0, 0)
        with pytest.raises(SourceErrors, match="calling code"):
            await batch.load(csv_file(tmp_path, PHONE, OTHER), accept_edits=True, doubts=False)


async def test_without_doubts_each_is_a_fault(tmp_path: Path) -> None:
    path = csv_file(tmp_path, PHONE, OTHER, {**PHONE, "amount": "12345678901234567"})
    with pytest.raises(SourceErrors) as caught:
        await PayoutBatch.open(tmp_path / "l").preview(path, doubts=False)
    assert [f"{fault.column} {fault.reason}" for fault in caught.value.faults] == [
        DOUBT,
        "amount has 17 significant digits; more than 15 may be rounded on the way",
    ]
    report = await PayoutBatch.open(tmp_path / "l").preview(path, doubts=False, skip_invalid=True)
    assert (report.rows, report.doubts, report.skipped) == (1, 0, 2)
