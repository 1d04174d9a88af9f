"""Chunks under leases: each intent proves the lease, outcomes of earlier holders are merged."""

from __future__ import annotations

import pytest

from payments_async.bulk._ledger.postgresql import batches
from payments_async.bulk._ledger.postgresql.leased_chunks import LeasedChunks
from payments_async.bulk._protocol.records import Resend
from payments_async.bulk.ledger_errors import LeaseLost, LedgerMissing
from tests.support.databases import batch, connected, expire_leases, grant, leased, spread, unimported, worker
from tests.support.ledgers import Clock, counts, created, numbers, rejected


async def test_a_lease_that_ran_out_is_good_while_nobody_else_has_the_chunk(database: str) -> None:
    async with batch(database) as ledger:
        chunks, _ = await leased(ledger.database)
        expire_leases(database)
        assert numbers(await chunks.claim(2)) == [1, 2]


async def test_an_outcome_of_an_earlier_holder_is_merged(database: str) -> None:
    async with batch(database) as ledger:
        first, _ = await leased(ledger.database)
        claim = await first.claim(2)
        expire_leases(database)
        second, (lease,) = await leased(ledger.database, 2)
        left = [row async for row in second.unfinished()]
        assert [row.number for row in left] == [1, 2]
        again = await second.resend([Resend(row.number) for row in left])
        assert await first.record([created(claim.rows[0])])
        assert (await second.numbered([1]))[1].known.intents == 2
        assert not await second.record([rejected(again.rows[0])])
        assert [row.number async for row in second.unfinished()] == []
        assert counts(second) == {"not_started": 3, "under_way": 1, "created": 1}
        assert lease.begun_in == 4
        assert (await ledger.check()).findings == ()


async def test_a_ledger_that_holds_no_chunk_sends_nothing(database: str) -> None:
    async with batch(database) as ledger:
        for intent in (ledger.claim(1), ledger.resend([])):
            with pytest.raises(LeaseLost, match="no chunk of it is held here"):
                await intent
        chunks, _ = await leased(ledger.database)
        (row, *_) = (await chunks.claim(5)).rows
        holds = chunks.may_send(row)
        assert holds is not None
        assert holds()


async def test_an_intent_of_a_chunk_that_is_not_held_is_refused(database: str) -> None:
    async with batch(database, spread(3, 3)) as ledger:
        first, _ = await leased(ledger.database)
        second, _ = await leased(ledger.database, 2)
        (row,) = (await second.claim(1)).rows
        with pytest.raises(LeaseLost, match="chunk 2"):
            await first.resend([Resend(row.number)])


async def test_a_batch_that_was_discarded_meanwhile_is_missing(database: str) -> None:
    async with batch(database) as ledger:
        leases = await grant(ledger.database, worker())
        async with connected(database) as another:
            other = await unimported(another)
            await other.discard()
            await other.discard()
        with pytest.raises(LedgerMissing, match="no longer there"):
            await LeasedChunks.under(ledger.database, leases, clock=Clock())
        with pytest.raises(LedgerMissing, match="batch batch-1: there is no such batch"):
            await ledger.pause("in vain")
        assert await batches.listed(ledger.database) == []


async def test_intents_are_refused_by_the_rule_that_the_simulation_ablates(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with batch(database, 3) as ledger:
        chunk, _ = await leased(ledger.database)
        await ledger.pause("lunch")
        monkeypatch.setattr("payments_async.bulk._protocol.machines.intent_block", lambda *_: None)
        assert numbers(await chunk.claim(9)) == [1, 2, 3]
