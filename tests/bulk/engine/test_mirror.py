"""A ledger is lost after rows were paid anew: what was paid later is found, told, and never paid again."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from payments_async import Instrument
from payments_async.bulk import PayoutBatch
from payments_async.bulk.engine.mirror import OtherGenerations
from payments_async.bulk.protocol.generations import earlier_references, later_references
from payments_async.models import Payout
from payments_async.sandbox import Sandbox
from tests.support.batches import in_process, item, items
from tests.support.desks import Desk

MENDED = Instrument.phone("+22990112244", "BJ")
MISTAKEN = [item(1), item(2)]
EDITED = [item(1, instrument=MENDED), item(2)]


async def pay_anew(desk: Desk, service: Sandbox, path: Path, rows: Any = None, failures: int = 1) -> None:
    """Pay two rows, of which the first fails so often; it is paid anew each time, at last from other rows."""
    rule = service.on("payouts.create", description="row 1")
    rule.outcome("fail:RECIPIENT_ERROR", times=failures)
    async with desk.client(service) as client, desk.open(path, client) as batch:
        await batch.load(MISTAKEN, batch_id="june")
        for _ in range(failures):
            assert (await batch.run(wait_final=60.0)).counts["failed"] == 1
            assert (await batch.retry_failed()).rows == (1,)
        if rows is not None:
            assert (await batch.load(rows, batch_id="june", accept_edits=True)).corrected == 1
        assert (await batch.run(wait_final=60.0)).counts["arrived"] == 2
        assert (await batch.reconcile()).is_clean


async def first_row(batch: Any, folder: Path) -> dict[str, Any]:
    """What an export says of the first row."""
    path = folder / "out.json"
    path.unlink(missing_ok=True)
    await batch.export(path)
    said: dict[str, Any] = json.loads(path.read_text())[0]
    return said


@pytest.mark.parametrize("rows", [MISTAKEN, EDITED], ids=["as first sent", "as last corrected"])
@pytest.mark.parametrize("failures", [1, 2])
async def test_a_lost_ledger_is_made_good_by_reconciling(
    desk: Desk, service: Sandbox, tmp_path: Path, rows: list[Any], failures: int
) -> None:
    """Later payouts are recorded as their rows', if the file asks for what they have paid."""
    await pay_anew(desk, service, tmp_path / "lost", EDITED if rows is EDITED else None, failures)
    paid = service.books.payouts()
    async with desk.client(service) as client, desk.open(tmp_path / "l", client) as batch:
        await batch.load(rows, batch_id="june")
        assert (await batch.run(wait_final=60.0)).exit_code == 1
        left = (await batch.retry_failed()).left
        assert all("a later payout of it that has not failed" in row.reason for row in left)
        (other,) = (await batch.retry_failed(rows=[2])).left
        assert (other.number, other.reason) == (2, "its payout is completed")
        assert (await batch.reconcile()).is_clean
        assert batch.status().counts["arrived"] == 2
        row = await first_row(batch, tmp_path)
        assert (row["outcome"], row["payout_id"]) == ("arrived", paid[-1].id)
        assert (await batch.run()).exit_code == 0
        assert (await batch.reconcile()).is_clean
    assert service.books.payouts() == paid


async def test_a_later_payout_of_other_content_is_left_and_so_is_its_row(
    desk: Desk, service: Sandbox, tmp_path: Path
) -> None:
    await pay_anew(desk, service, tmp_path / "lost", EDITED)
    paid = service.books.payouts()
    async with desk.client(service) as client, desk.open(tmp_path / "l", client) as batch:
        await batch.load(MISTAKEN, batch_id="june")
        assert (await batch.run(wait_final=60.0)).counts["failed"] == 1
        assert not (await batch.reconcile()).is_clean
        report = await batch.retry_failed()
        assert report.rows == ()
        assert report.left[0].reason.startswith(f"the list shows {paid[-1].id}, XOF 1.01, completed, a later")
        assert not (await batch.reconcile()).is_clean
    assert service.books.payouts() == paid


@pytest.mark.parametrize("failures", [1, 2])
async def test_a_conflict_with_a_failed_payout_names_the_later_one(
    desk: Desk, service: Sandbox, tmp_path: Path, failures: int
) -> None:
    await pay_anew(desk, service, tmp_path / "lost", EDITED, failures)
    paid = service.books.payouts()
    failed, arrived = paid[0], paid[-1]
    async with desk.client(service) as client, desk.open(tmp_path / "l", client) as batch:
        await batch.load(EDITED, batch_id="june")
        report = await batch.run(wait_final=60.0)
        assert (report.exit_code, report.counts["conflict"]) == (1, 1)
        row = await first_row(batch, tmp_path)
        assert (row["outcome"], row["failure_code"]) == ("conflict", "other content under its reference")
        assert row["failure_message"].startswith(f"the list shows {failed.id}, XOF 1.01, failed; and ")
        assert f"{arrived.id}, XOF 1.01, completed under its ~g{failures}" in row["failure_message"]
        assert (await batch.reconcile()).is_clean
        assert (await first_row(batch, tmp_path))["outcome"] == "arrived"
    assert len(service.books.payouts()) == len(paid)


@pytest.mark.parametrize("failures", [1, 2])
async def test_a_conflict_whose_later_payouts_have_other_content_too_names_each_of_them(
    desk: Desk, service: Sandbox, tmp_path: Path, failures: int
) -> None:
    await pay_anew(desk, service, tmp_path / "lost", EDITED, failures)
    paid = service.books.payouts()
    failed, arrived = paid[0], paid[-1]
    async with desk.client(service) as client, desk.open(tmp_path / "l", client) as batch:
        await batch.load([item(1, amount=Decimal("5.01")), item(2)], batch_id="june")
        assert (await batch.run(wait_final=60.0)).counts["conflict"] == 1
        certificate = await batch.reconcile()
        later = [told for told in certificate.findings if "a later payout of it" in told]
        assert not certificate.is_clean
        assert len(later) == certificate.audit.differing - 1 == failures
        assert later[0].startswith(f"row 1: the list shows {arrived.id}, XOF 1.01, completed")
        (conflict,) = set(certificate.findings) - set(later)
        assert conflict == f"row 1: in conflict, and the list shows {failed.id}, XOF 1.01, failed"
    assert len(service.books.payouts()) == len(paid)


async def test_a_failed_payout_whose_row_was_paid_later_is_found(
    desk: Desk, service: Sandbox, tmp_path: Path
) -> None:
    await pay_anew(desk, service, tmp_path / "lost")
    paid = service.books.payouts()
    service.advance(2 * 86_400.0)  # no key gives its first answer again
    async with desk.client(service) as client, desk.open(tmp_path / "l", client) as batch:
        await batch.load(MISTAKEN, batch_id="june")
        assert (await batch.run(wait_final=60.0)).counts["failed"] == 1
        row = await first_row(batch, tmp_path)
        assert (row["outcome"], row["payout_status"]) == ("failed", "failed")
        assert row["failure_message"] == f"the list shows {paid[-1].id}, XOF 1.01, completed under its ~g1"
        assert (await batch.reconcile()).is_clean
        assert batch.status().counts["arrived"] == 2
    assert len(service.books.payouts()) == len(paid) == 3


async def test_reconciling_a_row_left_under_way_records_its_later_payout(
    desk: Desk, service: Sandbox, tmp_path: Path
) -> None:
    await pay_anew(desk, service, tmp_path / "lost")
    service.on("payouts.create", description="row 1").respond("http:409", times=None)
    async with desk.client(service) as client, desk.open(tmp_path / "l", client) as batch:
        await batch.load(MISTAKEN, batch_id="june")
        service.on("payouts.list").respond("http:503", times=None, after=1)
        assert (await batch.run(patience=1.0)).counts["in_doubt"] == 1
        service.clear_rules()
        assert (await batch.reconcile()).is_clean
        assert (await first_row(batch, tmp_path))["outcome"] == "arrived"


async def test_a_reference_of_another_batch_like_a_later_one_is_no_finding(
    desk: Desk, service: Sandbox, tmp_path: Path
) -> None:
    async with desk.client(service) as client:
        await desk.paid(tmp_path / "other", client, [item(9, reference="theirs")])
        async with desk.open(tmp_path / "l", client) as batch:
            await batch.load(items(2))
            await batch.run()
        service.on("payouts.create", description="row 9").outcome("fail:RECIPIENT_ERROR")
        async with desk.open(tmp_path / "third", client) as batch:
            await batch.load([item(9, reference="third", amount=Decimal(3))])
            await batch.run(wait_final=60.0)
            await batch.retry_failed()
            await batch.run(wait_final=60.0)
            assert (await batch.reconcile()).is_clean
        async with desk.open(tmp_path / "l", client) as batch:
            assert (await batch.reconcile()).is_clean


async def test_a_payout_that_two_pages_show_is_named_once(service: Sandbox, tmp_path: Path) -> None:
    async with in_process(service) as client, PayoutBatch.open(tmp_path / "l", client) as batch:
        await batch.load([item(1, reference="a"), item(2, reference="b")])
        later = OtherGenerations(batch._ledger)
        first, second = Payout(id="po_1", reference="a~g1"), Payout(id="po_2", reference="a~g2")
        told = [(row.number, words) for row, words in await later.take([second, Payout(reference="b")])]
        assert told == [(1, "po_2 under its ~g2")]
        ((row, words),) = await later.take([second, first])
        assert (row.number, words) == (1, "po_1 under its ~g1")
        assert later.of(row.number) == ("po_2 under its ~g2", "po_1 under its ~g1")
        assert later.of(2) == ()


@pytest.mark.parametrize(
    ("reference", "latest", "earlier"),
    [
        ("a", 5, []),
        ("a~g1", 0, ["a"]),
        ("a~g3", 0, ["a"]),
        ("a~g3", 1, ["a", "a~g1"]),
        ("a~g3", 9, ["a", "a~g1", "a~g2"]),
        ("a~g03", 9, []),
        ("a~g999999999", 1, ["a", "a~g1"]),
    ],
)
def test_earlier_references_are_those_that_a_row_may_still_have(
    reference: str, latest: int, earlier: list[str]
) -> None:
    assert earlier_references(reference, latest) == earlier
    assert all(reference in later_references(each, 999) for each in earlier if reference[-2:] != "99")
