"""A run whose limit store cannot be reached stops, says so, and can be resumed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from payments_async import AsyncPayments, ConfigurationError
from payments_async.sandbox import Sandbox
from tests.support.batches import alter, assert_true, in_process, items, paid, runtime_of
from tests.support.limit_stores import ADDRESS, StoreServer, share_on_one_loop

Start = Callable[[], tuple[AsyncPayments, StoreServer]]
GONE = "the limit store at 127.0.0.1:9 cannot be reached (refused)"


@pytest.fixture
def start(service: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Makes a client, with or without other processes, and its store."""

    def make() -> tuple[AsyncPayments, StoreServer]:
        client = in_process(service, limit_store=ADDRESS, expected_workers=1)
        server = StoreServer(runtime_of(client))
        share_on_one_loop(monkeypatch, server)
        return client, server

    return make


async def test_a_run_without_its_store_waits_a_minute_and_stops(
    service: Sandbox, tmp_path: Path, start: Start
) -> None:
    client, server = start()
    async with client:
        server.down = "refused"
        report = await paid(tmp_path / "l", client, items(5))
        assert (report.exit_code, report.resumable) == (75, "now")
        assert report.stopped == f"payouts.create: {GONE}; the call needs it, and this try was not sent"
        assert runtime_of(client).monotonic() >= 60.0
        assert not service.books.payouts()
        server.down = None
        report = await paid(tmp_path / "l", client, items(5))
    assert_true(report, service, items(5))


async def test_a_run_that_loses_its_store_sends_no_further_row(
    service: Sandbox, tmp_path: Path, start: Start
) -> None:
    client, server = start()
    rows = items(400)

    def cut(request: Any, answer: Any) -> Any:
        if len(service.books.payouts()) == 30:
            server.down = "refused"
        return answer

    async with client:
        alter(client, cut)
        report = await paid(tmp_path / "l", client, rows, concurrency=8)
        assert (report.exit_code, report.resumable) == (75, "now")
        assert report.stopped is not None
        assert report.stopped.startswith(f"payouts.create: {GONE}")
        sent = report.counts["created"]
        assert 30 <= sent == len(service.books.payouts()) < 400
        assert report.counts["in_doubt"] == 0
        server.down = None
        report = await paid(tmp_path / "l", client, rows)
    assert report.exit_code == 0
    assert_true(report, service, rows)


async def test_a_run_whose_store_refuses_it_stops(service: Sandbox, tmp_path: Path, start: Start) -> None:
    client, server = start()
    async with client:
        server.fault = ConfigurationError("the limit store refuses the password")
        report = await paid(tmp_path / "l", client, items(5))
    assert (report.exit_code, report.resumable) == (2, "after_change")
    assert report.stopped == "payouts.create: the limit store refuses the password"
    assert not service.requests
