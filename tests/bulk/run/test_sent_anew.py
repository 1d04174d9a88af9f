"""Rows that the service refused, sent again as they are or as they once were: never under a used key."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from multidict import CIMultiDict, CIMultiDictProxy

from payments_async import AsyncPayments
from payments_async.bulk import BulkError, PayoutBatch, RowState
from payments_async.sandbox import Sandbox
from tests.support.batches import alter, in_process, item, items, ledger_rows
from tests.support.scripted import altered


class Replaying:
    """Has the first answer to each key come back for ever, as a service may (Limits, Idempotency)."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self._first: dict[str, Any] = {}

    def __call__(self, request: Any, answer: Any) -> Any:
        if request.method != "POST":
            return answer
        key = request.headers["X-Idempotency-Key"]
        self.keys.append(key)
        if key not in self._first:
            self._first[key] = answer
            return answer
        first = self._first[key]
        headers = CIMultiDict([*first.headers.items(), ("X-Idempotent-Replayed", "true")])
        return altered(first, headers=CIMultiDictProxy(headers))


@asynccontextmanager
async def replayed(service: Sandbox, replaying: Replaying) -> AsyncIterator[AsyncPayments]:
    async with in_process(service) as client:
        alter(client, replaying)
        yield client


def refuse(service: Sandbox, *numbers: int, times: int | None = 1) -> None:
    for number in numbers:
        service.on("payouts.create", description=f"row {number}").respond("http:422", times=times)


async def test_a_refused_row_is_paid_unchanged_after_retry_failed(service: Sandbox, tmp_path: Path) -> None:
    refuse(service, 2)
    replaying = Replaying()
    async with replayed(service, replaying) as client, PayoutBatch.open(tmp_path / "l", client) as batch:
        await batch.load(items(3))
        assert (await batch.run()).counts["rejected"] == 1
        before = (await ledger_rows(batch))[1]
        report = await batch.retry_failed(rejected=True)
        assert (report.rows, report.left, report.totals) == ((2,), (), {"XCD": Decimal("2.01")})
        after = (await ledger_rows(batch))[1]
        assert (after.state, after.failure_code, after.failure_message) == (RowState.NEW, None, None)
        assert (after.reference, after.body) == (before.reference, before.body)
        assert after.revision == before.revision + 1
        assert (await batch.run()).exit_code == 0
        assert (await batch.reconcile()).is_clean
        assert (await batch.load(items(3))).is_new is False
    assert len(set(replaying.keys)) == len(replaying.keys) == 4
    assert len(service.books.payouts()) == 3


async def test_a_row_edited_there_and_back_is_sent_under_a_third_key(
    service: Sandbox, tmp_path: Path
) -> None:
    refuse(service, 1)
    service.on("payouts.create", description="first change").respond("http:422", times=1)
    replaying = Replaying()
    edited = [item(1, description="first change")]
    async with replayed(service, replaying) as client, PayoutBatch.open(tmp_path / "l", client) as batch:
        await batch.load(items(1))
        assert (await batch.run()).exit_code == 1
        await batch.load(edited, accept_edits=True)
        assert (await batch.run()).exit_code == 1
        await batch.load(items(1), accept_edits=True)
        assert (await batch.run()).exit_code == 0
    assert len(set(replaying.keys)) == 3


async def test_the_next_key_of_a_row_sent_again_is_a_new_one(service: Sandbox, tmp_path: Path) -> None:
    refuse(service, 1)
    replaying = Replaying()
    async with replayed(service, replaying) as client, PayoutBatch.open(tmp_path / "l", client) as batch:
        await batch.load(items(1))
        await batch.run()
        await batch.retry_failed(rejected=True)
        service.on("payouts.create", description="row 1").respond("http:500", times=2)
        assert (await batch.run()).exit_code == 0  # the stored error is left behind with its key
    first, *again, last = replaying.keys
    assert len({first, *again, last}) == 3
    assert last not in (first, *again)


@pytest.mark.parametrize(("number", "reason"), [(1, "row 1: not final"), (7, "row 7 is not in the batch")])
async def test_a_row_that_was_not_refused_cannot_be_sent_again(
    service: Sandbox, batch: PayoutBatch, number: int, reason: str
) -> None:
    refuse(service, 2)
    await batch.load(items(2))
    await batch.run()
    with pytest.raises(BulkError, match=reason):
        await batch.retry_failed(rows=[number, 2], rejected=True)
    assert (await batch.status()).counts["rejected"] == 1


async def test_only_the_refused_rows_that_were_named_are_sent_again(
    service: Sandbox, batch: PayoutBatch
) -> None:
    refuse(service, 1, 2)
    await batch.load(items(2))
    await batch.run()
    assert (await batch.retry_failed(rows=[2], rejected=True)).rows == (2,)
    assert (await batch.status()).counts["rejected"] == 1


async def test_many_refused_rows_are_sent_again_in_groups(service: Sandbox, batch: PayoutBatch) -> None:
    service.on("payouts.create", description="all").respond("http:422", times=None)
    rows = [item(number, description="all") for number in range(1, 521)]
    await batch.load(rows)
    await batch.run()
    report = await batch.retry_failed(rejected=True)
    assert report.rows == tuple(range(1, 521))
    assert (await batch.status()).counts["not_started"] == 520
