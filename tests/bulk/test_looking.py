"""A batch opened without a client: it can be looked at, and asks nothing of the service."""

from __future__ import annotations

from pathlib import Path

import pytest

from payments_async.bulk import BulkError, RowState
from payments_async.bulk.ledger_errors import LedgerMissing
from payments_async.sandbox import Sandbox
from tests.support.batches import items
from tests.support.desks import Desk


async def test_without_a_client_a_batch_shows_where_it_stands_and_pays_nothing(
    desk: Desk, service: Sandbox, tmp_path: Path
) -> None:
    async with desk.client(service) as client:
        await desk.paid(tmp_path / "l", client, items(3), max_rows=2)
    asked = len(service.requests)
    async with desk.open(tmp_path / "l") as batch:
        assert batch.status().counts[RowState.CREATED] == 2
        with pytest.raises(BulkError, match="without a client"):
            await batch.load(items(3))
        with pytest.raises(BulkError, match="without a client"):
            await batch.run()
        with pytest.raises(BulkError, match="without a client"):
            await batch.certify()
        batch.stop()
    assert len(service.requests) == asked


async def test_without_a_client_no_ledger_is_made(desk: Desk, tmp_path: Path) -> None:
    with pytest.raises(LedgerMissing):
        await desk.open(tmp_path / "l", create=True).__aenter__()
    assert _names(tmp_path) == []


def _names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]
