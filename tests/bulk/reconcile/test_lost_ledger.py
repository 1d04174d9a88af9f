"""A ledger is lost after rows were paid anew: what was paid later is found, told, and never paid again."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from payments_async import Instrument
from payments_async.sandbox import Sandbox
from tests.support.batches import item
from tests.support.desks import Desk

MENDED = Instrument.phone("+2290190112244", "BJ")
MISTAKEN = [item(1), item(2)]
EDITED = [item(1, instrument=MENDED), item(2)]


async def pay_anew(desk: Desk, service: Sandbox, path: Path, rows: Any = None, failures: int = 1) -> None:
    """Pay two rows, of which the first fails so often; it is paid anew each time, at last from other rows."""
    rule = service.on("payouts.create", description="row 1")
    rule.outcome("fail:RECIPIENT_ERROR", times=failures)
    async with desk.client(service) as client, desk.open(path, client) as batch:
        await batch.load(MISTAKEN, batch_id="batch")
        for _ in range(failures):
            assert (await batch.run(wait_final=60.0)).counts["failed"] == 1
            assert (await batch.retry_failed()).rows == (1,)
        if rows is not None:
            assert (await batch.load(rows, batch_id="batch", accept_edits=True)).corrected == 1
        assert (await batch.run(wait_final=60.0)).counts["arrived"] == 2
        assert (await batch.reconcile()).is_clean


async def first_row(batch: Any, folder: Path) -> dict[str, Any]:
    path = folder / "out.jsonl"
    path.unlink(missing_ok=True)
    await batch.export(path)
    said: dict[str, Any] = json.loads(path.read_text().splitlines()[0])
    return said


@pytest.mark.parametrize("rows", [MISTAKEN, EDITED], ids=["as first sent", "as last corrected"])
@pytest.mark.parametrize("failures", [1, 2])
async def test_a_lost_ledger_is_made_good_by_one_reconciling(
    desk: Desk, service: Sandbox, batch: Any, tmp_path: Path, rows: list[Any], failures: int
) -> None:
    """Each row gets the payout that the list shows of it, the later ones included. Nothing is sent."""
    await pay_anew(desk, service, tmp_path / "lost", EDITED if rows is EDITED else None, failures)
    paid, asked = service.books.payouts(), len(service.requests)
    await batch.load(rows, batch_id="batch")
    certificate = await batch.reconcile()
    assert (certificate.is_clean, certificate.is_settled) == (True, True)
    assert {entry.method for entry in service.requests[asked:]} == {"GET"}
    assert (await batch.status()).counts["arrived"] == 2
    row = await first_row(batch, tmp_path)
    assert (row["outcome"], row["payout_id"]) == ("arrived", paid[-1].id)
    assert (await batch.run()).exit_code == 0
    assert (await batch.reconcile()).is_clean
    assert service.books.payouts() == paid


async def test_a_later_payout_of_other_content_is_left_and_so_is_its_row(
    desk: Desk, service: Sandbox, batch: Any, tmp_path: Path
) -> None:
    await pay_anew(desk, service, tmp_path / "lost", EDITED)
    paid = service.books.payouts()
    await batch.load(MISTAKEN, batch_id="batch")
    certificate = await batch.reconcile()
    assert (certificate.report.counts["failed"], certificate.report.counts["in_excess"]) == (1, 1)
    (finding,) = certificate.findings
    assert finding.startswith(f"row 1: the list shows {paid[-1].id}, XCD 1.01, completed under its ~g1, a")
    report = await batch.retry_failed()
    assert report.rows == ()
    assert report.left[0].reason.startswith(f"the list shows {paid[-1].id}, XCD 1.01, completed, a later")
    assert not (await batch.reconcile()).is_clean
    assert service.books.payouts() == paid


@pytest.mark.parametrize("failures", [1, 2])
async def test_a_row_whose_payouts_all_have_other_content_is_in_conflict_and_each_is_named(
    desk: Desk, service: Sandbox, batch: Any, tmp_path: Path, failures: int
) -> None:
    await pay_anew(desk, service, tmp_path / "lost", EDITED, failures)
    paid = service.books.payouts()
    failed, arrived = paid[0], paid[-1]
    await batch.load([item(1, amount=Decimal("5.01")), item(2)], batch_id="batch")
    assert (await batch.run(wait_final=60.0)).counts["conflict"] == 1
    row = await first_row(batch, tmp_path)
    assert (row["outcome"], row["failure_code"]) == ("conflict", "other content under its reference")
    assert row["failure_message"].startswith(f"the list shows {failed.id}, XCD 1.01, failed; and ")
    assert f"{arrived.id}, XCD 1.01, completed under its ~g{failures}" in row["failure_message"]
    certificate = await batch.reconcile()
    later = [told for told in certificate.findings if "a later payout of it" in told]
    assert not certificate.is_clean
    assert len(later) == certificate.audit.differing - 1 == failures
    assert any(told.startswith(f"row 1: the list shows {arrived.id}, XCD 1.01, compl") for told in later)
    (conflict,) = set(certificate.findings) - set(later)
    assert conflict == f"row 1: in conflict, and the list shows {failed.id}, XCD 1.01, failed"
    assert certificate.report.counts["moved_in_conflict"] == 1
    assert certificate.report.sums["XCD"]["moved_in_conflict"] == Decimal("1.01")
    assert len(service.books.payouts()) == len(paid)
