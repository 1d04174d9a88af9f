"""Runs `payments demo --machines`: a batch on Temporal, whose workers are killed until it is closed."""

from __future__ import annotations

import asyncio
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import attrs
from temporalio.client import Client

from ... import AsyncPayments
from ..._runtime import SYSTEM
from ...bulk import BatchDatabase, ListedBatch, SharedBatch
from ...bulk._page import BatchPageServer, LedgerSource
from ...bulk._texts.ledger_address import LedgerAddress
from ...bulk.engines.temporal import Payroll, PayrollWorkflow
from ...sandbox import Sandbox
from .._exit_codes import CommandEnded, Exit
from .._output import Show, Terminal
from .machines_report import Judged, Kill, compare, show_figures, show_kill, show_pages, show_plan
from .payout_file import DemoPayout, read_csv, write_csv
from .servers import PostgresServer, ServerGuard, TemporalServer
from .workers import WorkerGroup, worker_group

BATCH: Final = "payroll"
WORKERS: Final = 3
_EVERY: Final = 2.0
"""Seconds between two kills, at least."""
_LOOK: Final = 0.25
"""Seconds between two readings of the batch's figures."""
_ANSWER: Final = "slow:250ms"
"""The service takes so long, so that the payroll outlasts some kills."""
_HEARTBEAT: Final = 15.0
"""Seconds after which Temporal gives up a worker: the shortest that there is, as long as a lease."""
_SEARCHED: Final = (
    "PayrollBatch=Keyword",
    "PayrollRows=Int",
    "PayrollRowsDone=Int",
    "PayrollRowsInDoubt=Int",
    "PayrollHeld=Bool",
)
"""The search attributes that the workflow sets where Temporal has them."""
_PASSWORD_BYTES: Final = 16
_REMOVE: Final = 'for turn in 1 2 3 4 5; do rm -rf "$0" && break; sleep 1; done'
"""Removes the folder, into which servers that are just being killed may still write."""


def run_machines(count: int, seed: int, show: Show) -> Exit:
    """Pay `count` rows while workers are killed; `Exit.REFUSED` when the books do not agree.

    Raises CommandEnded when it cannot be done, and KeyboardInterrupt after Ctrl-C or SIGTERM.
    """
    with (
        _ended_by_sigterm(),
        tempfile.TemporaryDirectory(prefix="payments-demo-") as folder,
        closing(ServerGuard(_REMOVE, folder)),
        Sandbox(seed=seed, scenario="immediate") as sandbox,
        PostgresServer(SYSTEM.token(_PASSWORD_BYTES).hex()) as postgres,
        TemporalServer(Path(folder), *(f"--search-attribute={name}" for name in _SEARCHED)) as temporal,
    ):
        sandbox.on("payouts.create").respond(_ANSWER, times=None)
        file = write_csv(Path(folder) / "payroll.csv", count, seed)
        return asyncio.run(_run(file, sandbox, postgres.url(), temporal, show))


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Context in which SIGTERM does what Ctrl-C does."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except asyncio.CancelledError:  # by the loop's own handler
        raise KeyboardInterrupt from None
    finally:
        signal.signal(signal.SIGTERM, before)


async def _run(file: Path, sandbox: Sandbox, ledger: str, temporal: TemporalServer, show: Show) -> Exit:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    rows, engine = read_csv(file), await _connected(temporal)
    async with _page(ledger) as page, BatchDatabase.open(ledger) as database:
        await database.init()
        async with worker_group(
            WORKERS,
            file.parent,
            temporal=temporal.address,
            ledger=ledger,
            api_key=sandbox.api_key,
            base_url=sandbox.base_url,
            page=page.access.origin,
        ) as group:
            show_plan(file, rows, [process.pid for process in group.processes], show)
            payroll = Payroll(str(file), BATCH, heartbeat_timeout=_HEARTBEAT)
            began = SYSTEM.monotonic()
            run = await engine.start_workflow(PayrollWorkflow.run, payroll, id=BATCH, task_queue="payroll")
            work = _Work(asyncio.ensure_future(run.result()), database, group)
            await work.until_planned()
            shown = f"{temporal.page}/namespaces/default/workflows/{BATCH}"
            show_pages(shown, page.access.address_of("/"), show)
            kills = await work.disturbed(len(rows), show)
            figures = await _judged(rows, kills, SYSTEM.monotonic() - began, sandbox, ledger)
            show_figures(figures, show)
            if isinstance(show, Terminal) and sys.stdout.isatty():
                show.step("Pages", "stay until Ctrl-C", good=None)
                with suppress(asyncio.CancelledError):
                    await asyncio.Event().wait()
    return Exit.REFUSED if figures.problems else Exit.DONE


async def _connected(temporal: TemporalServer) -> Client:
    while True:
        try:
            return await Client.connect(temporal.address)
        except RuntimeError:  # it is still starting
            if not temporal.is_running:
                raise CommandEnded("Temporal's server ended at its start", Exit.REFUSED) from None
            await SYSTEM.sleep(_LOOK)


@asynccontextmanager
async def _page(ledger: str) -> AsyncIterator[BatchPageServer]:
    """Context in which the page of the batch is served."""
    source = LedgerSource(LedgerAddress(ledger, BATCH))
    server = BatchPageServer(source)
    server.start()
    try:
        yield server
    finally:
        await server.close()
        await source.close()


@attrs.frozen
class _Work:
    """The work that is disturbed. Its methods raise CommandEnded when it cannot go on."""

    result: asyncio.Future[dict[str, Any]]
    database: BatchDatabase
    group: WorkerGroup

    async def until_planned(self) -> None:
        """Wait until the batch can be shown."""
        while await self._looked() is None:
            pass

    async def disturbed(self, rows: int, show: Show) -> list[Kill]:
        """Kill a worker, at most every two seconds, until the batch is closed; then wait for the end."""
        kills, due, done = list[Kill](), SYSTEM.monotonic() + _EVERY, 0
        with show.progress("Rows", rows) as advance:
            while (batch := await self._looked()) is not None and batch.state != "closed":
                for _ in range(batch.report.done - done):
                    advance()
                done = batch.report.done
                if SYSTEM.monotonic() >= due and (pair := await self.group.replace_one()):
                    due = SYSTEM.monotonic() + _EVERY
                    kills.append(Kill(*pair, done))
                    show_kill(kills[-1], rows, show)
            for _ in range(rows - done):
                advance()
        while not self.result.done():
            await self._looked()
        return kills

    async def _looked(self) -> ListedBatch | None:
        """The batch as it is a moment later; None before its import."""
        await asyncio.wait([self.result], timeout=_LOOK)
        self.group.require_alive()
        if self.result.done() and (failure := self.result.exception()):
            raise CommandEnded(f"the workflow failed: {failure.__cause__ or failure}", Exit.REFUSED)
        return next(iter(await self.database.batches(BATCH)), None)


async def _judged(
    rows: Sequence[DemoPayout], kills: Sequence[Kill], seconds: float, sandbox: Sandbox, ledger: str
) -> Judged:
    """Compare the file, the ledger and the service's books; read the service's list for a certificate."""
    async with (
        AsyncPayments(sandbox.api_key, base_url=sandbox.base_url) as client,
        SharedBatch.open(ledger, client, batch_id=BATCH) as batch,
    ):
        certificate = await batch.reconcile()
    requests = sum(request.method == "POST" for request in sandbox.requests)
    return compare(rows, certificate, sandbox.books, kills=len(kills), requests=requests, seconds=seconds)
