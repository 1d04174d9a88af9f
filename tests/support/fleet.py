"""Workers of one database: a batch that is planned for them, clients, and what the database holds of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any, Final, Self

import psycopg

from payments_async import AsyncPayments
from payments_async.bulk import SharedBatch
from payments_async.bulk._leasing import worker_session
from payments_async.bulk._ledger import importing
from payments_async.bulk._protocol import machines
from payments_async.bulk.ledger_errors import LedgerFull
from payments_async.bulk.steps import StepEnd, Steps
from payments_async.bulk.workers import PayoutWorker, WorkerReport, _batch_run, _worker
from payments_async.sandbox import Sandbox
from payments_async.testing import IN_PROCESS, InProcessTransport
from tests.support.batches import Item, items
from tests.support.servers import of_batches

BRIEF: Final = ((machines, "LEASE", 1.6), (machines, "MARGIN", 0.4), (worker_session, "RENEWAL_ANSWER", 0.8))
"""Leases that end while a test waits; on a machine with other work they may end at any time."""
BRISK: Final = (
    (machines, "RENEW_EVERY", 0.3),
    (importing, "BLOCK", 50),
    (_worker, "POLL", 0.05),
    (_worker, "AGAIN", 0.05),
)
"""Small chunks, and workers that ask often."""
UNHURRIED: Final = (
    *((machines, "LEASE", 300.0), (machines, "RENEW_EVERY", 90.0)),
    *((_worker, "POLL", 30.0), (_worker, "AGAIN", 30.0), (_batch_run, "_FIGURES_EVERY", 60.0)),
)
"""Workers that ask the database seldom: each answer takes real time, and a jumping clock waits for it."""
Setting = Callable[[Any, str, object], object]


def shorten(setattr: Setting, patches: Sequence[tuple[Any, str, object]] = (*BRIEF, *BRISK)) -> None:
    """Make leases short, chunks small, and workers impatient."""
    for owner, name, value in patches:
        setattr(owner, name, value)


class Fleet:
    """Batches in a database, and workers in this process that pay them."""

    def __init__(self, url: str, sandbox: Sandbox, *, over_sockets: bool = False) -> None:
        """`over_sockets`: the sandbox serves, so that processes can use it."""
        self.url, self.sandbox, self._over_sockets = url, sandbox, over_sockets
        self._stack = AsyncExitStack()
        self._tasks: list[asyncio.Task[WorkerReport]] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._stack.aclose()

    async def client(self, **options: Any) -> AsyncPayments:
        """A client of the sandbox."""
        defaults: dict[str, Any] = {"base_url": IN_PROCESS, "transport": InProcessTransport(self.sandbox)}
        if self._over_sockets:
            defaults = {"base_url": self.sandbox.base_url}
        client = AsyncPayments(**{"api_key": self.sandbox.api_key, **defaults, **options})
        return await self._stack.enter_async_context(client)

    async def opened(self, batch_id: str) -> SharedBatch:
        """An open batch."""
        batch = SharedBatch.open(self.url, await self.client(), batch_id=batch_id)
        return await self._stack.enter_async_context(batch)

    async def loaded(self, rows: int | Sequence[Item], batch_id: str = "june") -> SharedBatch:
        """An open batch that is not planned yet."""
        batch = await self.opened(batch_id)
        await batch.load(items(rows) if isinstance(rows, int) else rows)
        return batch

    async def planned(self, rows: int | Sequence[Item], batch_id: str = "june", **rules: Any) -> SharedBatch:
        """An open batch that workers may begin on."""
        batch = await self.loaded(rows, batch_id)
        await batch.plan(**rules)
        return batch

    async def worker(self, **options: Any) -> PayoutWorker:
        """A worker that ends when nothing is left to do."""
        settings = {"until_idle": True, "concurrency": 16, "patience": 60.0, **options}
        url, client = settings.pop("url", self.url), settings.pop("client", None) or await self.client()
        return PayoutWorker(url, client, **settings)

    def started(self, worker: PayoutWorker) -> asyncio.Task[WorkerReport]:
        """A worker that runs until it ends, or the test does."""
        task = asyncio.ensure_future(worker.run())
        self._tasks.append(task)
        return task

    async def run(self, **options: Any) -> WorkerReport:
        """A worker's report, when nothing is left to do."""
        return await (await self.worker(**options)).run()

    async def steps(self, **options: Any) -> Steps:
        """Steps of a scheduler's process."""
        settings = {"concurrency": 16, "patience": 60.0, **options}
        client = settings.pop("client", None) or await self.client()
        return await self._stack.enter_async_context(Steps(self.url, client, **settings))

    async def pay(self, chunk: int, batch_id: str = "june", **options: Any) -> StepEnd:
        """How a chunk's step ended in a process of its own."""
        async with await self.steps() as steps:
            return await steps.pay(batch_id, chunk, **options)

    def query(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """What a statement finds in the database."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            statement = of_batches(connection, statement)
            cursor = connection.execute(statement, values or None)  # type: ignore[call-overload] # psycopg wants literals
            return list(cursor) if cursor.description else []

    @property
    def held(self) -> set[int]:
        """The chunks that are leased now."""
        return {
            chunk
            for (chunk,) in self.query(
                "SELECT chunk FROM payments.chunks WHERE lease IS NOT NULL AND expires > clock_timestamp()"
            )
        }

    def entries(self, kind: str) -> list[tuple[Any, ...]]:
        """(chunk, number, session, changes) of the entries of a kind, in order."""
        return self.query(
            "SELECT chunk, number, session, changes FROM payments.entries WHERE kind = %s "
            "ORDER BY wall, chunk, number",
            kind,
        )


async def ended(task: asyncio.Task[Any]) -> None:
    """Cut a worker off."""
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def disk_is_full(ledger: Any, _: object) -> Any:
    """In the place of `record`: nothing is recorded."""
    raise LedgerFull(ledger.path, "the database's disk is full")


def posts(sandbox: Sandbox) -> int:
    """How many creations have arrived."""
    return sum(request.operation == "payouts.create" for request in sandbox.requests)


def lists(sandbox: Sandbox) -> int:
    """How many pages of the list were read."""
    return sum(request.operation == "payouts.list" for request in sandbox.requests)


def books(sandbox: Sandbox) -> list[str]:
    """The references in the service's books: one of each payout."""
    return sorted(str(entry.reference) for entry in sandbox.books.payouts())
