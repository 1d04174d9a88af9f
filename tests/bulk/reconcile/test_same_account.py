"""Where a ledger's batch may go on, and what a new ledger makes good when one was lost."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from payments_async import Instrument
from payments_async.bulk import BatchReport, BulkError, LedgerError, LedgerMismatch
from payments_async.sandbox import Sandbox, SandboxLimits
from tests.support.batches import Item, item, items
from tests.support.desks import Desk
from tests.support.places import EITHER, Place
from tests.support.watched import WatchedSandbox


async def pays(
    desk: Desk, service: Sandbox, place: Place, rows: list[Item], api_key: str | None = None, **options: Any
) -> BatchReport:
    async with desk.client(service, api_key=api_key) as client:
        return await desk.paid(place, client, rows, **options)


@EITHER
async def test_the_ledger_stays_with_its_environment_and_address(
    desk: Desk, service: Sandbox, place: Place
) -> None:
    async with desk.client(service) as client, desk.open(place, client) as batch:
        await batch.load(items(2))
    clients = [
        (desk.other_client("sk_live_x", base_url="https://localhost/v1"), "environment"),
        (desk.other_client(service.api_key, base_url="http://localhost:9/v1"), "base URL"),
    ]
    for other, subject in clients:
        async with other, desk.open(place, other) as batch:
            for work in (batch.run, lambda: batch.load(items(2))):
                with pytest.raises(LedgerMismatch) as refused:
                    await work()
                assert refused.value.subject == subject
    assert service.books.payouts() == []


async def test_the_ledger_goes_on_however_its_address_is_written(
    desk: Desk, service: Sandbox, tmp_path: Path
) -> None:
    spellings = ("https://pay.test/v1", "https://Pay.test.:443/v1/", "https://pay.test:/v1")
    for spelling, rows in zip(spellings, (1, 2, 3), strict=True):
        async with desk.client(service, base_url=spelling) as client:
            report = await desk.paid(tmp_path / "l", client, items(3), max_rows=rows)
            assert report.counts["created"] == rows
    assert len(service.books.payouts()) == 3


async def test_another_key_is_refused_where_its_project_has_other_payouts_of_the_same_references(
    desk: Desk, service: Sandbox, tmp_path: Path
) -> None:
    other = service.new_key()
    await pays(desk, service, tmp_path / "l", items(2))
    await pays(desk, service, tmp_path / "m", items(2), api_key=other)
    assert len({entry.reference for entry in service.books.payouts()}) == 2
    with pytest.raises(LedgerMismatch, match="of the same project"):
        await pays(desk, service, tmp_path / "l", items(2), api_key=other)


async def test_what_a_reading_found_for_a_lost_ledger_is_of_its_project_and_is_kept(
    desk: Desk, service: Sandbox, tmp_path: Path
) -> None:
    await pays(desk, service, tmp_path / "l", items(5), max_rows=3)
    (tmp_path / "l").unlink()
    async with desk.client(service) as client, desk.open(tmp_path / "l", client) as batch:
        await batch.load(items(5))
        assert (await batch.reconcile()).report.counts["created"] == 3
        with pytest.raises(BulkError, match="the ledger is the record of that"):
            await batch.discard()
    with pytest.raises(LedgerMismatch, match="of the same project"):
        await pays(desk, service, tmp_path / "l", items(5), api_key=service.new_key())
    assert len(service.books.payouts()) == 3


@EITHER
async def test_a_replaced_key_goes_on_once_it_sees_the_ledgers_payouts(desk: Desk, place: Place) -> None:
    service = WatchedSandbox(limits=SandboxLimits.off())
    service.admit("sk_sandbox_rotated")
    await pays(desk, service, place, items(5), max_rows=2)
    with pytest.raises(LedgerMismatch):
        await pays(desk, service, place, items(5), api_key=service.new_key())
    report = await pays(desk, service, place, items(5), api_key="sk_sandbox_rotated")
    assert report.exit_code == 0
    assert len({entry.id for entry in service.books.payouts()}) == 5


async def test_another_key_is_refused_while_nothing_can_prove_its_project(
    desk: Desk, service: Sandbox, tmp_path: Path
) -> None:
    service.on("payouts.create").respond("http:401", times=None)
    await pays(desk, service, tmp_path / "l", items(2))
    with pytest.raises(LedgerMismatch):
        await pays(desk, service, tmp_path / "l", items(2), api_key=service.new_key())


async def test_a_replaced_key_goes_on_once_it_sees_a_payout_that_was_not_recorded(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = WatchedSandbox(limits=SandboxLimits.off())
    service.admit("sk_sandbox_rotated")
    with monkeypatch.context() as killed:
        killed.setattr("payments_async.bulk._ledger.ledger.Ledger.record", _unrecorded)
        with pytest.raises(LedgerError):
            await pays(desk, service, tmp_path / "l", items(3))
    assert len({entry.id for entry in service.books.payouts()}) == 3
    with pytest.raises(LedgerMismatch, match="of the same project"):
        await pays(desk, service, tmp_path / "l", items(3), api_key=service.new_key())
    assert (await pays(desk, service, tmp_path / "l", items(3), api_key="sk_sandbox_rotated")).exit_code == 0
    assert len({entry.id for entry in service.books.payouts()}) == 3


async def _unrecorded(ledger: Any, _: Any) -> None:
    raise LedgerError(ledger.label, "is full")


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
