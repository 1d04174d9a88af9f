"""Two DAGs: a file that is named when the DAG is triggered, and a file every night.

    airflow dags trigger payroll --conf '{"file": "/in/june.csv", "batch_id": "june"}'

`PAYMENTS_API_KEY` and `PAYMENTS_BASE_URL` name the account, `PAYMENTS_LEDGER` the database, in the workers'
environment. Where `PAYROLL_FOLDER` is set as well, `FOLDER/2026-06-30.csv` is paid at two in the morning.
"""

from __future__ import annotations

import os
from datetime import datetime
from zoneinfo import ZoneInfo

from airflow.sdk import DAG

from payments_async.bulk.engines.airflow import payroll_tasks

FOLDER = os.environ.get("PAYROLL_FOLDER")
SCHEDULE = os.environ.get("PAYROLL_SCHEDULE", "0 2 * * *")
ZONE = os.environ.get("PAYROLL_ZONE", "Africa/Accra")


def ledger() -> str:
    """The database's address: asked for in the process of a task, so that no page shows it."""
    return os.environ["PAYMENTS_LEDGER"]


with DAG("payroll", schedule=None, params={"file": "", "batch_id": "", "total": ""}):
    payroll_tasks(
        ledger,
        file="{{ params.file }}",
        batch_id="{{ params.batch_id }}",
        confirm_from="{{ params.total }}",
        tasks=int(os.environ.get("PAYROLL_TASKS", "500")),
        drain=float(os.environ.get("PAYROLL_DRAIN", "4")),
    )

if FOLDER:
    start = datetime(2026, 6, 1, tzinfo=ZoneInfo(ZONE))
    with DAG("nightly", schedule=SCHEDULE, start_date=start, catchup=False):
        payroll_tasks(
            ledger,
            file=f"{FOLDER}/{{date}}.csv",
            batch_id="payroll-{date}",
            confirm_from=f"{FOLDER}/{{date}}.total",
            zone=ZONE,
        )
