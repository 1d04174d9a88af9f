"""Reports at a glance: their reprs name what there is, in plain digits."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from payments_async.bulk.protocol.totals import brief
from payments_async.sandbox import Sandbox
from tests.support.batches import items
from tests.support.desks import Desk


@pytest.mark.parametrize(
    ("figures", "text"),
    [
        ({}, "{}"),
        ({"a": 0, "b": 2}, "{b: 2}"),
        ({"XOF": Decimal("1E+3"), "GHS": Decimal("0.00")}, "{XOF: 1000}"),
        ({"XOF": {"NEW": Decimal("10.50")}, "GHS": {}}, "{XOF: {NEW: 10.50}}"),
    ],
)
def test_figures_are_plain_and_without_what_is_zero(figures: object, text: str) -> None:
    assert brief(figures) == text


async def test_reports_read_well(desk: Desk, service: Sandbox, tmp_path: Path) -> None:
    async with desk.client(service) as client, desk.open(tmp_path / "l", client) as batch:
        loaded = await batch.load(items(2), batch_id="june")
        report = await batch.run(wait_final=60.0)
        again = await batch.retry_failed()
        written = await batch.export(tmp_path / "out.csv")
    assert repr(report) == (
        "BatchReport(counts={CREATED: 2}, sums={XOF: {CREATED: 3.02}}, rows=2, batch_id='june', "
        "totals={XOF: 3.02}, complete=True, balanced=True, exit_code=0, stopped=None, "
        "finals={completed: 2}, failed=0, resumable=None)"
    )
    assert "totals={XOF: 3.02}, is_new=True" in repr(loaded)
    assert "payable={XOF: 3.02}" in repr(loaded)
    assert repr(again).endswith("rows=(), totals={}, left=(), dry_run=False, reasons={})")
    assert repr(written).endswith("rows=2, totals={XOF: 3.02})")
