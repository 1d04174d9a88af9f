"""Commits: outcomes from anybody, edits by the operator, and what is read of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from typing import Any

import attrs
import pytest

from payments_async.bulk._ledger.ledger import Edits
from payments_async.bulk._ledger.postgresql import batches
from payments_async.bulk._ledger.postgresql.database import Database
from payments_async.bulk._protocol.outcomes import ExtraPayout, Outcome, by_currency
from payments_async.bulk._protocol.records import RowOutcome
from payments_async.bulk._protocol.row_state import RowState, confirm
from payments_async.bulk.ledger_errors import LedgerDamaged
from payments_async.models.statuses import PayoutEnd
from tests.support.databases import batch, connected, leased, run, spread, unimported
from tests.support.ledgers import BINDING, counts, created, new_row, numbers, rejected
from tests.support.places import looked_at


async def test_outcomes_of_several_chunks_are_one_commit_with_an_entry_for_each(database: str) -> None:
    async with batch(database, spread(3, 3, 3)) as ledger:
        rows = []
        for _ in range(3):
            chunk, _ = await leased(ledger.database)
            rows += (await chunk.claim(2)).rows
        recorded = await ledger.record([created(row) for row in rows])
        assert sorted(row.number for row in recorded) == [1, 2, 501, 502, 1001, 1002]
        entries = "SELECT chunk, number FROM payments.entries WHERE kind = 'record' ORDER BY chunk"
        assert run(database, entries) == [(1, 4), (2, 4), (3, 4)]
        times = await ledger.intent_times(recorded)
        assert {each.first.session for each in times.values()} == {"worker-1"}
        assert await ledger.intent_times([]) == {}
        assert (await ledger.check()).findings == ()


async def test_outcomes_that_come_at_the_same_time_are_all_kept(database: str) -> None:
    async with batch(database, 40) as ledger, connected(database) as another:
        chunk, _ = await leased(ledger.database)
        rows = (await chunk.claim(40)).rows
        other = await unimported(another)
        await asyncio.gather(
            *(ledger.record([created(row) for row in rows[start : start + 5]]) for start in range(0, 20, 5)),
            *(other.record([rejected(row) for row in rows[start : start + 5]]) for start in range(20, 40, 5)),
        )
        await ledger.refresh()
        assert counts(ledger) == {"created": 20, "rejected": 20}
        assert (await ledger.check()).findings == ()


async def test_an_outcome_is_added_to_what_another_process_has_recorded_of_a_claimed_row(
    database: str,
) -> None:
    async with batch(database, 2) as ledger:
        chunk, _ = await leased(ledger.database)
        one, two = (await chunk.claim(2)).rows
        await ledger.record([created(one, service_status="pending")])
        assert await chunk.record([rejected(one)]) == ()
        recorded = await chunk.record([created(one, service_status="processing"), created(two)])
        assert [row.service_status for row in recorded] == ["processing", None]
        assert (await ledger.check()).findings == ()


async def test_what_was_created_is_counted_until_it_is_final(database: str) -> None:
    async with batch(database, spread(3, 3, 3)) as ledger:
        assert (await ledger.awaited()).rows == 0
        assert await ledger.last(RowState.CREATED) is None
        rows = []
        for _ in range(2):
            chunk, _ = await leased(ledger.database)
            rows += (await chunk.claim(2)).rows
        await ledger.record([created(row) for row in rows])
        awaited = await ledger.awaited()
        assert (awaited.rows, awaited.since) == (4, 1_800_000_000.75)
        last = await ledger.last(RowState.CREATED)
        assert last is not None
        assert last.number == 502
        await ledger.record(
            [
                RowOutcome(row.number, confirm(row.known, f"po_{row.number}"), "COMPLETED", PayoutEnd.ARRIVED)
                for row in rows
            ]
        )
        assert (await ledger.awaited()).rows == 0
        assert ledger.totals[Outcome.ARRIVED, "XOF"] == (4, Decimal("40.40"))
        run(database, "UPDATE payments.entries SET server = NULL")
        chunk, _ = await leased(ledger.database)
        await ledger.record([created(row) for row in (await chunk.claim(1)).rows])
        assert (await ledger.awaited()).since == 1_800_000_000.75
        run(database, "UPDATE payments.entries SET server = NULL")
        assert (await ledger.awaited()).since is None


async def test_rows_are_read_chunk_by_chunk_without_those_that_have_none(database: str) -> None:
    async with batch(database, 1100) as ledger:
        chunk, _ = await leased(ledger.database, chunk=2)
        claim = await chunk.claim(300)
        assert [row.number async for row in ledger.rows(RowState.IN_FLIGHT)] == numbers(claim)
        assert [row.number async for row in ledger.unfinished()] == numbers(claim)
        assert [row.number async for row in ledger.rows(RowState.CREATED)] == []
        assert len([row async for row in ledger.rows()]) == 1100
        assert (await ledger.first()).number == 1


async def test_a_list_of_batches_looks_once_at_each_chunk(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Counted(list[Any]):
        """Chunks, and how many of them were looked at."""

        def __iter__(self) -> Iterator[Any]:
            looked.append(len(self))
            return super().__iter__()

    looked, read = list[int](), Database.read

    async def counting(self: Database, *statements: Any) -> Any:
        return [Counted(found) for found in await read(self, *statements)]

    async with batch(database, spread(3, 3)) as ledger:
        copies = (
            "CREATE TEMP TABLE more AS SELECT g.number AS copy FROM generate_series(1, 9) g(number)",
            "CREATE TEMP TABLE chunks AS SELECT (jsonb_populate_record(c, jsonb_build_object("
            "'batch', m.copy))).* FROM payments.chunks c, more m",
            "ALTER TABLE chunks DROP COLUMN stage",
            "INSERT INTO payments.chunks SELECT * FROM chunks",
            "INSERT INTO payments.batches SELECT (jsonb_populate_record(b, jsonb_build_object("
            "'batch', m.copy, 'batch_id', m.copy::text))).* FROM payments.batches b, more m",
        )
        run(database, *copies)
        monkeypatch.setattr(Database, "read", counting)
        assert len(await batches.listed(ledger.database)) == 10
        assert sum(looked) <= 3 * (10 + 2 * 10)


async def test_a_list_of_batches_has_their_figures(database: str) -> None:
    async with batch(database, spread(3, 3)) as ledger:
        await leased(ledger.database)
        (found,) = await batches.listed(ledger.database)
        assert (found.chunks_open, found.chunks_leased, found.facts.header.rows) == (2, 1, 6)
        assert found.figures.count(Outcome.NOT_STARTED) == 6
        assert await batches.listed(ledger.database, "nobody's") == []
        run(database, "UPDATE payments.chunks SET totals = '{'")
        with pytest.raises(LedgerDamaged, match=r"batch batch-1: a chunk cannot be read; pause the batch"):
            await batches.listed(ledger.database)
        with pytest.raises(LedgerDamaged, match="a chunk cannot be read"):
            await ledger.refresh()


async def test_an_edit_keeps_what_another_process_has_recorded_of_the_batch(database: str) -> None:
    extra = {(ExtraPayout.IN_EXCESS, "XOF"): (1, Decimal("1.01"))}
    async with batch(database, 3) as ledger, await looked_at(database) as other:
        await other.note_extra(extra)
        await ledger.rebind(attrs.evolve(BINDING, input_hash="input-2"))
        await other.refresh()
        for each in (ledger, other):
            assert (each.header.extra, each.header.binding.input_hash) == (extra, "input-2")
        assert (await ledger.check()).findings == ()


async def test_what_is_read_of_a_batch_balances_at_each_moment(database: str) -> None:
    async with batch(database, 3) as ledger, await looked_at(database) as other:

        async def corrected(edits: Edits, number: int) -> None:
            await edits.correct([new_row(1, amount=Decimal(number), idempotency_key=f"key {number}")])
            await edits.rebind(attrs.evolve(BINDING, input_hash=f"input {number}"))

        async def edited() -> None:
            for number in range(40):
                await ledger.edit(partial(corrected, number=number))

        editing = asyncio.ensure_future(edited())
        while not editing.done():
            await other.refresh()
            (listed,) = await batches.listed(other.database)
            for header, totals in (
                (other.header, other.totals),
                (listed.facts.header, listed.figures.totals),
            ):
                assert by_currency(totals) == header.totals
        await editing
