"""Rows whose permission to be sent ends: nothing of them leaves, they stay in flight, and the run halts."""

from __future__ import annotations

import pytest

from payments_async.bulk._engine.sender import LEASE_LOST
from payments_async.bulk._ledger.sqlite.ledger import SqliteLedger
from payments_async.sandbox import Sandbox
from tests.support.batches import assert_true, items
from tests.support.desks import Pay


async def test_withheld_rows_stay_in_flight_and_use_no_tries(
    service: Sandbox, pay: Pay, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, left = items(40), iter(range(7))
    with monkeypatch.context() as patch:
        patch.setattr(SqliteLedger, "may_send", lambda self, row: lambda: next(left, None) is not None)
        report = await pay(rows, concurrency=3)
    assert (report.exit_code, report.stopped, report.resumable) == (75, LEASE_LOST, "now")
    assert report.counts["created"] == len(service.books.payouts()) == 7
    assert sum(request.operation == "payouts.create" for request in service.requests) == 7
    assert report.counts["in_doubt"] == 0
    report = await pay(rows)
    assert report.exit_code == 0
    assert_true(report, service, rows)
