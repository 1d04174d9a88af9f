"""Batches on Temporal: a workflow a batch, an activity a chunk, a schedule.

    python temporal_payroll.py worker
    python temporal_payroll.py start june.csv june
    python temporal_payroll.py nightly /in Africa/Accra

`PAYMENTS_API_KEY` and `PAYMENTS_BASE_URL` name the account, `PAYMENTS_LEDGER` the database,
`TEMPORAL_ADDRESS` the server. Temporal's page has the workflow `june` with its rows, its sums, what holds it,
and a link to `PAYROLL_PAGE`; the signals `pause`, `resume`, `cancel_rest` and `confirm` are sent from there.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from temporalio.client import Client
from temporalio.exceptions import WorkflowAlreadyStartedError

from payments_async import AsyncPayments
from payments_async.bulk.engines.temporal import Payroll, PayrollWorkflow, nightly, payroll_worker


async def work(temporal: Client) -> None:
    """Pay until SIGTERM or Ctrl-C, then record what is under way."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    ledger, page = os.environ["PAYMENTS_LEDGER"], os.environ.get("PAYROLL_PAGE")
    async with AsyncPayments() as client, payroll_worker(temporal, ledger, client, page=page):
        await stop.wait()


async def main(command: str = "", *arguments: str) -> str | None:
    """Do what the command says. Returns why that cannot be done, if so."""
    if command not in ("worker", "start", "nightly"):
        return __doc__
    temporal = await Client.connect(os.environ.get("TEMPORAL_ADDRESS", "127.0.0.1:7233"))
    if command == "worker":
        await work(temporal)
    elif command == "start":
        file, batch_id = arguments
        payroll = Payroll(file, batch_id, confirm_from=os.environ.get("PAYROLL_TOTAL"))
        try:
            await temporal.start_workflow(PayrollWorkflow.run, payroll, id=batch_id, task_queue="payroll")
        except WorkflowAlreadyStartedError:
            return f"batch {batch_id} is under way: its workflow runs already"
    else:
        folder, zone = arguments
        schedule = nightly(
            file=f"{folder}/{{date}}.csv",
            batch_id="payroll-{date}",
            confirm_from=f"{folder}/{{date}}.total",
            hour=2,
            zone=zone,
        )
        await temporal.create_schedule("nightly", schedule)
    return None


if __name__ == "__main__":
    problem = asyncio.run(main(*sys.argv[1:]))
    if problem:
        print(problem, file=sys.stderr)
    # While Python tidies up, a thread of the library may abort it: temporalio/sdk-python#300
    os._exit(1 if problem else 0)
