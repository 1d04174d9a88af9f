"""A batch: what is imported and what is refused, what it shows without a client, and how reports read."""

from __future__ import annotations

import stat
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from payments_async.bulk import BatchFigures, BulkError, LedgerError, SourceErrors
from payments_async.bulk.errors import LedgerMissing, LedgerUnavailable
from payments_async.sandbox import Sandbox
from tests.support.batches import item, items
from tests.support.desks import Desk, Pay
from tests.support.payout_files import PHONE, csv_file
from tests.support.places import EITHER


async def test_a_file_is_imported_once_and_known_again(batch: Any, tmp_path: Path) -> None:
    path = csv_file(tmp_path, PHONE, PHONE)
    first = await batch.load(path)
    again = await batch.load(path)
    assert (first.rows, first.is_new, first.totals) == (2, True, {"XCD": Decimal("100.20")})
    assert (again.rows, again.is_new, again.batch_id) == (2, False, first.batch_id)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))  # other bytes, the same rows
    assert not (await batch.load(str(path))).is_new
    assert (await batch.run()).counts["created"] == 2


@EITHER
async def test_a_ledger_holds_many_batches_each_under_its_name(
    desk: Desk, service: Sandbox, client: Any, place: Path | str
) -> None:
    for name, count in (("june", 2), ("july", 3)):
        async with desk.open(place, client, batch_id=name) as batch:
            assert (await batch.load(items(count), pay_again=True)).batch_id == name
            assert (await batch.run()).counts["created"] == count
    async with desk.open(place, client, batch_id=None) as batch:
        assert {each.binding.batch_id for each in await batch.batches()} == {"july", "june"}
        with pytest.raises(LedgerError, match="several batches; name one"):
            await batch.status()
    assert len(service.books.payouts()) == 5


async def test_all_faults_are_reported_together_and_nothing_is_imported(batch: Any, tmp_path: Path) -> None:
    rows = [
        item(1, reference="x" * 192),
        item(2, metadata={str(number): number for number in range(10)}),
        item(3, metadata={"payments_sdk": "mine"}),
        item(4, reference="invoice~g2"),
        item(5),
    ]
    with pytest.raises(SourceErrors) as caught:
        await batch.load(rows)
    assert caught.value.rows == 4
    with pytest.raises(LedgerMissing):
        await batch.status()
    report = await batch.load(rows, skip_invalid=True, rejects=tmp_path / "rejects.csv")
    assert (report.rows, report.skipped) == (1, 4)
    assert stat.S_IMODE((tmp_path / "rejects.csv").stat().st_mode) == 0o600
    assert (await batch.run()).exit_code == 0


async def test_references_are_the_operators_or_made(desk: Desk, batch: Any) -> None:
    await batch.load([item(1, reference="invoice-7"), item(2)])
    own, made = await desk.rows(batch)
    assert own.stem == "invoice-7"
    assert len(made.stem) == 52
    assert "+2290190112233" not in repr((own, made))


async def test_a_batch_is_used_within_its_context(desk: Desk, client: Any, tmp_path: Path) -> None:
    batch = desk.open(tmp_path / "l", client)
    with pytest.raises(BulkError, match="async with"):
        await batch.status()
    for other in (desk.open(tmp_path / "l", client, create=False), desk.open(tmp_path / "l", create=True)):
        with pytest.raises(LedgerMissing):
            await other.__aenter__()
    assert list(tmp_path.iterdir()) == []


async def test_without_a_client_a_batch_shows_where_it_stands_and_pays_nothing(
    desk: Desk, service: Sandbox, pay: Pay, tmp_path: Path
) -> None:
    await pay(items(3), max_rows=2)
    asked = len(service.requests)
    async with desk.open(tmp_path / "l") as batch:
        assert (await batch.status()).counts["created"] == 2
        works = (
            partial(batch.load, items(3)),
            batch.run,
            partial(batch.reconcile),
            batch.reconcile,
            batch.retry_failed,
        )
        for work in works:
            with pytest.raises(BulkError, match="open the batch with a client"):
                await work()
        batch.stop()
    assert len(service.requests) == asked


@pytest.mark.parametrize(
    ("figures", "text"),
    [
        ({}, "{}"),
        ({"a": 0, "b": 2}, "{b: 2}"),
        ({"XCD": Decimal("1E+3"), "GHS": Decimal("0.00")}, "{XCD: 1000}"),
        ({"XCD": {"NEW": Decimal("10.50")}, "GHS": {}}, "{XCD: {NEW: 10.50}}"),
    ],
)
def test_figures_are_plain_and_without_what_is_zero(figures: Any, text: str) -> None:
    assert repr(BatchFigures(figures, figures)) == f"BatchFigures(counts={text}, sums={text})"


async def test_another_total_than_that_of_the_batch_is_not_confirmed(batch: Any) -> None:
    await batch.load(items(2))
    with pytest.raises(BulkError, match="nothing was confirmed"):
        await batch.confirm({"XCD": "3.03"})
    assert not (await batch.facts()).is_confirmed
    await batch.confirm({"XCD": "3.02"})
    assert (await batch.facts()).is_confirmed


async def test_a_ledger_that_fails_while_the_batch_is_certified_is_not_a_list_that_cannot_be_read(
    batch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_: object, **__: object) -> None:
        raise LedgerUnavailable("june.ledger", "the disk is full")

    await batch.load(items(2))
    with monkeypatch.context() as patched:
        patched.setattr("payments_async.bulk.batch.certify", fails)
        with pytest.raises(LedgerUnavailable, match="the disk is full"):
            await batch.run()
    assert (await batch.run()).exit_code == 0


async def test_reports_read_well(batch: Any, tmp_path: Path) -> None:
    loaded = await batch.load(items(2))
    report = await batch.run(wait_final=60.0)
    again = await batch.retry_failed()
    written = await batch.export(tmp_path / "out.csv")
    assert repr(report).startswith(
        "BatchReport(counts={asked: 2, created: 2, arrived: 2}, "
        "sums={XCD: {asked: 3.02, created: 3.02, arrived: 3.02}}, batch_id='batch', "
        "totals={XCD: 3.02}, is_complete=True, is_balanced=True, exit_code=0, stopped=None, resumable=None, "
        "next=None, throttled=0"
    )
    assert "totals={XCD: 3.02}, is_new=True" in repr(loaded)
    assert "payable={XCD: 3.02}" in repr(loaded)
    assert repr(again).endswith("rows=(), totals={}, left=(), dry_run=False, reasons={})")
    assert "rows=2, totals={XCD: 3.02}" in repr(written)
