"""Rows of earlier runs: started first, beside new ones, behind the access check, within the stop rules."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from payments_async import AsyncPayments
from payments_async.bulk import PayoutBatch
from payments_async.sandbox import Sandbox
from tests.support.batches import Between, alter, assert_true, items, paid
from tests.support.desks import Pay

ROWS = items(9)


async def leave_in_doubt(service: Sandbox, client: AsyncPayments, path: Path, rows: int = 1) -> None:
    """Run the batch so that its first rows are in doubt, and no other was sent."""
    for number in range(1, rows + 1):
        service.on("payouts.create", description=f"row {number}").respond("lost_request", times=None)
    report = await paid(path, client, ROWS, max_rows=rows, patience=0.0)
    assert (report.counts["in_doubt"], report.counts["not_started"]) == (rows, 9 - rows)
    service.clear_rules()


class Noting(Between):
    """A transport that notes which rows are posted; it can hold the first one until others are answered."""

    def __init__(self, client: AsyncPayments, *, held_for: int = 0) -> None:
        super().__init__(client)
        self._left, self._free = held_for, asyncio.Event()
        self.posted: list[str] = []

    async def send(self, request: Any) -> Any:
        if request.method == "GET":
            return await super().send(request)
        is_first = not self.posted
        self.posted.append(json.loads(request.body)["description"])
        if is_first and self._left:
            await self._free.wait()
        answer = await super().send(request)
        self._left -= 1
        if not self._left:
            self._free.set()
        return answer


async def test_one_hanging_request_of_an_earlier_run_holds_no_new_row_up(
    service: Sandbox, client: AsyncPayments, pay: Pay, tmp_path: Path
) -> None:
    await leave_in_doubt(service, client, tmp_path / "l")
    noting = Noting(client, held_for=8)  # until every new row is answered
    report = await pay(ROWS)
    assert noting.posted[0] == "row 1"  # it is started first
    assert report.exit_code == 0
    assert_true(report, service, ROWS)


async def test_rows_of_earlier_runs_share_a_window_of_one(
    service: Sandbox, client: AsyncPayments, pay: Pay, tmp_path: Path
) -> None:
    await leave_in_doubt(service, client, tmp_path / "l", rows=3)
    noting = Noting(client)
    report = await pay(ROWS, concurrency=1)
    assert noting.posted == [f"row {number}" for number in range(1, 10)]
    assert_true(report, service, ROWS)


@pytest.mark.parametrize("word", ["http:401", "http:403", "http:404"])
async def test_without_access_no_row_is_posted(
    service: Sandbox, client: AsyncPayments, pay: Pay, tmp_path: Path, word: str
) -> None:
    await leave_in_doubt(service, client, tmp_path / "l")
    service.on("payouts.list").respond(word, times=None)
    noting = Noting(client)
    report = await pay(ROWS)
    assert (report.exit_code, noting.posted) == (2, [])


@pytest.mark.parametrize("rule", [{"max_rows": 4}, {"max_amount": "10.04"}])
async def test_rows_in_flight_and_in_doubt_count_fully_against_the_stop_rules(
    service: Sandbox, client: AsyncPayments, pay: Pay, tmp_path: Path, rule: dict[str, Any]
) -> None:
    await leave_in_doubt(service, client, tmp_path / "l", rows=2)
    for number in (1, 2):  # in flight while new rows are taken, in doubt at the end
        service.on("payouts.create", description=f"row {number}").respond("hang", times=None)
    noting = Noting(client)
    report = await pay(ROWS, patience=0.0, **rule)
    assert {*noting.posted} == {"row 1", "row 2", "row 3", "row 4"}
    assert (report.counts["created"], report.counts["in_doubt"]) == (2, 2)
    assert (report.counts["not_started"], report.resumable) == (5, "after_change")


async def test_a_stop_leaves_the_rest_of_them_to_the_next_run(
    service: Sandbox, client: AsyncPayments, pay: Pay, tmp_path: Path
) -> None:
    await leave_in_doubt(service, client, tmp_path / "l", rows=8)
    noting = Noting(client)

    def stop(_request: Any, answer: Any) -> Any:
        if noting.posted:
            batch.stop()
        return answer

    alter(client, stop)
    batch = PayoutBatch.open(tmp_path / "l", client)
    async with batch:
        report = await batch.run(concurrency=1)
    assert 0 < len(noting.posted) < 8
    assert (report.exit_code, report.stopped) == (75, "stopped")
    report = await pay(ROWS)
    assert report.exit_code == 0
    assert_true(report, service, ROWS)
