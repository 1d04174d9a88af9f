"""Row keys and references that only look alike: one name for one row, and none that pays it twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest

from payments_async.bulk import BatchIdRequired, PayoutBatch
from payments_async.sandbox import Sandbox
from tests.support.batches import item
from tests.support.desks import Desk
from tests.support.payout_files import PHONE, csv_file, jsonl_file, read, reported, source_of

BLANK = "begins or ends with a blank: take it away, as nothing is trimmed"
UNSEEN = "holds U+200B, which is invisible or unassigned"
ITEMS = [(key, item(number)[1]) for number, key in enumerate(("José", "Zoé", "ann"), 1)]


@pytest.mark.parametrize("column", ["row_key", "reference"])
@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("emp-1 ", BLANK),
        ("\xa0emp-1", BLANK),
        ("emp\u200b-1", UNSEEN),
        ("emp\t1", "holds a control character"),
        ("emp\x7f1", "holds a control character"),
        ("emp\u03781", "holds U+0378, which is invisible or unassigned"),
    ],
)
async def test_a_name_that_looks_like_another_is_a_fault(
    tmp_path: Path, column: str, cell: str, reason: str
) -> None:
    for path in (csv_file(tmp_path, {**PHONE, column: cell}), jsonl_file(tmp_path, {**PHONE, column: cell})):
        rows, faults = read(path)
        assert rows == []
        assert [(name, text) for _, name, text in reported(faults)] == [(column, reason)]
    given: Any = (cell, item(1)[1]) if column == "row_key" else item(1, reference=cell)
    (fault,) = [each async for each in source_of([given]).rows()]
    assert (getattr(fault, "column", None), getattr(fault, "reason", None)) == (column, reason)


async def test_a_sheet_in_another_unicode_form_pays_nobody_again(
    desk: Desk, service: Sandbox, client: Any, tmp_path: Path
) -> None:
    other = [(normalize("NFD", key), request) for key, request in ITEMS]
    for ledger, rows in (("l", ITEMS), ("lost", other)):
        async with desk.open(tmp_path / ledger, client) as batch:
            await batch.load(rows)
            assert (await batch.run()).exit_code == 0
            assert (await batch.reconcile()).is_clean
    assert len(service.books.payouts()) == 3


async def test_keys_that_differ_only_in_case_are_two_rows_with_a_warning(
    batch: Any, service: Sandbox
) -> None:
    rows = [("emp-1", item(1)[1]), ("emp-2", item(2)[1]), ("EMP-1", item(3)[1])]
    warnings = (await batch.load(rows)).warnings
    assert warnings == (
        "row 3, row_key differs from that of row 1 only in case: they are two rows, and both are paid",
    )
    assert (await batch.run()).exit_code == 0
    assert len({payout.reference for payout in service.books.payouts()}) == 3


async def test_a_live_key_pays_no_rows_that_nothing_names(
    desk: Desk, service: Sandbox, tmp_path: Path
) -> None:
    references = [item(n, reference=f"inv-{n}") for n in (1, 2)]
    half = [item(1, reference="inv-1"), item(2)]
    async with desk.client(service, api_key="sk_live_x", base_url="https://localhost/v1") as client:
        async with desk.open(tmp_path / "l", client, batch_id=None) as batch:
            for rows in (ITEMS, half):
                for reads in (batch.load, batch.preview):
                    with pytest.raises(BatchIdRequired, match="every row would be paid again") as caught:
                        await reads(rows)
                    assert caught.value.effect == "none"
        async with desk.open(tmp_path / "named", client, batch_id=None) as batch:
            assert (await batch.load(ITEMS, batch_id="june")).is_new
            assert not (await batch.load(ITEMS)).is_new
        async with desk.open(tmp_path / "references", client, batch_id=None) as batch:
            assert (await batch.preview(references)).warnings == ()
            assert (await batch.load(references)).is_new
    assert service.requests == []


async def test_a_preview_without_a_key_says_what_a_live_one_needs(tmp_path: Path) -> None:
    report = await PayoutBatch.open(tmp_path / "l").preview(ITEMS)
    assert report.warnings == (
        "a live key needs a batch id here, as not every row has a reference of its own",
    )
    named = await PayoutBatch.open(tmp_path / "l").preview(ITEMS, batch_id="june")
    assert named.warnings == ()
