"""Transactions: repeated when that helps, finished when their caller is gone, and errors without content."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import attrs
import psycopg
import pytest

from payments_async._runtime import SYSTEM, SystemRuntime
from payments_async.bulk._ledger.ledger import Edits
from payments_async.bulk._ledger.postgresql import commits, session
from payments_async.bulk._ledger.postgresql.database import Database, Transaction
from payments_async.bulk._ledger.postgresql.failover import ServerChanged
from payments_async.bulk._ledger.postgresql.forgetting import forget
from payments_async.bulk._ledger.postgresql.ledger import PostgresLedger
from payments_async.bulk._protocol.outcomes import Outcome
from payments_async.bulk._protocol.records import NewRow
from payments_async.bulk._protocol.row_state import RowState
from payments_async.bulk.ledger_errors import (
    DatabaseUnfit,
    LedgerBroken,
    LedgerClosed,
    LedgerDamaged,
    LedgerError,
    LedgerFull,
    LedgerRefused,
    LedgerUnavailable,
    RightsMissing,
)
from tests.support.databases import (
    batch,
    connected,
    fail,
    held_commits,
    leased,
    lose_answer,
    paid,
    run,
    waits_for_lock,
)
from tests.support.ledgers import BINDING, Clock, new_row, numbers
from tests.support.patience import until
from tests.support.servers import CutProxy, PostgresServer

SECRET = "account-data-CANARY"


class Skipping(SystemRuntime):
    """The machine's time, in which a pause takes none."""

    def __init__(self) -> None:
        super().__init__()
        self.skipped, now = 0.0, self.monotonic
        self.monotonic = lambda: now() + self.skipped

    async def sleep(self, seconds: float) -> None:
        self.skipped += seconds


@contextlib.contextmanager
def impatient(database: Database) -> Iterator[None]:
    """Wait a tenth of a second for an answer, and try for four of them: nothing answers meanwhile."""
    usual = database._answer, database.patience
    database._answer, database.patience = 0.1, 0.4
    try:
        yield
    finally:
        database._answer, database.patience = usual


async def nothing_committed(transaction: Transaction) -> bool:
    """Never asked."""
    raise AssertionError


@pytest.mark.parametrize("code", ["40001", "40P01", "55P03", "57014", "57P01", "25006", "53200", "08006"])
async def test_a_failure_that_may_pass_is_repeated(database: str, code: str) -> None:
    async with batch(database) as ledger:
        chunks, _ = await leased(ledger.database)
        fail(database, code, times=2)
        claim = await chunks.claim(3)
        assert numbers(claim) == [1, 2, 3]
        assert (await ledger.check()).findings == ()
    assert run(database, "SELECT last_value FROM public.faults") == [(3,)]


@pytest.mark.parametrize("second", [1, 2, 3])
async def test_a_statement_that_the_driver_takes_for_prepared_and_the_server_does_not_know(
    database: str, second: int
) -> None:
    """psycopg notes it when it is queued, at its sixth use; its transaction may fail before that is done."""
    async with batch(database, 10) as ledger:
        chunks, _ = await leased(ledger.database)
        claimed = list[int]()
        for attempt in range(8):
            if attempt in (0, second):
                fail(database, "40P01")
            claimed += numbers(await chunks.claim(1))
        assert claimed == [*range(1, 9)]
        assert (await ledger.check()).findings == ()


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("53100", LedgerFull),
        ("42501", RightsMissing),
        ("42P01", LedgerDamaged),
        ("XX001", LedgerDamaged),
        ("58030", LedgerBroken),
        ("P0001", LedgerBroken),
        ("22021", LedgerRefused),
        ("23505", LedgerRefused),
    ],
)
async def test_other_failures_are_raised_in_our_words_alone(
    database: str, code: str, error: type[LedgerError]
) -> None:
    async with batch(database) as ledger:
        chunks, _ = await leased(ledger.database)
        fail(database, code, secret=SECRET)
        with pytest.raises(error) as caught:
            await chunks.claim(3)
        assert SECRET not in f"{caught.value!s} {caught.value!r} {vars(caught.value)}"
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
        assert numbers(await chunks.claim(3)) == [1, 2, 3]


async def test_a_failure_that_does_not_pass_is_raised_after_a_while(database: str) -> None:
    async with batch(database, runtime=Skipping()) as ledger:
        chunks, _ = await leased(ledger.database)
        fail(database, "40001", times=1000)
        with pytest.raises(LedgerUnavailable, match=r"takes too long, or its work was broken off \(40001\)"):
            await chunks.claim(3)


async def test_a_store_that_is_another_each_time_is_given_up(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def judged(*_: object) -> None:
        """Find nothing lost."""

    async def changed() -> None:
        raise ServerChanged

    monkeypatch.setattr(commits, "judge", judged)
    async with batch(database, patience=0.0) as ledger:
        with pytest.raises(LedgerUnavailable, match="lost again and again"):
            await ledger._committer.judged(changed)


async def test_a_lost_connection_is_made_again(database: str) -> None:
    async with batch(database) as ledger:
        run(database, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        assert len(await ledger.numbered([1, 2])) == 2
        assert ledger.database.connections == 2


async def test_a_server_that_is_restarted_is_waited_for(database: str, postgres: PostgresServer) -> None:
    async with batch(database) as ledger:
        postgres.stop()
        reading = asyncio.ensure_future(ledger.numbered([1, 2]))
        await asyncio.sleep(0)
        postgres.start()
        assert len(await reading) == 2


async def answered(opened: Database) -> None:
    assert await opened.read(("SELECT 1", ())) == [[(1,)]]


async def refused(opened: Database) -> None:
    async def work(transaction: Transaction) -> None:
        await transaction.read(("SELECT 1", ()))
        raise KeyError("ours")

    with pytest.raises(KeyError):
        await opened.commit(work)


async def done_once(opened: Database) -> None:
    async def work(transaction: Transaction) -> None:
        await transaction.read(("SELECT 1", ()))

    await opened.once(work, nothing_committed, may_repeat=bool)


@pytest.mark.parametrize("again", [answered, refused, done_once])
async def test_a_lost_database_is_tried_for_a_minute_whatever_is_asked_of_it(
    database: str, postgres: PostgresServer, again: Callable[[Database], Awaitable[None]]
) -> None:
    runtime = Skipping()
    async with connected(database, runtime) as opened:
        for outage in (1, 2):
            postgres.stop()
            try:
                for _ in range(3):
                    with pytest.raises(LedgerUnavailable):
                        await opened.read(("SELECT 1", ()))
            finally:
                postgres.start()
            assert 50.0 < runtime.skipped / outage <= 60.0
            await again(opened)


async def test_a_session_that_does_not_answer_is_cut_and_its_work_repeated(database: str) -> None:
    async with batch(database) as ledger:
        chunks, _ = await leased(ledger.database)
        with psycopg.connect(database) as other, impatient(ledger.database):
            other.execute("SELECT FROM payments.chunks FOR UPDATE")
            with pytest.raises(LedgerUnavailable, match="no answer"):
                await chunks.claim(3)
        assert numbers(await chunks.claim(3)) == [1, 2, 3]


async def test_a_rollback_that_is_not_answered_is_cut(database: str) -> None:
    stopped: list[int] = []

    async def work(transaction: Transaction) -> None:
        ((process,),), *_ = await transaction.read(("SELECT pg_backend_pid()", ()))
        stopped.append(process)
        os.kill(process, signal.SIGSTOP)
        waiting.enter_context(impatient(opened))
        raise psycopg.errors.DivisionByZero

    async with connected(database) as opened:
        with contextlib.ExitStack() as waiting:
            try:
                with pytest.raises(LedgerError):
                    await opened.commit(work)
            finally:
                os.kill(stopped[0], signal.SIGCONT)
        assert await opened.read(("SELECT 1", ())) == [[(1,)]]


@pytest.mark.parametrize("is_committed", [True, False])
async def test_a_commit_without_an_answer_takes_place_once(
    database: str, postgres: PostgresServer, is_committed: bool
) -> None:
    with CutProxy(postgres.address) as proxy:
        url = database.replace(f":{postgres.port}/", f":{proxy.port}/")
        async with batch(url) as ledger:
            chunks, _ = await leased(ledger.database)
            with held_commits(database) as other:
                claiming = asyncio.ensure_future(chunks.claim(3))
                claim = await lose_answer(claiming, other, proxy, is_committed=is_committed)
            assert numbers(claim) == [1, 2, 3]
            assert [row.known.intents for row in claim.rows] == [1, 1, 1]
            assert (await ledger.check()).findings == ()
            entries = run(database, "SELECT kind FROM payments.entries WHERE chunk = 1 ORDER BY number")
            assert entries == [("import",), ("lease",), ("claim",)]
            await chunks.record([paid(row) for row in claim.rows])


async def test_a_commit_is_finished_when_its_caller_is_cancelled(database: str) -> None:
    async with batch(database) as ledger:
        chunks, _ = await leased(ledger.database)
        with held_commits(database) as other:
            claiming = asyncio.ensure_future(chunks.claim(3))
            await waits_for_lock(other)
            claiming.cancel()
            with pytest.raises(asyncio.CancelledError):
                await claiming
            other.execute("SELECT pg_advisory_unlock(7)")
            await ledger.refresh()
            assert ledger.totals[Outcome.UNDER_WAY, "XOF"][0] == 3


async def test_a_suspended_process_loses_its_transaction_and_the_locks(
    database: str, postgres: PostgresServer
) -> None:
    idle = "SELECT pid FROM pg_stat_activity WHERE state = 'idle in transaction'"
    name, backends = urlsplit(database).path[1:], set[int]()

    async with connected(database) as opened:

        async def work(transaction: Transaction) -> None:
            brief = ("SET LOCAL idle_in_transaction_session_timeout = '100ms'", ())
            _, ((backend,),) = await transaction.read(brief, ("SELECT pg_backend_pid()", ()))
            backends.add(backend)
            if len(backends) == 1:
                await until(lambda: not postgres.query(name, f"{idle} AND pid = {backend}"))
            await transaction.read(("SELECT", ()))

        await opened.commit(work)
    assert len(backends) == 2


async def test_an_edit_is_rolled_back_when_its_caller_is_cancelled(database: str) -> None:
    async with connected(database) as opened:
        begun = asyncio.Event()

        async def work(transaction: Transaction) -> None:
            await transaction.read(("CREATE TABLE public.made (number int)", ()))
            begun.set()
            await transaction.read(("SELECT pg_sleep(50)", ()))

        working = asyncio.ensure_future(opened.once(work, nothing_committed, may_repeat=bool))
        await begun.wait()
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
        assert await opened.read(("SELECT to_regclass('public.made')", ())) == [[(None,)]]


@pytest.mark.parametrize("times", [1, 2])
async def test_an_edit_that_is_cancelled_at_its_commit_may_have_taken_place(
    database: str, times: int
) -> None:
    async with batch(database) as ledger:
        with held_commits(database) as other:
            editing = asyncio.ensure_future(ledger.edit(lambda edits: edits.cancel([2])))
            await waits_for_lock(other)
            for _ in range(times):
                editing.cancel()
                for _ in range(10):
                    await asyncio.sleep(0)
                assert not editing.done()
            other.execute("SELECT pg_advisory_unlock(7)")
            with pytest.raises(asyncio.CancelledError):
                await editing
        assert (await ledger.numbered([2]))[2].state is RowState.CANCELLED


async def cancelled(ledger: PostgresLedger) -> None:
    """Cancel a row."""
    await ledger.edit(lambda edits: edits.cancel([2]))


async def another(ledger: PostgresLedger) -> None:
    """Import another batch."""
    binding = attrs.evolve(BINDING, batch_id="batch-2", input_hash="input-2")
    made = await PostgresLedger.open(ledger.database, "batch-2", clock=Clock(), must_exist=False)

    async def rows() -> AsyncIterator[NewRow]:
        yield new_row(1)

    await made.import_rows(binding, rows())


async def forgotten(ledger: PostgresLedger) -> None:
    """Forget the batch."""
    done = await forget(ledger.database, ledger.facts.batch, unsettled=True, dry_run=False)
    assert done.kept is None


WORK = {"edit": cancelled, "discard": PostgresLedger.discard, "import": another, "forget": forgotten}
CLOSED = "UPDATE payments.batches SET state = 'closed', closed = '{\"at\": 1}'"


@pytest.mark.parametrize("is_committed", [True, False])
@pytest.mark.parametrize(
    ("work", "event", "done"),
    [
        ("edit", ("entries", "INSERT"), (1, RowState.CANCELLED)),
        ("discard", ("batches", "DELETE"), (0, None)),
        ("import", ("chunks", "INSERT"), (2, RowState.NEW)),
        ("forget", ("forgotten_references", "INSERT"), (1, None)),
    ],
)
async def test_work_without_an_answer_to_its_commit_is_not_repeated(
    database: str,
    postgres: PostgresServer,
    work: str,
    event: tuple[str, str],
    done: tuple[int, RowState | None],
    is_committed: bool,
) -> None:
    with CutProxy(postgres.address) as proxy:
        async with batch(database.replace(f":{postgres.port}/", f":{proxy.port}/")) as ledger:
            run(database, CLOSED)
            with held_commits(database, *event) as other:
                working = asyncio.ensure_future(WORK[work](ledger))
                refused = pytest.raises(
                    LedgerUnavailable, match="connection was lost, and nothing was changed"
                )
                with contextlib.nullcontext() if is_committed else refused:
                    await lose_answer(working, other, proxy, is_committed=is_committed)
            batches, state = done if is_committed else (1, RowState.NEW)
            assert run(database, "SELECT count(*) FROM payments.batches") == [(batches,)]
            if state is not None:
                assert (await ledger.numbered([2]))[2].state is state


@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
async def test_what_is_broken_off_before_it_reads_a_row_is_repeated(
    database: str, work: Callable[[PostgresLedger], Awaitable[Any]]
) -> None:
    async with batch(database) as ledger:
        run(database, CLOSED)
        with psycopg.connect(database) as other:
            other.execute("LOCK TABLE payments.batches, payments.chunks IN EXCLUSIVE MODE")
            working = asyncio.ensure_future(work(ledger))
            session = await waits_for_lock(other)
            attempt = "SELECT xact_start FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Lock'"
            first = run(database, (attempt, (session,)))
            other.execute("SELECT pg_cancel_backend(%s)", (session,))
            while not working.done() and run(database, (attempt, (session,))) in ([], first):  # noqa: ASYNC110 - a server's
                await asyncio.sleep(0.005)
        await working


async def test_an_edit_whose_connection_is_lost_before_its_commit_is_not_repeated(database: str) -> None:
    async with batch(database) as ledger:
        fail(database, "57P01")

        async def work(edits: Edits) -> None:
            await edits.cancel([2])
            await edits.by_keys(["row-1"])

        with pytest.raises(LedgerUnavailable, match="57P01"):
            await ledger.edit(work)
        assert (await ledger.numbered([2]))[2].state is RowState.NEW


async def test_what_the_work_raises_leaves_nothing_behind(database: str) -> None:
    async with connected(database) as opened:

        async def work(transaction: Transaction) -> None:
            await transaction.read(("CREATE TABLE public.made (number int)", ()))
            raise KeyError("ours")

        async def early(transaction: Transaction) -> None:
            raise KeyError("before anything was sent")

        for each in (work, early):
            with pytest.raises(KeyError):
                await opened.commit(each)
        assert await opened.read(("SELECT to_regclass('public.made')", ())) == [[(None,)]]


async def test_a_connection_lost_while_rolling_back_is_made_again(database: str) -> None:
    async with connected(database) as opened:

        async def work(transaction: Transaction) -> None:
            ((pid,),), *_ = await transaction.read(("SELECT pg_backend_pid()", ()))
            run(database, ("SELECT pg_terminate_backend(%s, 10000)", (pid,)))
            raise KeyError("ours")

        with pytest.raises(KeyError):
            await opened.commit(work)
        assert await opened.read(("SELECT 1", ())) == [[(1,)]]


async def test_no_time_limit_ends_a_commit(database: str) -> None:
    """It would end the wait for a standby, and look like success."""
    run(
        database,
        "CREATE TABLE public.seen (setting text)",
        "CREATE FUNCTION public.note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "INSERT INTO public.seen VALUES (current_setting('statement_timeout')); RETURN NULL; END $$",
        "CREATE TABLE public.made (number int)",
        "CREATE CONSTRAINT TRIGGER noted AFTER INSERT ON public.made DEFERRABLE INITIALLY DEFERRED "
        "FOR EACH ROW EXECUTE FUNCTION public.note()",
    )
    async with connected(database) as opened:

        async def work(transaction: Transaction) -> None:
            transaction.write(("INSERT INTO public.made VALUES (1)", ()))

        await opened.commit(work)
        assert await opened.read(("SHOW statement_timeout", ())) == [[("30s",)]]
    assert run(database, "SELECT * FROM public.seen") == [("0",)]


async def test_commits_wait_for_the_disk_even_where_the_database_does_not(database: str) -> None:
    name = urlsplit(database).path.removeprefix("/")
    run(database, f'ALTER DATABASE "{name}" SET synchronous_commit = off')
    async with connected(database) as opened:
        assert await opened.read(("SHOW synchronous_commit", ())) == [[("on",)]]


async def test_a_session_says_who_it_is_and_keeps_utc(database: str) -> None:
    async with connected(database) as opened:
        names = ("application_name", "timezone", "search_path", "idle_in_transaction_session_timeout")
        found = await opened.read(*((f"SHOW {name}", ()) for name in names))
        assert [value for ((value,),) in found] == ["payments-sdk", "UTC", "pg_catalog", "30s"]


async def test_nothing_is_done_once_it_is_closed(database: str) -> None:
    async with connected(database) as opened:
        await opened.close()
        await opened.close()
        with pytest.raises(LedgerClosed):
            await opened.read(("SELECT 1", ()))
        with pytest.raises(LedgerClosed):
            await opened.once(Any, nothing_committed, may_repeat=bool)


async def test_a_standby_in_the_primarys_place_is_waited_out(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with connected(database, runtime=Skipping()) as opened:
        pretended = session._STATE.replace("pg_is_in_recovery()", "true")
        monkeypatch.setattr(session, "_STATE", pretended)
        run(database, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        with pytest.raises(LedgerUnavailable, match="a standby"):
            await opened.read(("SELECT 1", ()))
        with pytest.raises(DatabaseUnfit, match="it is a standby"):
            await Database.open(database, SYSTEM)


async def test_a_session_that_cannot_be_set_up_is_closed(database: str) -> None:
    setting = "pg_catalog.set_config(text, text, boolean)"
    run(database, "CREATE ROLE stranger LOGIN", f"REVOKE EXECUTE ON FUNCTION {setting} FROM PUBLIC")
    try:
        with pytest.raises(RightsMissing):
            await Database.open(database.replace("postgres:", "stranger:"), SYSTEM)
    finally:
        run(database, "DROP ROLE stranger")
