"""Batches on Procrastinate: jobs in PostgreSQL, one for each chunk, and a batch every night.

    python procrastinate_payroll.py tables
    python procrastinate_payroll.py worker
    python procrastinate_payroll.py start june.csv june

`PAYMENTS_API_KEY` and `PAYMENTS_BASE_URL` name the account, `PAYMENTS_LEDGER` the database, which has the
jobs as well. With `PAYROLL_FOLDER` a worker plans `FOLDER/2026-06-30.csv` at `PAYROLL_AT` in `PAYROLL_ZONE`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys

from procrastinate import App, PsycopgConnector

from payments_async import AsyncPayments
from payments_async.bulk.engines.procrastinate import Nightly, payroll, start

LEDGER = os.environ["PAYMENTS_LEDGER"]


def nights() -> list[Nightly]:
    """What is paid every night."""
    folder = os.environ.get("PAYROLL_FOLDER")
    hour, minute = os.environ.get("PAYROLL_AT", "02:00").split(":")
    night = Nightly(
        file=f"{folder}/{{date}}.csv",
        batch_id="payroll-{date}",
        confirm_from=f"{folder}/{{date}}.total",
        hour=int(hour),
        minute=int(minute),
        zone=os.environ.get("PAYROLL_ZONE", "Africa/Accra"),
    )
    return [night] if folder else []


async def main(command: str, *arguments: str) -> None:
    """Do what the command says."""
    # a night that no worker saw is made up for within twelve hours; Procrastinate's own figure is ten minutes
    app = App(connector=PsycopgConnector(conninfo=LEDGER), periodic_defaults={"max_delay": 12 * 3600})
    async with AsyncPayments() as client, app.open_async():
        if command == "tables":
            await app.schema_manager.apply_schema_async()
        elif command == "worker":
            app.add_tasks_from(payroll(LEDGER, client, nightly=nights()), namespace="payroll")
            await app.run_worker_async(concurrency=3)
        elif command == "start":
            file, batch_id = arguments
            await start(app, file, batch_id=batch_id, confirm_from=os.environ.get("PAYROLL_TOTAL"))
        else:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    asyncio.run(main(*sys.argv[1:]))
