"""Leases: one holder of a chunk, proven by each intent; renewals tell what the operator wants."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from decimal import Decimal

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from payments_async._runtime import SystemRuntime
from payments_async.bulk.ledger.postgresql import batches
from payments_async.bulk.ledger.postgresql import leases as leases_module
from payments_async.bulk.ledger.postgresql.allowances import added_up, allowance, promised
from payments_async.bulk.ledger.postgresql.chunks import Chunk
from payments_async.bulk.ledger.postgresql.driver.database import Database
from payments_async.bulk.ledger.postgresql.figures import Figures
from payments_async.bulk.ledger.postgresql.leased import LeasedChunks
from payments_async.bulk.ledger.postgresql.leases import Lease, Work, give_back, grant, renew
from payments_async.bulk.ledger_errors import LeaseLost, LedgerMissing, LedgerRefused
from payments_async.bulk.protocol.leases import LEASE, MARGIN
from payments_async.bulk.protocol.records import Resend
from payments_async.bulk.protocol.row_state import RowState
from payments_async.bulk.protocol.stop_rules import Account, StopRules, Totals, stop_reason
from payments_async.bulk.protocol.totals import Sums
from tests.support.databases import (
    ACCOUNT,
    batch,
    connected,
    expire_leases,
    held_commits,
    leased,
    run,
    spread,
    unimported,
    waits_for_lock,
    worker,
)
from tests.support.ledgers import BINDING, Clock, counts, created, new_row, numbers, rejected
from tests.support.servers import CutProxy, PostgresServer


class Clocked(SystemRuntime):
    """Its clock that counts suspension is set by the test."""

    elapsed = 100.0

    def __init__(self) -> None:
        super().__init__()
        self.boottime: Callable[[], float | None] = lambda: self.elapsed


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
        assert counts(ledger) == {"NEW": 5}


async def test_a_lease_that_ran_out_is_good_while_nobody_else_has_the_chunk(database: str) -> None:
    async with batch(database) as ledger:
        chunks, _ = await leased(ledger.database)
        expire_leases(database)
        assert numbers(await chunks.claim(2)) == [1, 2]


async def test_a_lease_that_has_ended_is_not_renewed_but_given_back(database: str) -> None:
    async with batch(database) as ledger:
        _, (lease,) = await leased(ledger.database)
        expire_leases(database)
        assert (await renew(ledger.database, worker(), [lease])).lost == (lease,)
        assert not lease.holds()
        await give_back(ledger.database, worker(), [lease])
        assert await grant(ledger.database, worker())


async def test_a_lease_that_has_ended_for_its_holder_alone_is_not_renewed_either(database: str) -> None:
    runtime = Clocked()
    async with batch(database, runtime=runtime) as ledger:
        _, (lease,) = await leased(ledger.database)
        runtime.elapsed = lease.ends  # it was suspended: its requests have waited too long
        assert (await renew(ledger.database, worker(), [lease])).lost == (lease,)
        assert not lease.holds()


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
        assert counts(second) == {"NEW": 3, "IN_FLIGHT": 1, "CREATED": 1}
        assert lease.begun_in == 4
        assert (await ledger.check()).findings == ()


async def test_a_renewal_moves_the_end_of_a_lease_and_tells_which_are_lost(database: str) -> None:
    runtime = Clocked()
    async with batch(database, spread(3, 3), runtime=runtime) as ledger:
        one, two = [(await leased(ledger.database))[1][0] for _ in range(2)]
        assert one.ends == 100.0 + LEASE - MARGIN
        run(database, "UPDATE payments.chunks SET expires = clock_timestamp() WHERE chunk = 2")
        (taken,) = await grant(ledger.database, worker(2))
        runtime.elapsed = 103.0
        renewal = await renew(ledger.database, worker(), [one, two], rows=7)
        assert renewal.lost == (two,)
        assert one.ends == 103.0 + LEASE - MARGIN
        assert (one.holds(), two.holds(), taken.holds()) == (True, False, True)
        runtime.elapsed = one.ends  # the machine was suspended, perhaps
        assert not one.holds()
        assert run(database, "SELECT rows, host FROM payments.workers") == [(7, "host-1")]


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


def suspect(url: str) -> None:
    """Mark all batches as suspect, and void all leases, as a fail-over does."""
    run(
        url,
        "UPDATE payments.batches SET state = 'suspect', reason = 'lost commits'",
        "UPDATE payments.chunks SET lease = NULL, holder = NULL, expires = NULL",
    )


@pytest.mark.parametrize("state", ["paused", "suspect"])
async def test_a_batch_that_is_held_is_not_sent(database: str, state: str) -> None:
    async with batch(database) as ledger:
        chunks, leases = await leased(ledger.database)
        assert numbers(await chunks.claim(2)) == [1, 2]
        number = ledger.facts.batch
        if state == "paused":
            await ledger.pause("lunch")
        else:
            suspect(database)
            await ledger.refresh()
        reason = "paused: lunch" if state == "paused" else "suspect: lost commits"
        assert ledger.held == reason
        with pytest.raises(LeaseLost, match=f"the batch is {reason}"):
            await chunks.claim(2)
        with pytest.raises(LeaseLost, match=f"the batch is {reason}"):
            await chunks.resend([Resend(1)])
        renewal = await renew(ledger.database, worker(), leases)
        assert renewal.held == {number.batch: reason}
        assert bool(renewal.lost) == (state == "suspect")
        assert await grant(ledger.database, worker(2)) == []


async def test_pause_and_resume(database: str) -> None:
    async with batch(database) as ledger:
        await ledger.resume()
        assert ledger.held is None
        await ledger.pause("")
        await ledger.plan(StopRules())
        assert ledger.held == "paused"
        await ledger.resume()
        assert ledger.held is None
        suspect(database)
        await ledger.pause("in vain")
        assert ledger.held == "suspect: lost commits"
        with pytest.raises(LedgerRefused, match="recover it first"):
            await ledger.resume()
        kinds = run(database, "SELECT kind FROM payments.entries WHERE chunk = 0 ORDER BY number")
        assert [kind for (kind,) in kinds] == ["import", "plan", "pause", "plan", "resume"]
        assert (await ledger.check()).findings == ()


async def test_a_batch_that_was_not_planned_is_not_sent(database: str) -> None:
    async with batch(database, rules=None) as ledger:
        assert ledger.held == "not planned yet"
        assert await grant(ledger.database, worker()) == []


async def test_a_worker_is_drained(database: str) -> None:
    async with batch(database) as ledger:
        _, leases = await leased(ledger.database)
        assert not (await renew(ledger.database, worker(), leases)).drain
        run(database, "UPDATE payments.workers SET drain = true")
        assert (await renew(ledger.database, worker(), leases)).drain


async def test_leases_are_given_back_and_those_of_others_are_left(database: str) -> None:
    async with batch(database, spread(3, 3)) as ledger:
        _, (one,) = await leased(ledger.database)
        _, (two,) = await leased(ledger.database)
        run(database, "UPDATE payments.chunks SET expires = clock_timestamp() WHERE chunk = 2")
        await grant(ledger.database, worker(2))
        await give_back(ledger.database, worker(), [one, two])
        assert (one.holds(), two.holds()) == (False, False)
        assert run(database, "SELECT lease IS NULL FROM payments.chunks WHERE chunk > 0 ORDER BY chunk") == [
            (True,),
            (False,),
        ]
        await give_back(ledger.database, worker(), [one])
        run(database, "DELETE FROM payments.chunks")
        await give_back(ledger.database, worker(), [one])
        ends = run(database, "SELECT count(*) FROM payments.entries WHERE kind = 'ended'")
        assert ends == [(1,)]


# Looks and closing


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
        doubts = await LeasedChunks.holding(ledger.database, looks, clock=Clock("look"))
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
        assert ledger.held == "closed"
        ((text,),) = run(database, "SELECT changes FROM payments.entries WHERE kind = 'root'")
        assert (await ledger.check()).head in text
        await ledger.pause("in vain")
        assert ledger.held == "closed"
        await ledger.correct([new_row(2, body=b"{}", idempotency_key="another")])
        await ledger.refresh()
        assert ledger.held is None
        assert await grant(ledger.database, worker())


# Commits of leases whose answer is lost


@pytest.mark.parametrize("is_committed", [True, False])
async def test_a_grant_and_a_return_without_an_answer_take_place_once(
    database: str, postgres: PostgresServer, is_committed: bool
) -> None:
    with CutProxy(postgres.address) as proxy:
        url = database.replace(f":{postgres.port}/", f":{proxy.port}/")
        async with batch(url) as ledger:
            with held_commits(database) as other:

                async def disturbed(work: asyncio.Future[list[Lease] | None]) -> list[Lease] | None:
                    session = await waits_for_lock(other)
                    if is_committed:
                        proxy.heal()
                        await waits_for_lock(other, count=2)
                    else:
                        other.execute("SELECT pg_terminate_backend(%s)", (session,))
                    other.execute("SELECT pg_advisory_unlock(7)")
                    try:
                        return await work
                    finally:
                        other.execute("SELECT pg_advisory_lock(7)")

                leases = await disturbed(asyncio.ensure_future(grant(ledger.database, worker())))
                assert leases is not None
                await disturbed(asyncio.ensure_future(give_back(ledger.database, worker(), leases)))
                await disturbed(asyncio.ensure_future(ledger.pause("once")))
            kinds = run(database, "SELECT kind FROM payments.entries WHERE number > 1 ORDER BY chunk, number")
            assert [kind for (kind,) in kinds] == ["plan", "pause", "lease", "ended"]
            assert (await ledger.check()).findings == ()


# Stop rules


async def take(database: Database, most: int = 10) -> list[int]:
    """Let workers claim all that they may. Returns the numbers of the rows."""
    taken: list[int] = []
    for number in range(1, most):
        chunks, leases = [], await grant(database, worker(number))
        if not leases:
            return taken
        chunks = await LeasedChunks.holding(database, leases, clock=Clock(f"worker-{number}"))
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
        third = await LeasedChunks.holding(ledger.database, [left], clock=Clock("third"))
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


async def test_too_many_failures_stop_a_batch_at_the_next_renewal(database: str) -> None:
    async with batch(database, spread(40, 3), rules=StopRules(max_failure_rate=0.1)) as ledger:
        chunks, leases = await leased(ledger.database)
        rows = (await chunks.claim(30)).rows
        await chunks.record([created(row) for row in rows[:27]])
        assert (await renew(ledger.database, worker(), leases)).stopped == {}
        await chunks.record([rejected(row) for row in rows[26:]])
        await ledger.record([rejected(row) for row in rows[27:]])
        await chunks.record([rejected(row) for row in (await chunks.claim(2)).rows])
        reason = "5 of 32 rows failed, more than --max-failure-rate allows"
        number = ledger.facts.batch.batch
        assert (await renew(ledger.database, worker(), leases)).stopped == {number: reason}
        assert (await chunks.claim(5)).rows == ()
        assert await grant(ledger.database, worker(2)) == []
        assert (await renew(ledger.database, worker(), leases)).stopped == {number: reason}


amounts = st.decimals(min_value=0, max_value=50, places=1)
a_row = st.tuples(st.sampled_from(["XOF", "GHS"]), amounts, st.sampled_from(list(RowState)))
a_chunk = st.tuples(st.lists(a_row, min_size=1, max_size=6), st.booleans())


@given(
    st.lists(a_chunk, max_size=3),
    st.lists(a_row, min_size=1, max_size=6),
    st.none() | st.decimals(min_value=0, max_value=200, places=1),
    st.none() | st.integers(0, 20),
)
@settings(max_examples=200)
def test_a_chunk_is_allowed_exactly_the_rows_that_one_process_would_take(
    others: list[tuple[list[tuple[str, Decimal, RowState]], bool]],
    rows: list[tuple[str, Decimal, RowState]],
    max_amount: Decimal | None,
    max_rows: int | None,
) -> None:
    rules = StopRules(max_amount, max_rows)
    parts, tally = [], Sums()
    for of_chunk, granted in others:
        parts.append(promised(_chunk(of_chunk, len(of_chunk) if granted else 0)))
        for currency, amount, state in of_chunk:
            taken = RowState.CREATED if granted and state is RowState.NEW else state
            tally.add(taken, currency, amount)
    parts.append(promised(_chunk(rows, 0)))
    for currency, amount, state in rows:
        tally.add(state, currency, amount)
    expected = 0
    new = [(n, *row[:2]) for n, row in enumerate(rows, 1) if row[2] is RowState.NEW]
    for number, currency, amount in new:
        if stop_reason(rules, Totals.of(tally.totals), amount=amount, currency=currency):
            break
        tally.remove(RowState.NEW, currency, amount)
        tally.add(RowState.IN_FLIGHT, currency, amount)
        expected = number
    else:
        expected = len(rows)
    found = allowance(rules, added_up(parts), _chunk(rows, 0), new)
    assert found.granted_to == expected
    assert (found.stopped is None) == (expected == len(rows) or not new)


def _chunk(rows: list[tuple[str, Decimal, RowState]], granted_to: int) -> Chunk:
    sums = Sums()
    for currency, amount, state in rows:
        sums.add(state, currency, amount)
    return Chunk(1, 1, len(rows), granted_to, None, 1, b"", b"", Figures(sums.totals))


async def test_a_batch_that_is_paused_in_the_middle_of_a_grant_is_not_granted(database: str) -> None:
    async with batch(database) as ledger:
        number = ledger.facts.batch.batch
        await ledger.pause("now")
        granting = leases_module._Granting(ledger.database, worker(), Work.SEND)
        assert await ledger.database.commit(lambda each: granting.grant(each, [number], None)) == []


async def test_a_batch_that_was_discarded_meanwhile_is_missing(database: str) -> None:
    async with batch(database) as ledger:
        leases = await grant(ledger.database, worker())
        async with connected(database) as another:
            other = await unimported(another)
            await other.discard()
            await other.discard()
        with pytest.raises(LedgerMissing, match="no longer there"):
            await LeasedChunks.holding(ledger.database, leases, clock=Clock())
        with pytest.raises(LedgerMissing, match="there is no batch batch-1"):
            await ledger.pause("in vain")
        assert await batches.listed(ledger.database) == []
