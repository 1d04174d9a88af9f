"""What a guard would refuse is a fault of its row, before anything is imported."""

from __future__ import annotations

from pathlib import Path

import pytest

from payments_async import Guard
from payments_async.bulk import SourceErrors
from payments_async.sandbox import Sandbox
from tests.support.desks import Desk
from tests.support.payout_files import PHONE, csv_file

GUARD = Guard(most={"XCD": 400}, sums=[("XCD", 500, 60)], methods=["mtn_bj"], budgets="process")
CELLS = {**PHONE, "amount": "50"}


@pytest.mark.parametrize("way", ["load", "preview"])
async def test_all_rows_that_the_guard_refuses_are_named_at_once(
    service: Sandbox, desk: Desk, tmp_path: Path, way: str
) -> None:
    forbidden = [{"amount": "500"}, {"currency": "GHS"}, {"method": "other"}]
    path = csv_file(tmp_path, CELLS, *({**CELLS, **each} for each in forbidden))
    async with (
        desk.client(service, guard=GUARD) as client,
        desk.open(tmp_path / "l", client) as batch,
    ):
        with pytest.raises(SourceErrors) as caught:
            await getattr(batch, way)(path)
        faults = caught.value.faults
        assert [(each.line, each.column) for each in faults] == [
            *((3, "amount"), (4, "currency"), (5, "method"))
        ]
        assert faults[0].reason.startswith("the guard: XCD 500 is above the most of one payout, 400")
        report = await getattr(batch, way)(path, skip_invalid=True, rejects=tmp_path / "rejects.csv")
    assert (report.rows, report.skipped) == (1, 3)
    assert "the guard: XCD 500" in (tmp_path / "rejects.csv").read_text()
    assert service.requests == []
