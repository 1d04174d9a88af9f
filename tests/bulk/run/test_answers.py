"""Answers that cannot be taken at their word: odd dates, other records, halves of records, circling lists."""

from __future__ import annotations

import json
from typing import Any

import pytest

from payments_async import AsyncPayments
from payments_async.bulk import PayoutBatch, RowState
from payments_async.sandbox import Sandbox
from tests.support.batches import alter, assert_true, items, ledger_rows
from tests.support.desks import Pay
from tests.support.scripted import altered


@pytest.mark.parametrize("date", ["", "yesterday", "Mon, 01 Jan 99999999 00:00:00 GMT"])
async def test_a_date_that_cannot_be_read_is_no_date(service: Sandbox, batch: PayoutBatch, date: str) -> None:

    def spoil(_request: Any, answer: Any) -> Any:
        headers = answer.headers.copy()
        headers["Date"] = date
        return altered(answer, headers=headers)

    alter(batch._service._client, spoil)
    service.on("payouts.create").respond("http:409")
    await batch.load(items(1))
    assert (await batch.run()).exit_code == 0


async def test_a_row_whose_request_is_still_at_work_is_in_doubt(
    service: Sandbox, batch: PayoutBatch, client: AsyncPayments
) -> None:
    service.on("payouts.create").respond("http:409")
    body = json.dumps({"message": "The request is being processed."}).encode()
    alter(
        batch._service._client,
        lambda _, answer: altered(answer, body=body) if answer.status == 409 else answer,
    )
    await batch.load(items(1))
    await batch.run(patience=60.0)
    row = (await ledger_rows(batch))[0]
    assert (row.state, row.failure_code) == (RowState.IN_DOUBT, "HTTP 409")
    assert (await batch.run()).exit_code == 0


async def test_another_record_than_was_asked_for_is_looked_up(
    service: Sandbox, client: AsyncPayments, pay: Pay
) -> None:

    def swap(request: Any, answer: Any) -> Any:
        body = answer.body if request.method == "GET" else answer.body.replace(b"1.01", b"8.08")
        return altered(answer, body=body)

    alter(client, swap)
    report = await pay(items(1))
    assert report.exit_code == 0
    assert_true(report, service, items(1))
    assert [request.operation for request in service.requests][-1] == "payouts.list"
