"""The check: it finds whatever was changed by another hand, wherever that is."""

from __future__ import annotations

import pytest

from payments_async.bulk._ledger.postgresql.ledger import PostgresLedger
from payments_async.bulk._protocol.attempts import RowAttempt
from payments_async.bulk._protocol.row_state import RowState
from payments_async.bulk._protocol.run_figures import RunSeries
from payments_async.bulk.ledger_errors import LedgerDamaged
from tests.support.databases import batch, leased, run, spread
from tests.support.ledgers import created, rejected


async def worked_on(ledger: PostgresLedger) -> None:
    """Pay some rows of the first of two chunks."""
    chunk, _ = await leased(ledger.database)
    rows = (await chunk.claim(10)).rows
    await chunk.record([*map(created, rows[:5]), *map(rejected, rows[5:8])])


TAMPERED = [
    ("UPDATE {states} SET rank = rank + 1 WHERE number = 505", "chunk 2: row 505 is not as it was written"),
    (
        "UPDATE payments.entries SET lease = 'x' WHERE kind = 'claim'",
        "chunk 1: entry 3 of the chain is not as",
    ),
    ("DELETE FROM payments.entries WHERE kind = 'record'", "chunk 1: the chain does not end with entry 4"),
    ("DELETE FROM payments.entries WHERE chunk = 2", "chunk 2: the chain does not end with entry 1"),
    ("UPDATE payments.chunks SET head = 'x' WHERE chunk = 1", "chunk 1: the chain does not end with entry 4"),
    ("UPDATE payments.chunks SET digest = 'x' WHERE chunk = 1", "chunk 1: the rows do not add up"),
    (
        "UPDATE payments.chunks SET unsent = 1 WHERE chunk = 1",
        "chunk 1: its counts are not those of its rows",
    ),
    (
        "UPDATE payments.chunks SET totals = '[1]' WHERE chunk = 1",
        "chunk 1: it is missing, or cannot be read",
    ),
    (
        "UPDATE payments.chunks SET totals = '{{}}' WHERE chunk = 1",
        "chunk 1: rows not final: 0 recorded (XOF 0), ",
    ),
    ("DELETE FROM payments.chunks WHERE chunk = 2", "chunk 2: it is missing, or cannot be read"),
    ("DELETE FROM payments.chunks WHERE chunk = 0", "it is missing, or cannot be read"),
    ("UPDATE payments.batches SET rows = 31", "31 rows were imported, 30 are there"),
    ("UPDATE payments.batches SET chunks = 3", "it was made of 3 chunks, 2 are there"),
    ("UPDATE payments.batches SET input_hash = 'x'", "the header is not as it was written"),
    ("UPDATE payments.batches SET totals = '{{'", "a batch cannot be read"),
    ("DELETE FROM payments.batches", "the header is missing"),
]


@pytest.mark.parametrize(("statement", "finding"), TAMPERED)
async def test_a_change_by_another_hand_is_found(database: str, statement: str, finding: str) -> None:
    async with batch(database, spread(20, 10)) as ledger:
        await worked_on(ledger)
        whole = await ledger.check()
        assert whole.findings == ()
        number = ledger.facts.batch.batch
        run(database, statement.format(states=f"payments.row_states_{number:016x}"))
        report = await ledger.check()
        assert any(finding in found for found in report.findings), report.findings


async def test_figures_that_cannot_be_read_are_named_and_are_no_damage(database: str) -> None:
    async with batch(database, 3) as ledger:
        for number in (2, 3):
            ledger.recorder.attempt(number, RowAttempt(ledger.now(), "503", 0.2))
        await ledger.save_figures()
        assert (await ledger.check()).unreadable == ()
        run(database, "UPDATE payments.attempts SET attempts = '{' WHERE number = 3")
        assert (await ledger.check()).unreadable == ("the attempts of row 3",)
        run(database, "ALTER TABLE payments.attempts RENAME COLUMN number TO row")
        run(database, "ALTER TABLE payments.series RENAME COLUMN refused TO others")
        checked = await ledger.check()
        assert checked.findings == ()
        assert checked.unreadable == ("payouts a second and answer times", "the attempts of rows")
        assert (await ledger.series(), await ledger.attempts([2])) == (RunSeries(), {})


async def test_what_cannot_be_read_is_damage(database: str) -> None:
    async with batch(database, 3) as ledger:
        number = ledger.facts.batch.batch
        chunk, _ = await leased(ledger.database)
        (row, *_) = (await chunk.claim(3)).rows
        run(database, "DELETE FROM payments.entries WHERE kind = 'claim'")
        with pytest.raises(LedgerDamaged, match="the time of an intent cannot be read"):
            await ledger.intent_times([row])
        ((store,),) = run(database, "SELECT store FROM payments.batches")
        run(database, "UPDATE payments.batches SET store = 'x'")
        with pytest.raises(LedgerDamaged, match="the server of a batch cannot be read"):
            await ledger.record([created(row)])
        run(database, ("UPDATE payments.batches SET store = %s", [store]))
        run(database, "UPDATE payments.batches SET chunk_size = 0")
        with pytest.raises(LedgerDamaged, match="a batch cannot be read"):
            await ledger.refresh()
        run(database, f"UPDATE payments.batches SET chunk_size = {ledger.facts.batch.chunk_size}")
        run(database, f"UPDATE payments.rows_{number:016x} SET amount = 'x'")
        with pytest.raises(LedgerDamaged, match="some row cannot be read"):
            await ledger.first()
        with pytest.raises(LedgerDamaged, match="some row cannot be read"):
            await ledger.record([created(row)])
        run(database, "DELETE FROM payments.chunks")
        with pytest.raises(LedgerDamaged, match="a chunk cannot be read"):
            await ledger.record([created(row)])
        assert await ledger.last(RowState.IN_FLIGHT) is None
