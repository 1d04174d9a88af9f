"""The database's clock is put back by a day: no row waits for it to catch up, and none is left unjudged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from payments_async import AsyncPayments
from payments_async.bulk import BatchFigures, PayoutBatch
from payments_async.sandbox import Sandbox
from tests.support.batches import ledger_now, run_rows, runtime_of
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


async def test_a_row_that_was_retried_is_paid(
    service: Sandbox, batch: PayoutBatch, ahead: list[float]
) -> None:
    service.on("payouts.create").outcome("fail:RECIPIENT_ERROR", times=1)
    await run_rows(batch, 1, wait_final=60.0)
    assert (await batch.retry_failed()).rows == (1,)
    ahead[0] = 0.0
    assert (await batch.run(wait_final=60.0)).counts["arrived"] == 1


async def test_a_row_that_was_never_paid_is_asked_for_again(
    service: Sandbox, client: AsyncPayments, batch: PayoutBatch, ahead: list[float]
) -> None:
    service.on("payouts.create").respond("http:409")
    assert (await run_rows(batch, 1, patience=0.0)).exit_code == 3
    ahead[0] = 0.0
    await batch.run(patience=0.0)
    runtime_of(client).advance(1_000.0)
    service.advance(1_000.0)
    assert (await batch.run()).exit_code == 0


async def test_a_created_row_is_judged_by_the_list(
    service: Sandbox, batch: PayoutBatch, ahead: list[float]
) -> None:
    await run_rows(batch, 2)
    books: Any = service._core.world.tenants[service.api_key].payouts
    del books[0]
    ahead[0] = 0.0
    certificate = await batch.reconcile()
    assert [finding.endswith(" is not in the list") for finding in certificate.findings] == [True]
