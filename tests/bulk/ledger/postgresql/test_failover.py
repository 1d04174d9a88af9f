"""After a fail-over or a restore: lost commits are noticed before the next intent, nothing false follows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from decimal import Decimal

import attrs
import pytest

from payments_async._runtime import SYSTEM
from payments_async.bulk._ledger.opening import open_shared
from payments_async.bulk._ledger.postgresql import batches
from payments_async.bulk._ledger.postgresql.batches import standbys
from payments_async.bulk._ledger.postgresql.database import Database
from payments_async.bulk._ledger.postgresql.leases import renew
from payments_async.bulk._ledger.postgresql.ledger import PostgresLedger
from payments_async.bulk._ledger.postgresql.schema import table_of
from payments_async.bulk._protocol.machines import LEASE, Loss, ServerIdentity, Standbys
from payments_async.bulk._protocol.outcomes import ExtraPayout
from payments_async.bulk._protocol.records import LedgerRow, NewRow, Resend, RowOutcome
from payments_async.bulk._protocol.row_state import LOST_INTENTS, RowKnowledge, RowState, doubt
from payments_async.bulk._protocol.stop_rules import StopRules
from payments_async.bulk.ledger_errors import LeaseLost, LedgerDamaged, LedgerRefused, LedgerUnavailable
from payments_async.models.statuses import PayoutEnd
from tests.support.databases import grant, leased, worker
from tests.support.failover import restored, server_pair
from tests.support.ledgers import Clock, counts, created, imported, new_row, new_rows, numbers, rejected
from tests.support.servers import PostgresServer

S = RowState


def in_doubt(row: LedgerRow) -> RowOutcome:
    """The outcome of the row is unknown."""
    return attrs.evolve(rejected(row), known=doubt(row.known))


OLD_LEASES_END = "UPDATE payments.chunks SET expires = clock_timestamp() WHERE lease IS NULL"


@asynccontextmanager
async def opened(url: str, rows: int | Collection[NewRow] = 0) -> AsyncIterator[PostgresLedger]:
    """The batch in a database; with `rows` it is imported and planned."""
    ledger = await open_shared(url, batch_id="batch-1", clock=Clock(), runtime=SYSTEM, create=bool(rows))
    assert isinstance(ledger, PostgresLedger)
    async with ledger:
        if rows:
            await imported(ledger, new_rows(rows) if isinstance(rows, int) else rows)
            await ledger.plan(StopRules())
            await ledger.refresh()
        yield ledger


async def recovered(ledger: PostgresLedger, *, proven: bool = False, confirmed: bool = True) -> None:
    """Recover a batch whose list shows nothing, so long after the loss that old leases have ended."""
    state = await ledger.begin_recovery(by_hand=False)
    assert state is not None
    await ledger.end_recovery(state, confirmed=confirmed, proven=proven)
    await tamper(ledger, OLD_LEASES_END)


def entries_of(ledger: PostgresLedger) -> str:
    """The table of its entries."""
    return table_of("entries", ledger.facts.batch.batch)


async def kinds(ledger: PostgresLedger) -> list[str]:
    """What the chain of the batch itself records."""
    sql = f"SELECT kind FROM {entries_of(ledger)} WHERE chunk = 0 ORDER BY number"
    (found,) = await ledger.database.read((sql, ()))
    return [kind for (kind,) in found]


async def tamper(ledger: PostgresLedger, sql: str, *values: object) -> None:
    """Change tables behind the ledger's back."""
    await ledger.database.read((sql, values))


async def move(ledger: PostgresLedger, *, standby: Standbys = Standbys.NONE) -> None:
    """Let the batch have its last commits on the timeline before this one."""
    store = ledger.database.server.identity
    before = ServerIdentity(store.system, (store.timeline or 0) - 1).text
    await tamper(ledger, "UPDATE payments.batches SET store = %s, standbys = %s", before, standby.value)


# A standby that lacks commits


async def test_lost_intents_outcomes_and_a_retry_are_noticed_before_the_next_intent() -> None:
    with server_pair() as pair:
        url = pair.url(pair.primary.make_database())
        async with opened(url, rows=20) as ledger:
            assert await standbys(ledger.database) is Standbys.ASYNCHRONOUS
            chunk, (lease,) = await leased(ledger.database)
            first = (await chunk.claim(5)).rows
            await chunk.record([created(row) for row in first[:3]])
            await chunk.record(
                [created(row, service_status="failed", payout_end=PayoutEnd.FAILED) for row in first[3:4]]
            )
            pair.part()
            second = (await chunk.claim(5)).rows
            await chunk.record([created(second[0]), rejected(second[1])])
            retried = new_row(4, reference="reference-4~g1", idempotency_key="another")
            await ledger.next_generation([retried])
            pair.fail_over()

            with pytest.raises(LeaseLost, match="the batch is suspect: commits that were made are missing"):
                await chunk.claim(5)
            assert (await renew(ledger.database, worker(), [lease])).lost == (lease,)
            assert not lease.is_valid()
            assert await grant(ledger.database, worker()) == []
            await ledger.refresh()
            assert ledger.hold_reason == f"suspect: {Loss.COMMITS.value}"
            assert counts(ledger) == {"not_started": 15, "under_way": 1, "created": 4}
            with pytest.raises(LedgerRefused, match="recover it first"):
                await ledger.resume()

            # what workers bring home later counts if it is settled, and if it is of the row as it is now
            of_the_retry = RowOutcome(4, RowKnowledge(S.CREATED, generation=1, intents=1, payout_id="po_x"))
            late = await ledger.record([created(second[2]), rejected(second[1]), of_the_retry])
            assert [(row.number, row.state) for row in late] == [(8, S.CREATED)]

            state = await ledger.begin_recovery(by_hand=False)
            assert state is not None
            assert (state.is_suspect, state.losses, state.reason) == (True, 1, Loss.COMMITS.value)
            assert [command.kind for command in state.commands] == ["import", "plan"]
            assert state.commands[0].rows == 20
            await ledger.end_recovery(state, confirmed=True, proven=False)
            await tamper(ledger, OLD_LEASES_END)
            assert ledger.hold_reason is None
            assert ledger.unproven is not None
            with pytest.raises(LedgerRefused, match="no reading of the service's list has proven which"):
                await ledger.next_generation([retried])

            # rows that may have been sent are refused for good only once their absence is proven
            with pytest.raises(LeaseLost, match="is another worker's by now, or ended"):
                await chunk.claim(5)
            chunk, (lease,) = await leased(ledger.database)
            (open_row,) = [row async for row in chunk.unfinished()]
            assert (open_row.number, open_row.known.intents) == (5, 1 + LOST_INTENTS)
            claim = await chunk.claim(3)
            assert numbers(claim) == [6, 7, 9]
            assert all(row.known.was_doubtful for row in claim.rows)
            times = await chunk.intent_times(claim.rows)
            assert {each.first for each in times.values()} == {state.imported}
            assert (await chunk.awaited()).since == state.imported.server

            await recovered(ledger, proven=True, confirmed=False)
            assert ledger.unproven is None
            assert await ledger.begin_recovery(by_hand=False) is None
            (tenth,) = (await chunk.claim(1)).rows
            assert (tenth.number, tenth.known.intents) == (10, 1 + LOST_INTENTS)
            assert not tenth.known.was_doubtful
            assert (await ledger.next_generation([retried]))[0].known.generation == 1
            assert await kinds(ledger) == ["import", "plan", "loss", "recover", "recover", "retry"]
            assert (await ledger.check()).findings == ()


async def seen_by_commands(ledger: PostgresLedger) -> None:
    """Each command records an asynchronous standby that has connected since: its commit may be lost."""
    for command in (lambda: ledger.pause("lunch"), ledger.resume, ledger.cancel_rest):
        await tamper(ledger, "UPDATE payments.batches SET standbys = 'synchronous'")
        await command()
        seen = await ledger.database.read(("SELECT standbys FROM payments.batches", ()))
        assert seen == [[(Standbys.ASYNCHRONOUS.value,)]]


async def test_a_lossy_standby_is_accepted_once_and_a_synchronous_one_asks_nothing() -> None:
    with server_pair() as pair:
        async with opened(pair.url(pair.primary.make_database()), rows=1) as ledger:
            await tamper(ledger, "UPDATE payments.batches SET environment = 'live'")
            await ledger.refresh()
            with pytest.raises(LedgerRefused, match=r"a fail-over may lose the last.*--lossy-standby"):
                await ledger.plan(StopRules())
            await ledger.plan(StopRules(), lossy_standby=True)
            await ledger.refresh()
            await ledger.plan(StopRules(max_rows=1))
            await seen_by_commands(ledger)
        pair.primary.query("postgres", "CREATE ROLE plain LOGIN")
        plain = await Database.open(pair.primary.url(user="plain"), SYSTEM)
        url = pair.url(pair.primary.make_database())
        pair.synchronise()
        assert await standbys(plain) is Standbys.ASYNCHRONOUS  # for all that it can see
        await plain.close()
        async with opened(url, rows=20) as ledger:
            assert await standbys(ledger.database) is Standbys.SYNCHRONOUS
            chunk, (lease,) = await leased(ledger.database)
            assert numbers(await chunk.claim(5)) == [1, 2, 3, 4, 5]
            pair.fail_over()
            assert numbers(await chunk.claim(5)) == [6, 7, 8, 9, 10]
            assert (await renew(ledger.database, worker(), [lease])).lost == ()
            await ledger.refresh()
            assert (ledger.hold_reason, ledger.unproven) == (None, None)
            assert await kinds(ledger) == ["import", "plan", "server"]


# What a server shows of itself


async def test_a_restored_dump_is_another_ledger(postgres: PostgresServer, database: str) -> None:
    async with opened(database, rows=5) as ledger:
        chunk, _ = await leased(ledger.database)
        await chunk.claim(2)
        name = restored(postgres, database.rpartition("/")[2])
    async with opened(postgres.url(name)) as ledger:
        assert await grant(ledger.database, worker()) == []
        await ledger.refresh()
        assert ledger.hold_reason == f"suspect: {Loss.RESTORED.value}"
        await recovered(ledger)
        chunk, _ = await leased(ledger.database)
        assert numbers(await chunk.claim(9)) == [3, 4, 5]


@pytest.mark.parametrize("is_in_doubt", [False, True])
async def test_a_refusal_that_comes_home_before_the_recovery_is_not_final_for_a_row_under_way(
    postgres: PostgresServer, database: str, *, is_in_doubt: bool
) -> None:
    async with opened(database, rows=2) as ledger:
        chunk, _ = await leased(ledger.database)
        (row,) = (await chunk.claim(1)).rows
        if is_in_doubt:
            (row,) = await chunk.record([in_doubt(row)])
        name = restored(postgres, database.rpartition("/")[2])
        # lost: it is sent once more, perhaps by more than one worker
        (row,) = (await chunk.resend([Resend(row.number)])).rows
    async with opened(postgres.url(name)) as ledger:
        assert await grant(ledger.database, worker()) == []
        assert await ledger.record([rejected(row)]) == ()
        await recovered(ledger)
        assert await ledger.record([rejected(row)]) == ()
        (settled,) = await ledger.record([created(row)])
        assert settled.state is S.CREATED


async def test_an_outcome_from_before_a_proven_loss_ranks_below_a_new_intent(
    postgres: PostgresServer, database: str
) -> None:
    async with opened(database, rows=1) as ledger:
        chunk, _ = await leased(ledger.database)
        name = restored(postgres, database.rpartition("/")[2])
        (lost,) = (await chunk.claim(1)).rows
    async with opened(postgres.url(name)) as ledger:
        assert await grant(ledger.database, worker()) == []
        await recovered(ledger, proven=True)
        chunk, _ = await leased(ledger.database)
        (row,) = (await chunk.claim(1)).rows
        assert not row.known.was_doubtful
        for late in (rejected(lost), in_doubt(lost)):
            assert await chunk.record([late]) == ()
        (settled,) = await chunk.record([rejected(row)])
        assert settled.state is S.REJECTED


async def test_a_new_timeline_without_a_known_standby_may_lack_commits_of_others(database: str) -> None:
    async with opened(database, rows=9) as ledger:
        chunk, _ = await leased(ledger.database)
        await chunk.claim(2)
        await move(ledger)
        assert await grant(ledger.database, worker()) == []
        with pytest.raises(LeaseLost, match="suspect"):
            await chunk.claim(2)
        await ledger.refresh()
        assert ledger.hold_reason == f"suspect: {Loss.RESTORED_LOG.value}"


async def test_a_renewal_of_a_synchronous_standby_costs_nothing(database: str) -> None:
    async with opened(database, rows=9) as ledger:
        _, (lease,) = await leased(ledger.database)
        await move(ledger, standby=Standbys.SYNCHRONOUS)
        assert (await renew(ledger.database, worker(), [lease])).lost == ()
        assert lease.is_valid()
        assert await kinds(ledger) == ["import", "plan", "server"]


@pytest.mark.parametrize("minutes", [5, -5])
async def test_a_new_primary_with_another_clock_ends_no_lease_early_or_late(
    database: str, minutes: int
) -> None:
    async with opened(database, rows=9) as ledger:
        _, (lease,) = await leased(ledger.database)
        await move(ledger, standby=Standbys.SYNCHRONOUS)
        # for a clock that is ahead, the lease has ended long ago
        seen = "UPDATE payments.chunks SET expires = expires - %s * interval '1 min'"
        await tamper(ledger, seen, minutes)
        assert await grant(ledger.database, worker()) == []
        ends = "SELECT chunk, expires <= clock_timestamp() + %s * interval '1 s' FROM payments.chunks"
        (found,) = await ledger.database.read((f"{ends} WHERE expires > clock_timestamp()", (LEASE,)))
        assert found == [(1, True)]
        assert (await renew(ledger.database, worker(), [lease])).lost == ()


async def test_a_renewal_notices_a_lossy_standby(database: str) -> None:
    async with opened(database, rows=9) as ledger:
        _, (lease,) = await leased(ledger.database)
        await move(ledger, standby=Standbys.ASYNCHRONOUS)
        renewal = await renew(ledger.database, worker(), [lease])
        assert (renewal.lost, list(renewal.hold_reasons.values())) == (
            (lease,),
            [f"suspect: {Loss.STANDBY.value}"],
        )
        assert not lease.is_valid()


@pytest.mark.parametrize("state", ["open", "paused", "imported", "closed"])
async def test_after_the_recovery_a_batch_is_as_it_was_but_never_closed(database: str, state: str) -> None:
    async with opened(database, rows=3) as ledger:
        await tamper(ledger, "UPDATE payments.batches SET state = %s", state)
        await move(ledger, standby=Standbys.ASYNCHRONOUS)
        for _ in range(2):
            await move(ledger, standby=Standbys.ASYNCHRONOUS)
            await ledger.record([])
            await ledger.begin_recovery(by_hand=False)
        await recovered(ledger)
        (((found, losses),),) = await ledger.database.read(("SELECT state, losses FROM payments.batches", ()))
        assert (found, losses) == ("open" if state == "closed" else state, 2)


@pytest.mark.parametrize("state", ["open", "closed", "imported"])
async def test_a_pause_of_a_suspect_batch_holds_after_its_recovery(database: str, state: str) -> None:
    async with opened(database, rows=3) as ledger:
        await tamper(ledger, "UPDATE payments.batches SET state = %s", state)
        await ledger.begin_recovery(by_hand=True)
        await ledger.pause("the till is empty")
        assert ledger.hold_reason == f"suspect: {Loss.BY_HAND.value}"
        await recovered(ledger)
        await ledger.refresh()
        assert ledger.hold_reason == ("not planned yet" if state == "imported" else "paused")
        assert await kinds(ledger) == ["import", "plan", "loss", "pause", "recover"]


async def test_an_older_disk_image_shows_by_the_commits_of_a_worker_that_survived(database: str) -> None:
    async with opened(database, rows=9) as ledger:
        chunk, _ = await leased(ledger.database)
        await chunk.claim(2)
        await tamper(ledger, f"DELETE FROM {entries_of(ledger)} WHERE kind = 'claim'")
        for _ in range(2):  # it is one loss, however often the worker looks
            await ledger.database._drop()
            with pytest.raises(LeaseLost, match=f"suspect: {Loss.COMMITS.value}"):
                await chunk.claim(2)
        assert (await kinds(ledger)).count("loss") == 1


async def test_an_intent_that_was_lost_is_told_from_a_damaged_ledger(database: str) -> None:
    async with opened(database, rows=9) as ledger:
        chunk, (lease,) = await leased(ledger.database)
        claim = await chunk.claim(2)
        await tamper(ledger, f"DELETE FROM {entries_of(ledger)} WHERE kind = 'claim'")
        with pytest.raises(LedgerDamaged, match="the time of an intent cannot be read"):
            await chunk.intent_times(claim.rows)
        await ledger.database._drop()
        with pytest.raises(LeaseLost, match=f"suspect: {Loss.COMMITS.value}"):
            await chunk.intent_times(claim.rows)
        assert not lease.is_valid()


async def test_what_a_server_hides_is_replaced_by_the_time_of_its_start(
    postgres: PostgresServer, database: str
) -> None:
    name = database.rpartition("/")[2]
    postgres.query(name, "REVOKE EXECUTE ON FUNCTION pg_control_system(), pg_current_wal_lsn() FROM PUBLIC")
    ((started,),) = postgres.query(name, "SELECT extract(epoch FROM pg_postmaster_start_time())::text")
    postgres.query(name, f"CREATE ROLE {name} LOGIN")
    postgres.query(
        name, f"ALTER ROLE {name} SET datestyle = 'German'"
    )  # another user's sessions show the same
    try:
        plain = await Database.open(postgres.url(name, user=name), SYSTEM)
        await plain.close()
        assert plain.server.identity == ServerIdentity(None, None, started)
    finally:
        postgres.query(name, f"DROP ROLE {name}")


async def test_a_recovery_ends_only_the_loss_that_it_began_with(database: str) -> None:
    async with opened(database, rows=3) as ledger:
        state = await ledger.begin_recovery(by_hand=True)
        assert state is not None
        assert (state.reason, state.is_suspect) == (Loss.BY_HAND.value, True)
        await move(ledger, standby=Standbys.ASYNCHRONOUS)
        assert await ledger.begin_recovery(by_hand=False) is not None
        with pytest.raises(LedgerUnavailable, match="recover again"):
            await ledger.end_recovery(state, confirmed=True, proven=True)
        await ledger.refresh()
        assert ledger.hold_reason is not None


async def test_new_leases_wait_until_lost_ones_have_ended_also_for_holders_that_know_nothing(
    database: str,
) -> None:
    rows = [*new_rows(1), new_row(501)]
    async with opened(database, rows) as ledger:
        _, (lease,) = await leased(ledger.database)  # the grant of the other chunk is lost
        state = await ledger.begin_recovery(by_hand=True)
        assert state is not None
        await ledger.end_recovery(state, confirmed=True, proven=True)
        for chunk in (lease.chunk, 2):
            assert await grant(ledger.database, worker(), chunk=chunk) == []
        waits = (
            f"SELECT c.chunk FROM payments.chunks c JOIN {entries_of(ledger)} e ON e.kind = 'loss' "
            "WHERE c.lease IS NULL AND c.holder IS NULL "
            f"AND extract(epoch FROM c.expires) >= e.wall + {LEASE} ORDER BY c.chunk"
        )
        assert (await ledger.database.read((waits, ())))[0] == [(0,), (1,), (2,)]
        assert [each.chunks_leased for each in await batches.listed(ledger.database)] == [2]
        await tamper(ledger, OLD_LEASES_END)
        for chunk in (lease.chunk, 2):
            assert await grant(ledger.database, worker(), chunk=chunk)


async def test_a_batch_that_may_have_been_sent_is_not_discarded(database: str) -> None:
    async with opened(database, rows=3) as ledger:
        await ledger.begin_recovery(by_hand=True)
        with pytest.raises(LedgerRefused, match="it is the record of that"):
            await ledger.discard()


async def test_a_batch_whose_commits_may_be_lost_is_neither_discarded_nor_closed_nor_described_anew(
    database: str,
) -> None:
    async with opened(database, rows=3) as ledger:
        await ledger.cancel_rest()
        await move(ledger, standby=Standbys.ASYNCHRONOUS)
        assert not await batches.close(ledger.database, ledger.facts.batch, Clock(), {})
        await ledger.note_extra({(ExtraPayout.IN_EXCESS, "XOF"): (1, Decimal("1.01"))})
        assert ledger.header.extra == {}
        await tamper(ledger, f"UPDATE {table_of('row_states', ledger.facts.batch.batch)} SET state = 'NEW'")
        with pytest.raises(LedgerRefused, match="it is the record of that"):
            await ledger.discard()
        await ledger.refresh()
        assert ledger.hold_reason == f"suspect: {Loss.STANDBY.value}"
