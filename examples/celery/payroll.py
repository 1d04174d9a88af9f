"""Chunks of a batch as Celery tasks: plan a file once, and let the Celery workers that you have pay it.

    celery --app payroll worker --concurrency 4
    python payroll.py june.csv june

`PAYMENTS_API_KEY` and `PAYMENTS_BASE_URL` name the account, `PAYMENTS_LEDGER` the database,
`CELERY_BROKER_URL` the broker. A task carries the batch and a chunk, and nothing else: no account, no amount.

Celery may run a task twice, late or never. The ledger decides what is done: a task that comes twice finds
another one's lease and tries again later, and a lost task is made good by the worker in `close`.
"""

from __future__ import annotations

import asyncio
import os
import sys

from celery import Celery, Task

from payments_async import AsyncPayments
from payments_async.bulk import SharedBatch
from payments_async.bulk.workers import RunEnd, WorkerReport, run_chunk, work

LEDGER = os.environ.get("PAYMENTS_LEDGER", "")
AGAIN = 20
"""Seconds until a chunk is tried again: longer than a lease."""

app = Celery("payroll", broker=os.environ.get("CELERY_BROKER_URL"))
app.conf.update(task_acks_late=True, task_reject_on_worker_lost=True, worker_prefetch_multiplier=1)


def client() -> AsyncPayments:
    """A client that shares the key's limits with all others of this ledger."""
    return AsyncPayments(limit_store=LEDGER)


@app.task(bind=True, max_retries=None)
def pay_chunk(task: Task[..., None], batch_id: str, chunk: int) -> None:
    """Pay what can be paid of one chunk now. It can be called at any time, and any number of times."""

    async def pay() -> RunEnd:
        async with client() as payments:
            return (await run_chunk(LEDGER, payments, batch_id, chunk)).end

    if asyncio.run(pay()) is not RunEnd.DONE:
        raise task.retry(countdown=AGAIN)


@app.task
def close(batch_id: str) -> int:
    """Finish a batch: rows of lost tasks, rows in doubt, the comparison with the service's list."""

    async def finish() -> WorkerReport:
        async with client() as payments:
            return await work(LEDGER, payments, batch_id=batch_id, until_idle=True)

    return asyncio.run(finish()).exit_code


async def plan(file: str, batch_id: str) -> int:
    """Load a file, and let workers begin. Returns the number of chunks."""
    async with AsyncPayments() as payments, SharedBatch.open(LEDGER, payments, batch_id=batch_id) as batch:
        loaded = await batch.load(file)
        print(loaded.rows, "rows,", dict(loaded.totals))
        await batch.plan()
        return batch.chunks()


def main(file: str, batch_id: str) -> None:
    """Plan a batch and make its tasks."""
    for chunk in range(1, asyncio.run(plan(file, batch_id)) + 1):
        pay_chunk.delay(batch_id, chunk)
    close.delay(batch_id)


if __name__ == "__main__":
    main(*sys.argv[1:])
