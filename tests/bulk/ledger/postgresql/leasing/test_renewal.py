"""Renewals: which leases are lost, and what the operator and the rules want."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from payments_async._runtime import SystemRuntime
from payments_async.bulk._ledger.postgresql.leases import give_back, renew
from payments_async.bulk._protocol.machines import LEASE, MARGIN
from payments_async.bulk._protocol.records import Resend
from payments_async.bulk._protocol.stop_rules import StopRules
from payments_async.bulk.ledger_errors import LeaseLost, LedgerRefused
from tests.support.databases import batch, expire_leases, grant, leased, run, spread, worker
from tests.support.ledgers import created, numbers, rejected


class Clocked(SystemRuntime):
    """Its clock that counts suspension is set by the test."""

    elapsed = 100.0

    def __init__(self) -> None:
        super().__init__()
        self.boottime: Callable[[], float | None] = lambda: self.elapsed


async def test_a_lease_that_has_ended_is_not_renewed_but_given_back(database: str) -> None:
    async with batch(database) as ledger:
        _, (lease,) = await leased(ledger.database)
        expire_leases(database)
        assert (await renew(ledger.database, worker(), [lease])).lost == (lease,)
        assert not lease.is_valid()
        await give_back(ledger.database, worker(), [lease])
        assert await grant(ledger.database, worker())


async def test_a_lease_that_has_ended_for_its_holder_alone_is_not_renewed_either(database: str) -> None:
    runtime = Clocked()
    async with batch(database, runtime=runtime) as ledger:
        _, (lease,) = await leased(ledger.database)
        runtime.elapsed = lease.ends  # it was suspended: its requests have waited too long
        assert (await renew(ledger.database, worker(), [lease])).lost == (lease,)
        assert not lease.is_valid()


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
        assert (one.is_valid(), two.is_valid(), taken.is_valid()) == (True, False, True)
        runtime.elapsed = one.ends  # the machine was suspended, perhaps
        assert not one.is_valid()
        assert run(database, "SELECT rows, host FROM payments.workers") == [(7, "host-1")]


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
        assert ledger.hold_reason == reason
        with pytest.raises(LeaseLost, match=f"the batch is {reason}"):
            await chunks.claim(2)
        with pytest.raises(LeaseLost, match=f"the batch is {reason}"):
            await chunks.resend([Resend(1)])
        renewal = await renew(ledger.database, worker(), leases)
        assert renewal.hold_reasons == {number.batch: reason}
        assert bool(renewal.lost) == (state == "suspect")
        assert await grant(ledger.database, worker(2)) == []


async def test_a_store_that_is_written_in_another_way_is_recorded_anew(database: str) -> None:
    async with batch(database) as ledger:
        chunks, leases = await leased(ledger.database)
        for work in (lambda: renew(ledger.database, worker(), leases), lambda: chunks.claim(1)):
            run(database, "UPDATE payments.batches SET store = store || ' '")
            await work()
        assert leases[0].is_valid()
        assert ledger.hold_reason is None


async def test_pause_and_resume(database: str) -> None:
    async with batch(database) as ledger:
        await ledger.resume()
        assert ledger.hold_reason is None
        await ledger.pause("")
        await ledger.plan(StopRules())
        assert ledger.hold_reason == "paused"
        await ledger.resume()
        assert ledger.hold_reason is None
        suspect(database)
        await ledger.pause("for after the recovery")
        assert ledger.hold_reason == "suspect: lost commits"
        with pytest.raises(LedgerRefused, match="recover it first"):
            await ledger.resume()
        kinds = run(database, "SELECT kind FROM payments.entries WHERE chunk = 0 ORDER BY number")
        assert [kind for (kind,) in kinds] == ["import", "plan", "pause", "plan", "resume", "pause"]
        assert (await ledger.check()).findings == ()


async def test_a_worker_is_drained(database: str) -> None:
    async with batch(database) as ledger:
        _, leases = await leased(ledger.database)
        assert not (await renew(ledger.database, worker(), leases)).drain
        run(database, "UPDATE payments.workers SET drain = true")
        assert (await renew(ledger.database, worker(), leases)).drain


async def test_a_batch_whose_stop_rules_cannot_be_read_is_not_sent(database: str) -> None:
    async with batch(database) as ledger:
        _, leases = await leased(ledger.database)
        run(database, "UPDATE payments.batches SET rules = 'x'")
        renewal = await renew(ledger.database, worker(), leases)
        assert (renewal.lost, list(renewal.hold_reasons.values())) == ((), ["the stop rules cannot be read"])


async def test_too_many_failures_stop_a_batch_at_the_next_renewal(database: str) -> None:
    async with batch(database, spread(40, 3), rules=StopRules(max_failure_rate=0.1)) as ledger:
        chunks, leases = await leased(ledger.database)
        rows = (await chunks.claim(30)).rows
        await chunks.record([created(row) for row in rows[:27]])
        assert (await renew(ledger.database, worker(), leases)).stopped == {}
        await chunks.record([rejected(row) for row in rows[26:]])
        await ledger.record([rejected(row) for row in rows[27:]])
        await chunks.record([rejected(row) for row in (await chunks.claim(2)).rows])
        reason = "5 of 32 rows rejected or in conflict, more than --max-failure-rate allows"
        number = ledger.facts.batch.batch
        assert (await renew(ledger.database, worker(), leases)).stopped == {number: reason}
        assert (await chunks.claim(5)).rows == ()
        assert await grant(ledger.database, worker(2)) == []
        assert (await renew(ledger.database, worker(), leases)).stopped == {number: reason}
