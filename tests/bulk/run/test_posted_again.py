"""Rows that are posted again: failed ones after a back-off, refused ones never under a used key."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from multidict import CIMultiDict, CIMultiDictProxy

from payments_async import AsyncPayments
from payments_async.bulk import BulkError, PayoutBatch, RowState
from payments_async.sandbox import Sandbox
from tests.support.batches import (
    Between,
    TransportError,
    alter,
    assert_true,
    in_process,
    item,
    items,
    ledger_rows,
    paid,
    run_rows,
    runtime_of,
)
from tests.support.desks import Pay
from tests.support.scripted import altered

DAY = 86_400.0


class Balancer(Between):
    """A load balancer in front of the service that answers every creation itself for so many seconds."""

    def __init__(self, client: Any, seconds: float, **answer: Any) -> None:
        super().__init__(client)
        self._runtime = runtime_of(client)
        self._until, self._answer = self._runtime.monotonic() + seconds, {"status": 500, **answer}
        self.posts: list[tuple[float, str]] = []
        """When each creation left, and its idempotency key."""
        self._page: Any = None

    async def send(self, request: Any) -> Any:
        now = self._runtime.monotonic()
        if request.method == "GET":
            self._page = await self._transport.send(request)
            return self._page
        self.posts.append((now, request.headers["X-Idempotency-Key"]))
        if now >= self._until:
            return await self._transport.send(request)
        if self._page is None:
            self._page = await self._transport.send(altered(request, method="GET", body=None))
        request.sent = True
        return altered(self._page, body=b"<html>Bad gateway</html>", **self._answer)


@pytest.mark.parametrize("seed", range(2))
async def test_a_balancer_that_answers_500_for_30_s_costs_a_batch_less_than_a_minute(
    service: Sandbox, tmp_path: Path, seed: int
) -> None:
    async with in_process(service, seed) as client:
        balancer = Balancer(client, 30.0)
        began = runtime_of(client).monotonic()
        report = await paid(tmp_path / "l", client, items(3))
        took = runtime_of(client).monotonic() - began
    assert (report.exit_code, took < 60.0) == (0, True)
    assert_true(report, service, items(3))
    assert len({key for _, key in balancer.posts}) == 3  # the same bytes, key and reference
    assert [request.operation for request in service.requests].count("payouts.list") == 2


class Hanging(Balancer):
    """The same in front of a service that never answers the first row."""

    async def send(self, request: Any) -> Any:
        if b'"row 1"' not in (request.body or b""):
            return await super().send(request)
        self.posts.append((self._runtime.monotonic(), "row 1"))
        request.sent = True
        await self._runtime.sleep(30.0)
        raise TransportError("timeout", "no answer")


async def test_a_row_whose_posts_hang_holds_up_no_row_that_waits_by_more_than_one_post(
    client: AsyncPayments, pay: Pay
) -> None:
    rows = items(2)
    balancer = Hanging(client, 12.0)
    report = await pay(rows, patience=60.0)
    assert (report.counts["created"], report.counts["in_doubt"]) == (1, 1)
    assert [at for at, key in balancer.posts if key != "row 1"][-1] < 35.0
    hung = [at for at, key in balancer.posts if key == "row 1"]
    assert [round(after - before) for before, after in pairwise(hung)] == [31, 31]


async def test_without_time_for_another_post_the_list_is_asked_once_before_the_row_is_left_in_doubt(
    service: Sandbox, pay: Pay
) -> None:
    rows = items(2)
    service.on("payouts.create", description="row 1").respond("lost_response", times=4)
    service.on("payouts.create", description="row 2").respond("lost_request", times=None)
    report = await pay(rows, patience=5.0)
    assert report.exit_code == 3
    assert (report.counts["created"], report.counts["in_doubt"]) == (1, 1)
    assert_true(report, service, rows)


@pytest.mark.parametrize("word", ["http:409", "http:422"])
async def test_a_refusal_is_not_posted_again_under_its_key(service: Sandbox, pay: Pay, word: str) -> None:
    service.on("payouts.create").respond("lost_request").respond(word, times=None, after=1)
    await pay(items(1), patience=600.0)
    assert [request.operation for request in service.requests].count("payouts.create") == 2


async def test_a_replayed_error_is_not_posted_again_under_its_key(client: AsyncPayments, pay: Pay) -> None:
    headers = {"X-Idempotent-Replayed": "true"}
    balancer = Balancer(client, 600.0, headers=headers)
    await pay(items(1), patience=500.0)
    assert len(balancer.posts) == 1


async def test_a_row_whose_key_grew_old_while_it_waited_is_left_to_the_list(
    service: Sandbox, client: AsyncPayments, pay: Pay
) -> None:
    service.on("payouts.create").respond("lost_response", times=4)
    runtime = runtime_of(client)

    def slept(progress: Any) -> None:
        if progress.counts["in_doubt"] and runtime.monotonic() < DAY:
            runtime.advance(DAY)
            service.advance(DAY)

    report = await pay(items(1), on_progress=slept)
    assert report.exit_code == 0
    assert_true(report, service, items(1))
    operations = [request.operation for request in service.requests]
    assert operations == ["payouts.create", "payouts.list", "payouts.list"]


async def test_a_stop_ends_the_back_off(service: Sandbox, client: AsyncPayments, batch: PayoutBatch) -> None:
    service.on("payouts.create").respond("http:503", times=None)
    await batch.load(items(1))

    def stop(progress: Any) -> None:
        if progress.counts["in_doubt"]:
            batch.stop()

    report = await batch.run(stop)
    assert runtime_of(client).monotonic() < 30.0
    assert (report.exit_code, report.counts["in_doubt"]) == (3, 1)


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


def refuse(service: Sandbox, *numbers: int, times: int | None = 1) -> None:
    for number in numbers:
        service.on("payouts.create", description=f"row {number}").respond("http:422", times=times)


async def test_a_refused_row_is_paid_unchanged_after_retry_failed(
    service: Sandbox, batch: PayoutBatch
) -> None:
    refuse(service, 2)
    alter(batch._service._client, replaying := Replaying())
    assert (await run_rows(batch, 3)).counts["rejected"] == 1
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
    service: Sandbox, batch: PayoutBatch
) -> None:
    refuse(service, 1)
    service.on("payouts.create", description="first change").respond("http:422", times=1)
    alter(batch._service._client, replaying := Replaying())
    assert (await run_rows(batch, 1)).exit_code == 1
    await batch.load([item(1, description="first change")], accept_edits=True)
    assert (await batch.run()).exit_code == 1
    await batch.load(items(1), accept_edits=True)
    assert (await batch.run()).exit_code == 0
    assert len(set(replaying.keys)) == 3


@pytest.mark.parametrize(("number", "reason"), [(1, "row 1: not final"), (7, "row 7 is not in the batch")])
async def test_a_row_that_was_not_refused_cannot_be_sent_again(
    service: Sandbox, batch: PayoutBatch, number: int, reason: str
) -> None:
    refuse(service, 2)
    await run_rows(batch, 2)
    with pytest.raises(BulkError, match=reason):
        await batch.retry_failed(rows=[number, 2], rejected=True)
    assert (await batch.status()).counts["rejected"] == 1


async def test_many_refused_rows_are_sent_again_in_groups(service: Sandbox, batch: PayoutBatch) -> None:
    service.on("payouts.create", description="all").respond("http:422", times=None)
    rows = [item(number, description="all") for number in range(1, 521)]
    await run_rows(batch, rows)
    assert (await batch.retry_failed(rows=[2], rejected=True)).rows == (2,)
    report = await batch.retry_failed(rejected=True)
    assert report.rows == (1, *range(3, 521))
    assert (await batch.status()).counts["not_started"] == 520
