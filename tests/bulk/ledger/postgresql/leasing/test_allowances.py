"""The stop rules of a batch, over all its chunks and workers."""

from __future__ import annotations

from decimal import Decimal

import attrs
from hypothesis import given, settings
from hypothesis import strategies as st

from payments_async.bulk._ledger.chunks import Chunk
from payments_async.bulk._ledger.postgresql.database import Database
from payments_async.bulk._ledger.postgresql.granting import Taken, allowance, promise
from payments_async.bulk._ledger.postgresql.leased_chunks import LeasedChunks
from payments_async.bulk._ledger.postgresql.leases import give_back
from payments_async.bulk._protocol.outcomes import Outcome, Sums
from payments_async.bulk._protocol.records import RowFigures
from payments_async.bulk._protocol.stop_rules import StopRules, stop_reason
from tests.support.databases import batch, expire_leases, grant, leased, spread, worker
from tests.support.ledgers import Clock, created, numbers


async def take(database: Database, most: int = 10) -> list[int]:
    """Let workers claim all that they may. Returns the numbers of the rows."""
    taken: list[int] = []
    for number in range(1, most):
        chunks, leases = [], await grant(database, worker(number))
        if not leases:
            return taken
        chunks = await LeasedChunks.under(database, leases, clock=Clock(f"worker-{number}"))
        while rows := (await chunks.claim(300)).rows:
            taken += [row.number for row in rows]
            await chunks.record(map(created, rows))
        await give_back(database, worker(number), leases)
    return taken


async def test_exactly_as_many_rows_are_taken_as_the_rules_of_the_batch_allow(database: str) -> None:
    rows = [row.number for row in spread(9, 9, 9, 9)]
    async with batch(database, spread(9, 9, 9, 9), rules=StopRules(max_rows=21)) as ledger:
        assert await take(ledger.database) == rows[:21]
        await ledger.refresh()
        assert ledger.facts.stopped == "21 rows were taken, as many as --max-rows allows"
        await ledger.plan(StopRules(max_rows=30))
        await ledger.refresh()
        assert ledger.facts.stopped is None
        assert await take(ledger.database) == rows[21:30]
        await ledger.plan(StopRules())
        assert await take(ledger.database) == rows[30:]


async def test_amounts_are_limited_for_each_currency(database: str) -> None:
    rows = [attrs.evolve(row, currency="GHS" if row.number % 2 else "XOF") for row in spread(9, 9)]
    async with batch(database, rows, rules=StopRules(max_amount=Decimal("70.70"))) as ledger:
        # seven of each currency: the eighth of an odd number is the fifth row of the second chunk
        assert await take(ledger.database) == [row.number for row in rows[:13]]


async def test_rows_that_were_promised_to_a_dead_worker_count(database: str) -> None:
    async with batch(database, spread(9, 9, 9), rules=StopRules(max_rows=14)) as ledger:
        await leased(ledger.database, 1)
        second, leases = await leased(ledger.database, 2)
        assert leases[0].granted_to == 505
        await second.claim(2)
        assert await grant(ledger.database, worker(3)) == []
        expire_leases(database)
        (left,) = await grant(ledger.database, worker(3))
        third = await LeasedChunks.under(ledger.database, [left], clock=Clock("third"))
        assert (left.chunk, numbers(await third.claim(9))) == (2, [503, 504, 505])
        assert numbers(await third.claim(9)) == []


async def test_a_chunk_of_which_nothing_more_may_be_taken_is_not_granted_again(database: str) -> None:
    async with batch(database, 20, rules=StopRules(max_rows=10)) as ledger:
        assert await take(ledger.database) == list(range(1, 11))
        assert await grant(ledger.database, worker()) == []
        await ledger.edit(lambda edits: edits.cancel([11]))
        assert await grant(ledger.database, worker()) == []
        await ledger.plan(StopRules(max_rows=11))
        assert await take(ledger.database) == [12]


async def test_a_limit_that_no_row_fits_grants_nothing(database: str) -> None:
    async with batch(database, rules=StopRules(max_amount=Decimal(1))) as ledger:
        assert await grant(ledger.database, worker()) == []
        await ledger.refresh()
        assert ledger.facts.stopped == "the next row would take XOF over --max-amount"


async def test_rules_take_effect_in_chunks_that_are_held(database: str) -> None:
    async with batch(database, 20) as ledger:
        chunks, leases = await leased(ledger.database)
        assert len((await chunks.claim(5)).rows) == 5
        await ledger.plan(StopRules(max_rows=7))
        assert (await chunks.claim(5)).rows == ()
        await give_back(ledger.database, worker(), leases)
        assert await take(ledger.database) == [6, 7]


amounts = st.decimals(min_value=0, max_value=50, places=1)


a_row = st.tuples(st.sampled_from(["XOF", "GHS"]), amounts, st.sampled_from(list(Outcome)))


a_chunk = st.tuples(st.lists(a_row, min_size=1, max_size=6), st.booleans())


@given(
    st.lists(a_chunk, max_size=3),
    st.lists(a_row, min_size=1, max_size=6),
    st.none() | st.decimals(min_value=0, max_value=200, places=1),
    st.none() | st.integers(0, 20),
)
@settings(max_examples=200)
def test_a_chunk_is_allowed_exactly_the_rows_that_one_process_would_take(
    others: list[tuple[list[tuple[str, Decimal, Outcome]], bool]],
    rows: list[tuple[str, Decimal, Outcome]],
    max_amount: Decimal | None,
    max_rows: int | None,
) -> None:
    rules = StopRules(max_amount, max_rows)
    promised, tally = Taken(), Sums[tuple[Outcome, str]]()
    for of_chunk, granted in others:
        promise(promised, _chunk(of_chunk, len(of_chunk) if granted else 0))
        for currency, amount, outcome in of_chunk:
            taken = Outcome.ARRIVED if granted and outcome is Outcome.NOT_STARTED else outcome
            tally.add((taken, currency), amount)
    promise(promised, _chunk(rows, 0))
    for currency, amount, outcome in rows:
        tally.add((outcome, currency), amount)
    expected = 0
    new = [(n, *row[:2]) for n, row in enumerate(rows, 1) if row[2] is Outcome.NOT_STARTED]
    for number, currency, amount in new:
        if stop_reason(rules, tally.totals, amount=amount, currency=currency):
            break
        tally.remove((Outcome.NOT_STARTED, currency), amount)
        tally.add((Outcome.UNDER_WAY, currency), amount)
        expected = number
    else:
        expected = len(rows)
    found = allowance(rules, promised, _chunk(rows, 0), new)
    assert found.granted_to == expected
    assert (found.stopped is None) == (expected == len(rows) or not new)


def _chunk(rows: list[tuple[str, Decimal, Outcome]], granted_to: int) -> Chunk:
    sums = Sums[tuple[Outcome, str]]()
    for currency, amount, outcome in rows:
        sums.add((outcome, currency), amount)
    return Chunk(1, 1, len(rows), granted_to, None, 1, b"", b"", RowFigures(sums.totals))
