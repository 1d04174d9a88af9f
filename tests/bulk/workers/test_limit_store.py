"""Workers take their rate from the ledger's database, unless the client has another store or a part."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from payments_async import AsyncPayments, RateLimits
from payments_async._runtime import SystemRuntime
from payments_async.bulk import SharedBatch
from payments_async.bulk.steps import Steps
from payments_async.bulk.workers import PayoutWorker, work
from tests.support.fleet import Fleet, books
from tests.support.servers import PostgresServer

Way = Callable[[Fleet, AsyncPayments], Awaitable[object]]


async def _worker(fleet: Fleet, client: AsyncPayments) -> None:
    await PayoutWorker(fleet.url, client, until_idle=True).run()


async def _work(fleet: Fleet, client: AsyncPayments) -> None:
    await work(fleet.url, client, until_idle=True)


async def _chunk(fleet: Fleet, client: AsyncPayments) -> None:
    async with Steps(fleet.url, client) as steps:
        await steps.pay("june", 1)


async def _batch(fleet: Fleet, client: AsyncPayments) -> None:
    async with SharedBatch.open(fleet.url, client, batch_id="june") as batch:
        await batch.run()


def _has_rate(fleet: Fleet) -> bool:
    """True if permits to create were taken from the ledger's database."""
    return ("write",) in fleet.query("SELECT kind FROM payments.limits")


@pytest.mark.parametrize("way", [_worker, _work, _chunk, _batch])
async def test_the_rate_is_taken_from_the_ledgers_database(fleet: Fleet, way: Way) -> None:
    await fleet.planned(3)
    await way(fleet, await fleet.client())
    assert len(books(fleet.sandbox)) == 3
    assert _has_rate(fleet)


async def test_another_store_is_kept(fleet: Fleet, postgres: PostgresServer) -> None:
    await fleet.planned(3)
    other = postgres.make_database()
    await _batch(fleet, await fleet.client(limit_store=postgres.url(other)))
    assert not _has_rate(fleet)
    assert ("write",) in postgres.query(other, "SELECT kind FROM payments.limits")


@pytest.mark.parametrize("options", [{"limits": RateLimits().share(0.5)}, {"runtime": SystemRuntime()}])
async def test_a_part_of_the_limits_is_kept_and_so_is_another_clock(
    fleet: Fleet, options: dict[str, Any]
) -> None:
    await fleet.loaded(3)
    await _batch(fleet, await fleet.client(**options))
    assert len(books(fleet.sandbox)) == 3
    assert not _has_rate(fleet)
