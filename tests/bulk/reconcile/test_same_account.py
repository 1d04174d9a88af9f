"""Where a ledger's batch may go on, what its status and certificate say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from payments_async.bulk import BatchReport, BulkError, LedgerError, LedgerMismatch
from payments_async.bulk._ledger.ledger import Ledger
from payments_async.sandbox import Sandbox, SandboxLimits
from tests.support.batches import Item, items
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


async def test_another_key_goes_on_after_the_first_one_has_sent_nothing(
    desk: Desk, service: Sandbox, tmp_path: Path
) -> None:
    async with desk.client(service) as client, desk.open(tmp_path / "l", client) as batch:
        await batch.load(items(2))
        await batch.reconcile()
    assert (await pays(desk, service, tmp_path / "l", items(2), api_key=service.new_key())).exit_code == 0


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
        killed.setattr(Ledger, "record", _unrecorded)
        with pytest.raises(LedgerError):
            await pays(desk, service, tmp_path / "l", items(3))
    assert len({entry.id for entry in service.books.payouts()}) == 3
    with pytest.raises(LedgerMismatch, match="of the same project"):
        await pays(desk, service, tmp_path / "l", items(3), api_key=service.new_key())
    assert (await pays(desk, service, tmp_path / "l", items(3), api_key="sk_sandbox_rotated")).exit_code == 0
    assert len({entry.id for entry in service.books.payouts()}) == 3


async def _unrecorded(ledger: Ledger, _: Any) -> None:
    raise LedgerError(ledger.label, "is full")
