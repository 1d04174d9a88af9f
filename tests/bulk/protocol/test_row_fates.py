"""Rows by what became of them: each is in one class, and an export can be of some alone."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_async.bulk import RowFate, RowState
from payments_async.bulk.protocol.payout_status import chosen, fate_of, has_failed
from payments_async.bulk.protocol.records import LedgerRow
from payments_async.bulk.protocol.row_state import RowKnowledge
from payments_async.bulk.protocol.transitions import fresh
from payments_async.sandbox import Sandbox
from tests.support.batches import items
from tests.support.desks import Desk
from tests.support.ledgers import new_row

STATUSES = ["pending", "processing", "completed", "failed", "cancelled", "expired", "reversed", "unheard-of"]
ROWS = st.builds(
    lambda state, status, final, code: attrs.evolve(
        fresh(new_row(1), 1), known=RowKnowledge(state), service_status=status, final=final, failure_code=code
    ),
    st.sampled_from(RowState),
    st.none() | st.sampled_from(STATUSES),
    st.booleans(),
    st.none() | st.just("RECIPIENT_ERROR"),
)
DECIDED = (RowState.NEW, RowState.REJECTED, RowState.CONFLICT, RowState.CANCELLED)


@given(ROWS)
def test_every_row_is_in_one_class_and_failed_is_what_retry_failed_is_for(row: LedgerRow) -> None:
    classes = [word for word in (*RowFate, *DECIDED) if chosen([word])(row)]
    assert len(classes) == 1
    assert (fate_of(row) is RowFate.FAILED) == has_failed(row)
    assert chosen([RowState.CREATED])(row) == (fate_of(row) not in (None, RowFate.UNKNOWN))


async def test_an_export_is_of_the_rows_to_look_at(desk: Desk, service: Sandbox, tmp_path: Path) -> None:
    service.on("payouts.create", description="row 1").outcome("complete immediate")
    service.on("payouts.create", description="row 2").outcome("fail:RECIPIENT_ERROR immediate")
    service.on("payouts.create", description="row 3").respond("http:422")
    wanted: dict[RowFate | RowState, list[str]] = {
        RowFate.COMPLETED: ["1"],
        RowFate.FAILED: ["2"],
        RowState.REJECTED: ["3"],
        RowFate.PENDING: ["4"],
        RowFate.UNKNOWN: [],
        RowState.CREATED: ["1", "2", "4"],
    }
    async with desk.client(service) as client, desk.open(tmp_path / "l", client) as batch:
        await batch.load(items(4))
        await batch.run()
        await batch.reconcile()
        for state, numbers in wanted.items():
            report = await batch.export(tmp_path / f"{state}.csv", states=[state])
            lines = (tmp_path / f"{state}.csv").read_text().splitlines()[1:]
            assert [line.split(",")[0] for line in lines] == numbers
            assert report.rows == len(numbers)
        both = await batch.export(tmp_path / "both.csv", states=[RowFate.FAILED, RowState.REJECTED])
        assert both.rows == 2
        with pytest.raises(ValueError, match=r"no row is ever 'LOST'; there are: CANCELLED, COMPLETED"):
            await batch.export(tmp_path / "lost.csv", states=["LOST"])
    assert not (tmp_path / "lost.csv").exists()
