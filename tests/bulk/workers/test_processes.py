"""Workers in processes of their own: killed, stopped beyond their leases, or told to end."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from payments_async.sandbox import Sandbox, SandboxLimits
from tests.support.fleet import Fleet, books
from tests.support.patience import until
from tests.support.servers import PostgresServer
from tests.support.worker_processes import WorkerProcess, worker_process

pytestmark = [pytest.mark.no_cover, pytest.mark.usefixtures("brief_leases")]  # of other processes


@pytest_asyncio.fixture
async def fleet(database: str) -> AsyncIterator[Fleet]:
    """Workers of a sandbox over a socket, in which a payout takes a twentieth of a second."""
    with Sandbox(limits=SandboxLimits.off()) as sandbox:
        sandbox.on("payouts.create").respond("slow:50ms", times=None)
        async with Fleet(database, sandbox, over_sockets=True) as fleet:
            yield fleet


@pytest.fixture
def process(fleet: Fleet, postgres: PostgresServer, tmp_path: Path) -> Iterator[Any]:
    """Starts a worker process on the planned batch."""
    place = (postgres, fleet.url.rpartition("/")[2], fleet.sandbox, tmp_path, "one")
    with ExitStack() as stack:
        options = {"concurrency": 2, "slots": 1, "until_idle": False}
        yield lambda: stack.enter_context(worker_process(*place, **options))


async def test_the_chunk_of_a_killed_worker_is_taken_up_when_its_lease_has_ended(
    fleet: Fleet, process: Callable[[], WorkerProcess]
) -> None:
    batch, one = await fleet.planned(60), process()
    await until(lambda: len(one.writes) >= 5)
    one.kill()
    assert (await batch.refresh()).counts["under_way"] > 0
    assert (await fleet.run()).exit_code == 0
    assert (await batch.refresh()).counts["created"] == len(books(fleet.sandbox)) == 60
    assert (await batch.reconcile()).is_clean


@pytest.mark.slow
async def test_a_worker_that_was_stopped_beyond_its_lease_sends_nothing_more_under_it(
    fleet: Fleet, process: Callable[[], WorkerProcess]
) -> None:
    batch, one = await fleet.planned(50), process()
    await until(lambda: len(one.writes) >= 5)
    one.freeze()
    before = len(one.writes)
    assert (await fleet.run()).exit_code == 0
    one.thaw()
    one.process.send_signal(signal.SIGTERM)
    code, report = one.end()
    assert (code, report["stopped"], report["unrecorded"]) == (0, "stopped", [])
    assert len(one.writes) == before
    assert (await batch.refresh()).counts["created"] == len(books(fleet.sandbox)) == 50
    assert (await batch.reconcile()).is_clean
