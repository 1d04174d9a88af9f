"""Commits: outcomes from anybody, edits by the operator, and what is read of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import attrs
import pytest

from payments_async.bulk.ledger.ledger import Edits
from payments_async.bulk.ledger.postgresql import batches
from payments_async.bulk.ledger.postgresql.driver.database import Database
from payments_async.bulk.ledger_errors import LedgerDamaged, LedgerRefused
from payments_async.bulk.protocol.outcomes import Outcome
from payments_async.bulk.protocol.records import Resend, RowOutcome
from payments_async.bulk.protocol.row_state import RowState, confirm
from payments_async.models.statuses import PayoutEnd
from tests.support.databases import batch, connected, leased, run, spread, unimported
from tests.support.ledgers import BINDING, all_rows, counts, created, new_row, numbers, rejected


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


async def test_nothing_is_committed_for_nothing(database: str) -> None:
    async with batch(database) as ledger:
        assert await ledger.record([]) == ()
        chunk, _ = await leased(ledger.database)
        (row,) = (await chunk.claim(1)).rows
        await ledger.record([created(row)])
        before = (await ledger.check()).entries
        assert await ledger.record([created(row)]) == ()
        assert await ledger.correct([]) == ()
        assert (await chunk.resend([Resend(1)])).rows == ()
        assert (await ledger.check()).entries == before


async def test_an_outcome_of_a_row_that_is_not_there_is_refused(database: str) -> None:
    async with batch(database) as ledger:
        (row, *_) = await all_rows(ledger)
        with pytest.raises(LedgerRefused, match="row 6: is not there"):
            await ledger.record([RowOutcome(6, row.known)])


async def test_a_reference_that_another_row_ever_had_is_no_new_one(database: str) -> None:
    async with batch(database, 3) as ledger:
        chunk, _ = await leased(ledger.database)
        rows = (await chunk.claim(3)).rows
        failed = [
            created(row, service_status="FAILED", payout_end=PayoutEnd.FAILED, failure_code="x")
            for row in rows
        ]
        await ledger.record(failed)
        assert ledger.totals[Outcome.FAILED, "XOF"] == (3, Decimal("30.30"))
        assert [row.number async for row in ledger.failed()] == [1, 2, 3]
        again = [new_row(1, reference="reference-1~g1", idempotency_key="next-1")]
        assert [row.known.generation for row in await ledger.next_generation(again)] == [1]
        assert await ledger.latest_generation() == 1
        for taken in ("reference-1", "reference-1~g1", "reference-3"):
            with pytest.raises(LedgerRefused, match="belongs to another row"):
                await ledger.next_generation([new_row(2, reference=taken, idempotency_key="next-2")])
        assert [row.number for row in await ledger.by_references(["reference-1", "reference-2"])] == [2]
        assert [row.number for row in await ledger.by_references(["reference-1~g1"])] == [1]
        assert ledger.totals[Outcome.FAILED, "XOF"] == (2, Decimal("20.20"))
        assert (await ledger.check()).findings == ()


async def test_the_next_epochs_key_stays_with_the_row_until_it_gets_other_content(database: str) -> None:
    async with batch(database, 1) as ledger:
        chunk, _ = await leased(ledger.database)
        await chunk.claim(1)
        (row,) = (await chunk.resend([Resend(1, "epoch-1", absent=True)])).rows
        assert row.idempotency_key == "epoch-1"
        (row,) = await ledger.record([rejected(row)])
        assert row.idempotency_key == "epoch-1"
        (row,) = await ledger.correct([new_row(1, body=b"{}", idempotency_key="corrected")])
        assert (row.idempotency_key, row.known.revision) == ("corrected", 1)
        assert (await ledger.check()).findings == ()


async def test_edits_are_one_transaction_and_read_what_they_changed(database: str) -> None:
    async with batch(database, spread(4, 3)) as ledger:

        async def work(edits: Edits) -> None:
            await edits.correct(
                [
                    new_row(2, body=b"{}", idempotency_key="two"),
                    new_row(502, body=b"{}", idempotency_key="six"),
                ]
            )
            await edits.cancel([3, 503])
            await edits.cancel([4])
            assert [row.state async for row in edits.rows()][2:4] == [RowState.CANCELLED] * 2
            (row,) = await edits.by_keys(["row-2", "nobody's"])
            assert (row.number, row.body) == (2, b"{}")
            await edits.rebind(attrs.evolve(BINDING, input_hash="input-2"))

        await ledger.edit(work)
        assert counts(ledger) == {"not_started": 4, "cancelled": 3}
        assert ledger.header.binding.input_hash == "input-2"
        kinds = run(
            database,
            "SELECT kind, changes FROM payments.entries WHERE chunk = 0 AND number > 2 ORDER BY number",
        )
        assert [kind for kind, _ in kinds] == ["header", "correct", "cancel"]
        assert [text for _, text in kinds[1:]] == ['{"rows":2}', '{"rows":3}']
        header = ledger.header
        await ledger.refresh()
        assert ledger.header == header
        assert (await ledger.check()).findings == ()


async def test_edits_that_fail_change_nothing(database: str) -> None:
    async with batch(database, 3) as ledger:

        async def work(edits: Edits) -> None:
            await edits.cancel([1])
            await edits.cancel([1])

        with pytest.raises(LedgerRefused, match="row 1: a row that is CANCELLED cannot cancel"):
            await ledger.edit(work)
        with pytest.raises(LedgerRefused, match="row 9: is not there"):
            await ledger.edit(lambda edits: edits.cancel([9]))
        await ledger.edit(lambda edits: edits.correct([]))
        await ledger.edit(lambda edits: edits.by_keys(["row-1"]), dry=True)  # type: ignore[arg-type, return-value] # an edit that makes nothing
        await ledger.refresh()
        assert counts(ledger) == {"not_started": 3}
        assert (await ledger.check()).entries == 3


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
            "INSERT INTO payments.chunks SELECT (jsonb_populate_record(c, jsonb_build_object("
            "'batch', m.copy))).* FROM payments.chunks c, more m",
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
