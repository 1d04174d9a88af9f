"""Chunks of a batch as Celery tasks: plan a file once, and let the Celery workers that you have pay it.

    celery --app payroll worker --concurrency 4
    python payroll.py june.csv june

`PAYMENTS_API_KEY` and `PAYMENTS_BASE_URL` name the account, `PAYMENTS_LEDGER` the database,
`CELERY_BROKER_URL` the broker. A task carries the batch and a chunk, and nothing else: no account, no amount.

Celery may run a task twice, late or never. The ledger decides what is done: a task that comes twice finds
another one's lease and tries again later, and `close` waits until no row is left.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import NoReturn

from celery import Celery, Task

from payments_async import AsyncPayments
from payments_async.bulk.steps import Done, Never, Next, StepEnd, StepFailed, Steps, Wait

LEDGER = os.environ.get("PAYMENTS_LEDGER", "")
AGAIN = 20.0
"""Seconds until a step that a person holds is asked for again."""

app = Celery("payroll", broker=os.environ.get("CELERY_BROKER_URL"))
app.conf.update(task_acks_late=True, task_reject_on_worker_lost=True, worker_prefetch_multiplier=1)


@asynccontextmanager
async def opened() -> AsyncIterator[Steps]:
    """Steps with a client that shares the key's limits with all others of this ledger."""
    async with AsyncPayments(limit_store=LEDGER) as client, Steps(LEDGER, client) as steps:
        yield steps


@app.task(bind=True, max_retries=None)
def pay_chunk(task: Task[..., None], batch_id: str, chunk: int) -> None:
    """Pay what can be paid of one chunk now. It can be called at any time, and any number of times."""

    async def pay() -> Next:
        async with opened() as steps:
            return await answered(steps.pay(batch_id, chunk))

    if (following := asyncio.run(pay())) != Done():
        again(task, following)


@app.task(bind=True, max_retries=None)
def close(task: Task[..., None], batch_id: str) -> None:
    """Finish a batch: rows of lost tasks, rows in doubt, the comparison with the service's list."""

    async def finish() -> Next:
        async with opened() as steps:
            settled = await answered(steps.settle(batch_id))
            return settled if settled != Done() else await answered(steps.close(batch_id))

    if (following := asyncio.run(finish())) != Done():
        again(task, following)


async def answered(step: Coroutine[None, None, StepEnd]) -> Next:
    """What follows a step, also one that has failed."""
    try:
        return (await step).next
    except StepFailed as failure:
        return failure.next


def again(task: Task[..., None], following: Next) -> NoReturn:
    """Queue the task again, unless it can never succeed."""
    if isinstance(following, Never):
        raise SystemExit(following.reason)
    raise task.retry(countdown=following.seconds if isinstance(following, Wait) else AGAIN)


async def plan(file: str, batch_id: str) -> int:
    """Load a file, and let workers begin. Returns the number of chunks."""
    async with opened() as steps:
        planned = await steps.plan(file, batch_id=batch_id)
    print(planned.rows, "rows,", dict(planned.sums))
    return planned.chunks


def main(file: str, batch_id: str) -> None:
    """Plan a batch and make its tasks."""
    for chunk in range(1, asyncio.run(plan(file, batch_id)) + 1):
        pay_chunk.delay(batch_id, chunk)
    close.delay(batch_id)


if __name__ == "__main__":
    main(*sys.argv[1:])
