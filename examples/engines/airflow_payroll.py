"""A payroll on Airflow: tasks take turns at the batch of a night, or of `--conf '{"batch_id": "june"}'`."""

import asyncio
import os
import signal
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from airflow.sdk import DAG, task, timezone
from airflow.sdk.exceptions import AirflowRescheduleException

from payments_async import AsyncPayments
from payments_async.bulk import BatchReport, PayoutBatch

WIDTH, ZONE = 2, "Africa/Accra"
NAME = f"{{{{ params.batch_id or 'payroll-' ~ logical_date.in_timezone('{ZONE}').date() }}}}"


async def turn(batch_id: str) -> BatchReport:
    """Pay for two minutes. Airflow kills a task that has not ended five seconds after SIGTERM."""
    ledger, file = os.environ["PAYMENTS_LEDGER"], f"{os.environ['PAYROLL_FILES']}/{batch_id}.csv"
    async with AsyncPayments() as client, PayoutBatch.open(ledger, client, batch_id=batch_id) as batch:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, batch.stop)
        await batch.load(file)  # once; then it does nothing
        return await batch.run(for_seconds=120, drain=4)


def pay(batch_id: str) -> dict[str, Any]:
    """Take a turn, and come again when the batch says so. Nothing but the batch's name is stored."""
    report = asyncio.run(turn(batch_id))
    if report.next is not None:
        raise AirflowRescheduleException(timezone.utcnow() + timedelta(seconds=report.next))
    return report.facts()


with DAG(
    "payroll",
    schedule="0 2 * * *",
    start_date=datetime(2026, 6, 1, tzinfo=ZoneInfo(ZONE)),
    catchup=False,
    params={"batch_id": ""},
):
    for lane in range(1, WIDTH + 1):
        task(task_id=f"pay_{lane}", retries=100, retry_delay=timedelta(seconds=15))(pay)(NAME)
