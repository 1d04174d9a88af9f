"""One start of the program: a real client, a real batch, on clocks of its own."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import attrs

from payments_async import AsyncPayments, PayoutRequest
from payments_async._http.types import Transport
from payments_async._runtime import Timer
from payments_async.bulk import BatchReport, PayoutBatch
from payments_async.bulk.errors import BulkError
from payments_async.errors import PaymentsError

from ..loop import SimulatedLoop
from ..service import EPOCH
from ..worker import BATCH

Item = tuple[str, PayoutRequest]


class ProcessRuntime:
    """A process's time and chance. Its wall clock may be wrong, and jump."""

    def __init__(self, loop: SimulatedLoop, seed: object, wrong: float) -> None:
        chance = random.Random(f"{seed}:client")
        self.random, self.token = chance.random, chance.randbytes
        self._loop, self._began = loop, loop.time()
        self.wrong = wrong

    def monotonic(self) -> float:
        """Seconds, from 1000 on; rounded, so that the wait for a whole second reaches it."""
        return round(1000.0 + self._loop.time() - self._began, 6)

    def boottime(self) -> float:
        """The same: nothing is suspended here."""
        return self.monotonic()

    def now(self) -> datetime:
        """What this machine takes for the time."""
        return datetime.fromtimestamp(EPOCH + self._loop.time() + self.wrong, UTC)

    async def sleep(self, seconds: float) -> None:
        """On the simulated loop."""
        await asyncio.sleep(seconds)

    def call_later(self, delay: float, callback: Callable[[], object], *, background: bool = False) -> Timer:
        """On the simulated loop."""
        return self._loop.call_later(delay, callback)


@attrs.frozen(kw_only=True)
class Orders:
    """How a process is started."""

    path: str
    key: str
    base_url: str
    items: Sequence[Item]
    accepts_edits: bool
    """Whether it takes over what was edited in the input; else it does not read it a second time."""
    retries: bool
    """Whether it first asks for new payouts in place of failed ones."""
    insists: bool
    """Whether it first asks for refused rows again."""
    reconciles: bool
    """Whether it lastly learns from the list."""
    wait_final: float | None
    proofs: bool
    concurrency: int
    patience: float
    drain: float
    max_rows: int | None
    certify: bool


@attrs.define(eq=False)
class Process:
    """Runs once."""

    host: str
    orders: Orders
    transport: Transport
    runtime: ProcessRuntime
    note: Callable[[str], None]
    trace: Callable[[str], None]
    report: BatchReport | None = None
    error: Exception | None = None
    """Why there is no report, if it ended."""
    doubts: tuple[str, ...] = ()
    """What a certificate found wrong."""
    _batch: PayoutBatch | None = None

    async def run(self) -> None:
        """From start to end."""
        orders = self.orders
        client = AsyncPayments(
            orders.key, base_url=orders.base_url, transport=self.transport, runtime=self.runtime
        )
        try:
            async with PayoutBatch.open(orders.path, client) as batch:
                self._batch = batch
                await self._work(batch)
        except (PaymentsError, BulkError) as error:
            self.error = error
            self.note(f"ended: {type(error).__name__}")

    async def _work(self, batch: PayoutBatch) -> None:
        orders = self.orders
        if orders.accepts_edits or batch._session.ledger.is_empty:
            edits = orders.accepts_edits
            await batch.load(orders.items, batch_id=BATCH, proofs=orders.proofs, accept_edits=edits)
        if orders.retries:
            await self._retry(batch)
        if orders.insists and (await batch.retry_failed(rejected=True)).rows:
            self.note("rejected rows asked for again")
        report = await batch.run(
            concurrency=orders.concurrency,
            patience=orders.patience,
            drain=orders.drain,
            max_rows=orders.max_rows,
            wait_final=orders.wait_final,
        )
        self.report = report
        self.note(f"exit {report.exit_code}")
        if report.stopped:
            self.trace(f"stopped: {report.stopped}")
        if orders.reconciles:
            self.doubts = (await batch.reconcile()).check.findings
            self.note("reconciled")
        if orders.certify:
            await self._certify(batch)

    async def _retry(self, batch: PayoutBatch) -> None:
        try:
            retried = await batch.retry_failed()
        except PaymentsError:
            self.note("nothing retried: the list cannot be read")
        else:
            self.note("retried after final failure" if retried.rows else "nothing to retry")

    async def _certify(self, batch: PayoutBatch) -> None:
        certificate = await batch.reconcile()
        missing = [f"{certificate.audit.missing} missing"] if certificate.audit.missing else []
        self.doubts = (*certificate.check.findings, *missing)

    def stop(self, why: str) -> None:
        """As SIGTERM does."""
        if self._batch is not None:
            self._batch.stop(why)
