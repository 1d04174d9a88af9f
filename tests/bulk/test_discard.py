"""A batch that nothing was ever sent of can be discarded, and its input loaded anew."""

from __future__ import annotations

from typing import Any

import pytest

from payments_async.bulk import BulkError, LedgerMissing
from payments_async.sandbox import Sandbox
from tests.support.batches import items
from tests.support.places import EITHER


@EITHER
async def test_a_batch_that_is_called_off_leaves_room_for_the_next(service: Sandbox, batch: Any) -> None:
    await batch.load(items(2))
    await batch.discard()
    with pytest.raises(LedgerMissing):
        await batch.run()
    assert (await batch.load(items(1))).is_new
    assert (await batch.run()).exit_code == 0
    assert len(service.books.payouts()) == 1


@pytest.mark.parametrize("answer", ["http:422", "lost_request", "http:401"])
async def test_what_was_sent_is_never_discarded(service: Sandbox, batch: Any, answer: str) -> None:
    service.on("payouts.create").respond(answer, times=None)
    await batch.load(items(1))
    await batch.run(patience=1.0)
    await batch.retry_failed(rejected=True)
    with pytest.raises(BulkError, match="the ledger is the record of that"):
        await batch.discard()
