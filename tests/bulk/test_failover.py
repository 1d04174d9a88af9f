"""A database that lost commits: noticed before the next intent, no row paid twice, no verdict false."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from payments_async.bulk import RowState, SharedBatch
from payments_async.bulk._ledger import chunks
from payments_async.bulk._ledger.postgresql.session import DatabaseClock
from payments_async.bulk._protocol import machines
from payments_async.bulk._protocol.machines import PROOF_AFTER, Loss
from payments_async.bulk.ledger_errors import LedgerRefused
from payments_async.bulk.workers import WorkerReport, _worker, work
from payments_async.sandbox import Sandbox
from tests.bulk.reconcile.test_recover import post
from tests.bulk.reconcile.test_retry_failed import fails
from tests.support.batches import in_process, items, ledger_rows, runtime_of
from tests.support.databases import expire_leases
from tests.support.failover import restored, server_pair
from tests.support.fleet import books
from tests.support.servers import PostgresServer

S = RowState
Lose = Callable[[], str]
"""Loses what was committed since it was made ready. Returns the address of what is left."""


@contextmanager
def a_standby(request: pytest.FixtureRequest) -> Iterator[tuple[str, Callable[[], Lose]]]:
    """A database, and how a fail-over to a standby that lacks commits is made ready."""
    with server_pair() as pair:
        url = pair.url(pair.primary.make_database())

        def lose() -> str:
            pair.fail_over()
            return url

        def ready() -> Lose:
            pair.part()
            return lose

        yield url, ready


@contextmanager
def a_dump(request: pytest.FixtureRequest) -> Iterator[tuple[str, Callable[[], Lose]]]:
    """A database, and how a dump of it is restored."""
    server: PostgresServer = request.getfixturevalue("postgres")
    name = server.make_database()

    def ready() -> Lose:
        copy = restored(server, name)
        return lambda: server.url(copy)

    yield server.url(name), ready


def jump_along(monkeypatch: pytest.MonkeyPatch, runtime: Any) -> None:
    """Let the database's clock jump with a client's, under leases that last as long as that takes."""
    locked = chunks.LockedChunks.of

    def of(found: Any) -> chunks.LockedChunks:
        return locked(found)._replace(wall=runtime.now().timestamp())

    monkeypatch.setattr(chunks.LockedChunks, "of", of)
    monkeypatch.setattr(DatabaseClock, "note", lambda *_: None)
    for owner, name, seconds in (
        (machines, "LEASE", 900.0),
        (machines, "RENEW_EVERY", 300.0),
        (_worker, "POLL", 600.0),
        (_worker, "AGAIN", 600.0),
    ):
        monkeypatch.setattr(owner, name, seconds)


async def paid(url: str, client: Any) -> WorkerReport:
    """Let a worker pay what may be paid."""
    return await work(url, client, until_idle=True, slots=1, patience=4 * PROOF_AFTER)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lossy", "loss"), [(a_standby, Loss.STANDBY), (a_dump, Loss.RESTORED)], ids=["standby", "dump"]
)
async def test_intents_outcomes_a_cancellation_and_a_retry_are_lost_and_nothing_goes_wrong(
    request: pytest.FixtureRequest, service: Sandbox, lossy: Any, loss: Loss
) -> None:
    fails(service, 3)

    def pass_by(seconds: float) -> None:
        runtime_of(client).advance(seconds)
        service.advance(seconds)

    with lossy(request) as (url, ready):
        async with in_process(service) as client:
            async with SharedBatch.open(url, client, batch_id="june") as batch:
                await batch.load(items(30))
                await batch.plan(max_rows=10)
                await paid(url, client)
                pass_by(60.0)
                assert (await batch.follow(60.0)).counts["failed"] == 1
                lose = ready()
                # all that follows is lost: payouts, the retry of row 3, the cancellation of row 30
                await batch.plan(max_rows=20)
                await paid(url, client)
                assert (await batch.retry_failed()).rows == (3,)
                assert (await batch.load(items(29), accept_edits=True)).cancelled == 1
                await batch.plan(max_rows=21)
                await paid(url, client)
                known = books(service)
            url = lose()
            async with SharedBatch.open(url, client, batch_id="june") as batch:
                service.on("payouts.create", description="row 25").respond("http:422", times=None)
                assert (await paid(url, client)).rows == 0
                assert books(service) == known
                assert (await batch.refresh()).stopped == f"suspect: {loss.value}"

                report = await batch.recover()
                assert (report.settled, report.retried, report.findings) == (11, (3,), ())
                assert [command.kind for command in report.commands] == ["import", "plan"]
                assert (report.is_suspect, report.wait) == (True, PROOF_AFTER)
                with pytest.raises(LedgerRefused, match="commits were lost"):
                    await batch.load(items(29), accept_edits=True)
                pass_by(report.wait)
                assert (await batch.recover()).wait == 0.0
                assert (await paid(url, client)).rows == 0
                assert (await batch.load(items(29), accept_edits=True)).cancelled == 1
                assert (await batch.recover(commands_complete=True)).is_over

                expire_leases(url)
                await batch.plan()
                await paid(url, client)
                counts = (await batch.refresh()).counts
                assert [counts[word] for word in ("created", "rejected", "cancelled")] == [28, 1, 1]
                pass_by(60.0)
                assert (await batch.reconcile()).is_clean
    assert len(books(service)) == len({*books(service)}) == 29


@pytest.mark.slow
async def test_a_refusal_is_final_only_once_no_lost_request_can_succeed(
    service: Sandbox, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = postgres.make_database()
    async with in_process(service) as client:
        jump_along(monkeypatch, runtime_of(client))
        async with SharedBatch.open(postgres.url(name), client, batch_id="june") as batch:
            await batch.load(items(4))
            await batch.plan()
            rows = await ledger_rows(batch)
        url: Any = postgres.url(restored(postgres, name))
        async with SharedBatch.open(url, client, batch_id="june") as batch:
            assert (await paid(url, client)).rows == 0
            report = await batch.recover(commands_complete=True)
            assert (report.is_suspect, report.is_over) == (False, False)
            expire_leases(url)
            for number in (1, 2):
                service.on("payouts.create", description=f"row {number}").respond("http:422", times=2)

            async def lost_request() -> None:
                await runtime_of(client).sleep(600.0)
                service.clear_rules()
                await post(client, rows[0])
                service.on("payouts.create", description="row 2").respond("http:422", times=None)

            began = runtime_of(client).monotonic()
            late = asyncio.ensure_future(lost_request())
            await paid(url, client)
            await late
            assert [row.state for row in await ledger_rows(batch)] == [
                S.CREATED,
                S.REJECTED,
                S.CREATED,
                S.CREATED,
            ]
            assert runtime_of(client).monotonic() - began >= PROOF_AFTER
            certificate = await batch.reconcile()
            assert [finding for finding in certificate.findings if "commits were lost" in finding]
            assert (await batch.recover()).is_over
            assert (await batch.reconcile()).is_clean
