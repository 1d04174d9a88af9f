"""The database's clock is put back by a day: no row waits for it to catch up, and none is left unjudged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from payments_async.bulk import BatchFigures, PayoutBatch
from payments_async.sandbox import Sandbox
from tests.support.batches import ledger_now, run_rows
from tests.support.ledger_clock import ledger_time
from tests.support.places import EITHER

DAY = 86_400.0


@pytest.fixture
def ahead() -> Iterator[list[float]]:
    """How far the ledgers' clock is ahead: a day, until a test says otherwise."""
    found = [DAY]
    with ledger_time(lambda: ledger_now() + found[0]):
        yield found


@pytest.fixture
def batch(ahead: list[float], batch: PayoutBatch) -> PayoutBatch:
    return batch


@EITHER
async def test_a_row_that_waits_to_be_posted_again_is_due_soon(
    service: Sandbox, batch: PayoutBatch, ahead: list[float]
) -> None:
    service.on("payouts.create").respond("http:500", times=5)

    def put_back(figures: BatchFigures) -> None:
        if figures.counts["in_doubt"]:
            ahead[0] = 0.0

    assert (await run_rows(batch, 1, put_back)).exit_code == 0
    assert ahead == [0.0]


async def test_a_created_row_is_judged_by_the_list(
    service: Sandbox, batch: PayoutBatch, ahead: list[float]
) -> None:
    await run_rows(batch, 2)
    books: Any = service._core.world.tenants[service.api_key].payouts
    del books[0]
    ahead[0] = 0.0
    certificate = await batch.reconcile()
    assert [finding.endswith(" is not in the list") for finding in certificate.findings] == [True]
