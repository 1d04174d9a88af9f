"""Leases are given back once, and those of others are left."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from payments_async.bulk._ledger.postgresql.leases import give_back
from tests.support.databases import batch, grant, held_commits, leased, lose_answer, run, spread, worker
from tests.support.servers import CutProxy, PostgresServer

T = TypeVar("T")


async def test_leases_are_given_back_and_those_of_others_are_left(database: str) -> None:
    async with batch(database, spread(3, 3)) as ledger:
        _, (one,) = await leased(ledger.database)
        _, (two,) = await leased(ledger.database)
        run(database, "UPDATE payments.chunks SET expires = clock_timestamp() WHERE chunk = 2")
        await grant(ledger.database, worker(2))
        await give_back(ledger.database, worker(), [one, two])
        assert (one.is_valid(), two.is_valid()) == (False, False)
        assert run(database, "SELECT lease IS NULL FROM payments.chunks WHERE chunk > 0 ORDER BY chunk") == [
            (True,),
            (False,),
        ]
        await give_back(ledger.database, worker(), [one])
        run(database, "DELETE FROM payments.chunks")
        await give_back(ledger.database, worker(), [one])
        ends = run(database, "SELECT count(*) FROM payments.entries WHERE kind = 'ended'")
        assert ends == [(1,)]


@pytest.mark.parametrize("is_committed", [True, False])
async def test_a_grant_and_a_return_without_an_answer_take_place_once(
    database: str, postgres: PostgresServer, is_committed: bool
) -> None:
    with CutProxy(postgres.address) as proxy:
        url = database.replace(f":{postgres.port}/", f":{proxy.port}/")
        async with batch(url) as ledger:
            with held_commits(database) as other:

                async def disturbed(work: Coroutine[Any, Any, T]) -> T:
                    try:
                        held = asyncio.ensure_future(work)
                        return await lose_answer(held, other, proxy, is_committed=is_committed)
                    finally:
                        other.execute("SELECT pg_advisory_lock(7)")

                leases = await disturbed(grant(ledger.database, worker()))
                assert leases is not None
                await disturbed(give_back(ledger.database, worker(), leases))
                await disturbed(ledger.pause("once"))
            kinds = run(database, "SELECT kind FROM payments.entries WHERE number > 1 ORDER BY chunk, number")
            assert [kind for (kind,) in kinds] == ["plan", "pause", "lease", "ended"]
            assert (await ledger.check()).findings == ()
