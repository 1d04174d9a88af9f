"""Workers that are cut off from the database: when they stop to send, and what becomes of outcomes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from payments_async import RateLimits
from payments_async._http.types import HTTPRequest, HTTPResponse
from payments_async._runtime import SYSTEM
from payments_async.bulk._ledger.postgresql import session
from payments_async.bulk._protocol import machines
from payments_async.testing import InProcessTransport
from tests.support.batches import item
from tests.support.databases import OpenDatabases, expire_leases
from tests.support.fleet import Fleet, books, posts
from tests.support.patience import until
from tests.support.servers import CutProxy, PostgresServer

pytestmark = pytest.mark.usefixtures("brief_leases")


class Noted(InProcessTransport):
    """Notes when each creation was sent, and of which row."""

    def __init__(self, sandbox: Any) -> None:
        super().__init__(sandbox)
        self.sent: list[tuple[float, str]] = []

    async def send(self, request: HTTPRequest) -> HTTPResponse:
        if request.method == "POST" and not request.is_withheld:
            assert request.body is not None
            self.sent.append((SYSTEM.monotonic(), json.loads(request.body)["description"]))
        return await super().send(request)


@pytest.fixture
def proxy(postgres: PostgresServer) -> Iterator[CutProxy]:
    with CutProxy(postgres.address) as proxy:
        yield proxy


OWN_RATE = RateLimits().share(1)
"""Limits of this process: its leases alone stop a worker without a database, not the lack of permits."""


def behind(fleet: Fleet, postgres: PostgresServer, proxy: CutProxy) -> str:
    return postgres.url(fleet.url.rpartition("/")[2], port=proxy.port)


@pytest.mark.slow
async def test_a_worker_without_its_database_stops_in_time_and_writes_what_it_learned(
    fleet: Fleet, postgres: PostgresServer, proxy: CutProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = OpenDatabases(monkeypatch)
    # a transaction that is cut off keeps its locks for so long
    monkeypatch.setattr(session, "_SET", session._SET.replace("30s", "5s"))
    batch = await fleet.planned(40)
    fleet.sandbox.on("payouts.create").respond("slow:100ms", times=None)
    transport = Noted(fleet.sandbox)
    cut_off = await fleet.worker(
        client=await fleet.client(transport=transport, limits=OWN_RATE),
        url=behind(fleet, postgres, proxy),
        folder=tmp_path,
        concurrency=2,
        slots=1,
    )
    task = fleet.started(cut_off)
    await until(lambda: posts(fleet.sandbox) >= 6)
    proxy.cut()
    opened.lose_patience()
    at = SYSTEM.monotonic()
    other = asyncio.ensure_future(fleet.run())
    report = await task
    assert report.exit_code == 75
    assert "cannot be reached" in str(report.stopped)
    last = max(moment for moment, _ in transport.sent)
    assert last <= at + machines.LEASE - machines.MARGIN
    (path,) = report.unrecorded
    learned = json.loads(Path(path).read_text())
    assert Path(path).parent == tmp_path
    assert {outcome["known"]["state"] for outcome in learned} == {"CREATED"}
    await other
    assert (await batch.refresh()).counts["created"] == len(books(fleet.sandbox)) == 40
    assert (await batch.check()).findings == ()


async def test_an_outcome_that_comes_home_after_the_lease_was_lost_is_merged(
    fleet: Fleet, postgres: PostgresServer, proxy: CutProxy
) -> None:
    first = fleet.sandbox.on("payouts.create", description="row 1")
    first.respond("slow:3s", times=1).respond("http:503", times=None, after=1)
    batch = await fleet.planned([item(1)])
    transport = Noted(fleet.sandbox)
    cut_off = await fleet.client(transport=transport, limits=OWN_RATE)
    fleet.started(await fleet.worker(client=cut_off, url=behind(fleet, postgres, proxy), until_idle=False))
    await until(lambda: posts(fleet.sandbox) == 1)
    proxy.cut()
    other = fleet.started(await fleet.worker(patience=0.0))
    await until(lambda: len(fleet.entries("lease")) > 1)
    proxy.heal()
    await until(lambda: fleet.entries("record"))
    (_, recorded, _, _), *_ = fleet.entries("record")
    _, leased_again, *_ = sorted(number for chunk, number, *_ in fleet.entries("lease") if chunk == 1)
    assert leased_again < recorded
    assert (await batch.refresh()).counts["created"] == len(books(fleet.sandbox)) == 1
    await other
    assert (await batch.refresh()).counts["created"] == 1  # the other one knows less
    assert len(transport.sent) == 1
    assert (await batch.reconcile()).is_clean


async def test_a_worker_whose_lease_has_ended_gives_the_chunk_up_and_asks_for_it_again(fleet: Fleet) -> None:
    batch = await fleet.planned(40)
    fleet.sandbox.on("payouts.create").respond("slow:100ms", times=None)
    task = fleet.started(await fleet.worker(slots=1, concurrency=2))
    await until(lambda: posts(fleet.sandbox) >= 2)
    await asyncio.to_thread(expire_leases, fleet.url)  # this thread holds locks for the worker
    assert (await task).exit_code == 0
    again = [json.loads(changes)["for"] for _, _, _, changes in fleet.entries("lease")]
    assert again.count("send") > 1
    assert len(fleet.entries("ended")) == len(again)
    assert (await batch.refresh()).counts["created"] == len(books(fleet.sandbox)) == 40
