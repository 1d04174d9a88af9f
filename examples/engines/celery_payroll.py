"""A payroll on Celery: a task takes turns at a batch. Start a worker on as many hosts as you like."""

import os
from datetime import timedelta
from typing import Any

from celery import Celery, Task
from celery.beat import BeatLazyFunc
from celery.schedules import crontab

from payments_sync import Payments
from payments_sync.bulk import PayoutBatch

LEDGER, HOUR, MINUTE, WIDTH = os.environ["PAYMENTS_LEDGER"], 2, 0, 2
app = Celery("payroll", broker=os.environ["CELERY_BROKER_URL"])


def night() -> str:
    """The batch for which beat is due, however late beat and workers come."""
    return f"payroll-{(app.now() - timedelta(hours=HOUR, minutes=MINUTE)).date()}"


@app.task(name="pay", bind=True, max_retries=None, autoretry_for=(Exception,), default_retry_delay=60)
def pay(task: Task[..., Any], batch_id: str) -> dict[str, Any]:
    """Pay for 20 seconds: how long a worker takes to end. Each call begins one more lane of turns."""
    with Payments() as client, PayoutBatch.open(LEDGER, client, batch_id=batch_id) as batch:
        batch.load(f"{os.environ['PAYROLL_FILES']}/{batch_id}.csv")  # once; then it does nothing
        report = batch.run(for_seconds=20)
    if report.next is not None:
        raise task.retry(countdown=report.next)
    return report.facts()


app.conf.update(
    timezone="Africa/Accra",
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,
    broker_transport_options={"visibility_timeout": 900},
    beat_schedule={
        f"nightly-{lane}": {
            "task": "pay",
            "schedule": crontab(minute=MINUTE, hour=HOUR),
            "args": [BeatLazyFunc(night)],
        }
        for lane in range(WIDTH)
    },
)
