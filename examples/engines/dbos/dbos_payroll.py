"""A batch on DBOS: a workflow of the batch, one of each chunk, and the steps of `payments_async.bulk.steps`.

    python dbos_payroll.py worker one                # an executor, which needs an id of its own
    python dbos_payroll.py start /in/june.csv june

`PAYMENTS_API_KEY` and `PAYMENTS_BASE_URL` name the account, `PAYMENTS_LEDGER` the database, which has the
workflows as well.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from dbos import DBOS, DBOSClient

from payments_async import AsyncPayments
from payments_async.bulk.steps import StepEnd, StepFailed, Steps

LEDGER = os.environ["PAYMENTS_LEDGER"]
HELD = 60.0
"""Seconds after which a held batch is asked again whether a person has acted."""
steps: Steps


@DBOS.step()
async def call(name: str, *arguments: Any) -> dict[str, Any]:
    """Call a step. DBOS stores what it returns, which names no account, and calls it again after a crash."""
    try:
        if name == "plan":
            file, batch_id, total = arguments
            return (await steps.plan(file, batch_id=batch_id, confirm_from=total)).facts()
        end: StepEnd = await getattr(steps, name)(*arguments)
        return end.facts()
    except StepFailed as failure:
        seconds = getattr(failure.next, "seconds", 0.0)
        return {"next": type(failure.next).__name__.lower(), "seconds": seconds, "reason": failure.reason}


async def done(name: str, *arguments: Any) -> dict[str, Any]:
    """Call a step until it is done; `plan`, until the chunks may be paid."""
    while True:
        facts = await call(name, *arguments)
        following = facts["next"]
        if following == "never":
            raise RuntimeError(facts["reason"])
        if following == "done" or (name == "plan" and following == "now"):
            return facts
        await DBOS.sleep_async(HELD if following == "held" else facts.get("seconds", 0.0))


@DBOS.workflow()
async def pay_chunk(batch_id: str, chunk: int) -> None:
    """Pay a chunk."""
    await done("pay", batch_id, chunk)


@DBOS.workflow()
async def payroll(file: str, batch_id: str, total: str | None) -> dict[str, Any]:
    """Pay a file, and close its batch."""
    plan = await done("plan", file, batch_id, total)
    numbers = range(1, plan["chunks"] + 1)
    chunks = [await DBOS.enqueue_workflow_async("chunks", pay_chunk, batch_id, number) for number in numbers]
    for chunk in chunks:
        await chunk.get_result()
    await done("settle", batch_id)
    return await done("close", batch_id)


async def work(executor: str) -> None:
    """Run workflows: two chunks at a time. An executor that is started again goes on with its own."""
    global steps
    async with AsyncPayments() as client, Steps(LEDGER, client) as steps:
        DBOS(
            config={
                "name": "payroll",
                "system_database_url": LEDGER,
                "executor_id": executor,
                "application_version": "1",  # else it is made from the program's text
            }
        )
        DBOS.launch()
        await DBOS.register_queue_async("payrolls")
        await DBOS.register_queue_async("chunks", worker_concurrency=2)
        await asyncio.Event().wait()


def start(file: str, batch_id: str) -> None:
    """Ask for a batch to be paid. A batch has one workflow, however often this is called."""
    asked = {"queue_name": "payrolls", "workflow_name": "payroll", "workflow_id": f"payroll-{batch_id}"}
    client = DBOSClient(system_database_url=LEDGER)
    client.enqueue(asked, file, batch_id, os.environ.get("PAYROLL_TOTAL"))  # type: ignore[arg-type]
    client.destroy()


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    if command == "worker":
        asyncio.run(work(*arguments))
    else:
        start(*arguments)
