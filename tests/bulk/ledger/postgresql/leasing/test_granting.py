"""Granting leases: one holder of a chunk, the most urgent work first, a look or closing once it is due."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import psycopg
import pytest

from payments_async._runtime import SystemRuntime
from payments_async.bulk._ledger.postgresql import batches
from payments_async.bulk._ledger.postgresql import granting as granting_module
from payments_async.bulk._ledger.postgresql.failover import judge
from payments_async.bulk._ledger.postgresql.leased_chunks import LeasedChunks
from payments_async.bulk._ledger.postgresql.leases import Work, give_back, renew
from payments_async.bulk._ledger.postgresql.ledger import PostgresLedger
from payments_async.bulk._protocol.records import Resend
from payments_async.bulk._protocol.row_state import RowState
from payments_async.bulk._protocol.stop_rules import Account, StopRules
from payments_async.bulk.ledger_errors import LeaseLost
from tests.support.databases import (
    ACCOUNT,
    batch,
    expire_leases,
    grant,
    leased,
    run,
    spread,
    waits_for_lock,
    worker,
)
from tests.support.ledgers import BINDING, Clock, counts, created, new_row, rejected


async def test_a_chunk_has_one_holder_until_its_lease_runs_out(database: str) -> None:
    async with batch(database) as ledger:
        first, (lease,) = await leased(ledger.database)
        assert (lease.first, lease.last, lease.granted_to) == (1, 5, 5)
        assert await grant(ledger.database, worker(2)) == []
        expire_leases(database)
        (second,) = await grant(ledger.database, worker(2))
        assert second.id != lease.id
        with pytest.raises(LeaseLost, match="is another worker's by now"):
            await first.claim(1)
        await ledger.refresh()
        assert counts(ledger) == {"not_started": 5}


async def moved(ledger: PostgresLedger) -> None:
    """Look whether a fail-over has lost commits, as after one that lost none."""
    await judge(ledger.database, ledger.facts.batch, Clock())


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda ledger: ledger.plan(StopRules()), id="plan"),
        pytest.param(lambda ledger: ledger.begin_recovery(by_hand=True), id="recover"),
        pytest.param(lambda ledger: ledger.edit(lambda edits: edits.cancel([501])), id="edit"),
        pytest.param(moved, id="fail-over"),
    ],
)
async def test_what_changes_a_batch_locks_its_chunks_first_in_rising_order(
    database: str, change: Callable[[PostgresLedger], Awaitable[Any]]
) -> None:
    """As a grant does: of two that lock in another order, each may wait for the other."""
    async with batch(database, spread(3, 3, 3)) as ledger:
        await leased(ledger.database)  # in the table its chunk is the last now
        if change is moved:
            run(database, "UPDATE payments.batches SET store = store || ' '")
        with psycopg.connect(database) as other:
            other.execute("SELECT FROM payments.chunks WHERE chunk = 1 FOR UPDATE")
            changing = asyncio.ensure_future(change(ledger))
            await waits_for_lock(other)
            for free in ("chunks WHERE chunk > 1", "batches"):
                other.execute(f"SELECT FROM payments.{free} FOR UPDATE NOWAIT".encode())
        await changing


async def test_without_a_clock_that_counts_suspension_there_is_no_lease(database: str) -> None:
    class Clockless(SystemRuntime):
        def __init__(self) -> None:
            super().__init__()
            self.boottime = lambda: None

    async with batch(database, runtime=Clockless()) as ledger:
        with pytest.raises(LeaseLost, match="no clock that counts while it is suspended"):
            await grant(ledger.database, worker())
        renewal = await renew(ledger.database, worker(), [])
        assert (renewal.lost, renewal.drain) == ((), False)


@pytest.mark.parametrize(
    "account",
    [
        attrs.evolve(ACCOUNT, environment="live"),
        attrs.evolve(ACCOUNT, base_url="https://other.example.test/v1"),
        attrs.evolve(ACCOUNT, key="key-2"),
    ],
)
async def test_a_worker_of_another_account_gets_no_lease(database: str, account: Account) -> None:
    async with batch(database) as ledger:
        assert await grant(ledger.database, worker(account=account)) == []


async def test_a_replaced_key_gets_leases_once_it_is_recorded_and_so_does_the_old_one(database: str) -> None:
    async with batch(database, spread(3, 3)) as ledger:
        await ledger.rebind(attrs.evolve(BINDING, key_fingerprint="key-2"))
        assert ledger.header.binding.key_fingerprint == "key-2"
        assert await grant(ledger.database, worker(account=attrs.evolve(ACCOUNT, key="key-2")))
        assert await grant(ledger.database, worker())
        await ledger.rebind(BINDING)
        await ledger.refresh()
        assert ledger.facts.keys == ("key-1", "key-2")


async def test_rows_that_were_left_in_flight_come_first_then_the_batch_with_fewest_workers(
    database: str,
) -> None:
    async with batch(database, spread(3, 3, 3, 3)) as ledger:
        left, (first,) = await leased(ledger.database, 1)
        await left.claim(3)
        (second,) = await grant(ledger.database, worker(2))
        expire_leases(database)
        assert (first.chunk, second.chunk) == (1, 2)
        run(database, "UPDATE payments.chunks SET in_flight = 1 WHERE chunk = 3")
        granted = [(await grant(ledger.database, worker(3)))[0].chunk for _ in range(4)]
        assert granted == [1, 3, 2, 4]


async def test_a_lease_can_be_asked_of_one_batch_and_chunk(database: str) -> None:
    async with batch(database, spread(3, 3, 3, 3)) as ledger:
        number = ledger.facts.batch.batch
        assert await grant(ledger.database, worker(), batch=number + 1) == []
        (lease,) = await grant(ledger.database, worker(), batch=number, chunk=3)
        assert lease.chunk == 3
        assert await grant(ledger.database, worker(), batch=number, chunk=3) == []


async def test_a_batch_that_was_not_planned_is_not_sent(database: str) -> None:
    async with batch(database, rules=None) as ledger:
        assert ledger.hold_reason == "not planned yet"
        assert await grant(ledger.database, worker()) == []


async def doubtful(ledger: LeasedChunks, count: int) -> None:
    """Claim rows and leave them in doubt."""
    rows = (await ledger.claim(count)).rows
    states = [attrs.evolve(row.known, state=RowState.IN_DOUBT) for row in rows]
    outcomes = [attrs.evolve(created(row), known=known) for row, known in zip(rows, states, strict=True)]
    await ledger.record(outcomes)


async def test_a_look_takes_all_chunks_with_rows_in_doubt_that_are_otherwise_done(database: str) -> None:
    async with batch(database, spread(3, 3, 3)) as ledger:
        for number in (3, 3, 2):
            chunks, leases = await leased(ledger.database)
            await doubtful(chunks, 1)
            claim = await chunks.claim(number - 1)
            await chunks.record(map(created, claim.rows))
            await give_back(ledger.database, worker(), leases)
        looks = await grant(ledger.database, worker(2), kind=Work.LOOK)
        assert [lease.chunk for lease in looks] == [1, 2]  # the third has a new row left
        doubts = await LeasedChunks.under(ledger.database, looks, clock=Clock("look"))
        assert [row.number async for row in doubts.unfinished()] == [1, 501]
        again = await doubts.resend([Resend(1), Resend(501)])
        assert len(await doubts.record(map(created, again.rows))) == 2
        assert (await ledger.check()).findings == ()


async def test_a_look_waits_until_it_is_due(database: str) -> None:
    async with batch(database, 1) as ledger:
        chunks, leases = await leased(ledger.database)
        await doubtful(chunks, 1)
        await give_back(ledger.database, worker(), leases, look_after=60.0)
        assert await grant(ledger.database, worker(), kind=Work.LOOK) == []
        run(database, "UPDATE payments.chunks SET look_at = look_at - interval '61 s'")
        assert await grant(ledger.database, worker(), kind=Work.LOOK)


async def test_a_batch_is_closed_once_all_is_decided_and_opened_by_an_edit(database: str) -> None:
    async with batch(database, 2) as ledger:
        chunks, leases = await leased(ledger.database)
        claim = await chunks.claim(2)
        number = ledger.facts.batch
        assert await grant(ledger.database, worker(), kind=Work.CLOSE) == []
        assert not await batches.close(ledger.database, number, Clock(), {"paid": 1})
        await chunks.record([created(claim.rows[0]), rejected(claim.rows[1])])
        await give_back(ledger.database, worker(), leases)
        (whole,) = await grant(ledger.database, worker(), kind=Work.CLOSE)
        assert whole.chunk == 0
        assert await batches.close(ledger.database, number, Clock(), {"paid": 1})
        assert not await batches.close(ledger.database, number, Clock(), {"paid": 1})
        await ledger.refresh()
        assert ledger.hold_reason == "closed"
        ((text,),) = run(database, "SELECT changes FROM payments.entries WHERE kind = 'root'")
        assert (await ledger.check()).head in text
        await ledger.pause("in vain")
        assert ledger.hold_reason == "closed"
        await ledger.correct([new_row(2, body=b"{}", idempotency_key="another")])
        await ledger.refresh()
        assert ledger.hold_reason is None
        assert await grant(ledger.database, worker())


async def test_a_batch_that_is_paused_in_the_middle_of_a_grant_is_not_granted(database: str) -> None:
    async with batch(database) as ledger:
        number = ledger.facts.batch
        await ledger.pause("now")
        granting = granting_module._Granting(ledger.database, worker(), number, Work.SEND)
        assert await ledger.database.commit(lambda each: granting.grant(each, 1)) == []


async def test_only_a_grant_and_its_end_move_a_chunk_in_the_index_of_work(database: str) -> None:
    async with batch(database, 4) as ledger:
        chunk, leases = await leased(ledger.database)
        stages = "SELECT stage FROM payments.chunks WHERE chunk = 1"
        seen = [run(database, stages)]
        claim = await chunk.claim(3)
        await chunk.record(map(created, claim.rows[:2]))
        await renew(ledger.database, worker(), leases)
        await chunk.record(map(created, claim.rows[2:]))
        seen.append(run(database, stages))
        await give_back(ledger.database, worker(), leases)
        seen.append(run(database, stages))
        assert seen == [[(1,)], [(1,)], [(2,)]]
