"""What is settled and old is forgotten on demand: rows go, and the batch's line, name and input stay."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from payments_async.bulk import BulkError, InputPaidElsewhere, LedgerError
from payments_async.sandbox import Sandbox
from tests.support.batches import items, ledger_now
from tests.support.desks import Desk
from tests.support.places import EITHER


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(ledger_now() + seconds, UTC)


@EITHER
async def test_a_settled_batch_keeps_its_line_and_refuses_its_input(
    desk: Desk, client: Any, batch: Any, place: Path | str
) -> None:
    await batch.load(items(3))
    assert (await batch.run(wait_final=60.0)).certificate.is_settled
    with pytest.raises(BulkError, match="before must be aware"):
        await batch.forget(moment(1.0).replace(tzinfo=None))
    assert await batch.forget(moment(-3600.0)) == 0  # not old enough
    assert await batch.forget(moment(1.0), dry_run=True) == 3
    assert (await batch.status()).rows == 3
    assert await batch.forget(moment(1.0)) == 3
    facts = await batch.facts()
    assert (facts.rows, facts.totals, facts.forgotten_at) == (3, {"XCD": Decimal("6.03")}, ledger_now())
    assert facts.certificate["settled"]
    assert await batch.row(1) is None
    with pytest.raises(LedgerError, match="was settled, and its rows were deleted"):
        await batch.load(items(3))
    async with desk.open(place, client, batch_id="another") as other:
        with pytest.raises(InputPaidElsewhere):
            await other.load(items(3))


async def test_what_is_not_settled_is_kept(service: Sandbox, batch: Any) -> None:
    await batch.load(items(2))
    with pytest.raises(BulkError, match="no certificate that says that it is settled"):
        await batch.forget(moment(1.0))
    service.on("payouts.create", description="row 2").outcome("hang")
    await batch.run(wait_final=60.0)
    await batch.reconcile()
    with pytest.raises(BulkError, match="no certificate that says that it is settled"):
        await batch.forget(moment(1.0))
    assert (await batch.status()).rows == 2
