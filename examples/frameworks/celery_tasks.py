"""Payouts as Celery tasks. A task that comes twice, or whose worker dies, pays once.

    celery --app celery_tasks worker --concurrency 2

`examples/engines/celery` pays a whole file: for more than a few payouts, use that.
"""

from __future__ import annotations

import os
from typing import Any

from celery import Celery, Task
from celery.signals import worker_process_init

from payments_sync import DuplicateReference, Instrument, OutcomeUnknown, Payments, PaymentsError

app = Celery("payouts", broker=os.environ["CELERY_BROKER_URL"], backend=os.environ["CELERY_BROKER_URL"])
app.conf.update(task_acks_late=True, task_reject_on_worker_lost=True, worker_prefetch_multiplier=1)
client = Payments()


@worker_process_init.connect
def warm_up(**_: Any) -> None:
    """In each process of the pool, after the fork."""
    client.warm_up(deadline=10)


class PayoutFailed(Exception):
    """A payout that was not made, as three texts: what a JSON result backend keeps of an exception."""

    def __init__(self, kind: str, effect: str, message: str) -> None:
        super().__init__(kind, effect, message)
        self.kind, self.effect, self.message = kind, effect, message


@app.task(bind=True, max_retries=None)
def pay(task: Task[..., Any], reference: str, amount: str, phone: str) -> dict[str, str | None]:
    """Pay one person. The idempotency key is the task's own, so that its repetition is the same request."""
    try:
        prepared = client.payouts.prepare(
            amount=amount,
            currency="GHS",
            method="mobile_money",
            instrument=Instrument.phone(phone, "GH"),
            reference=reference,
            idempotency_key=f"payout-{reference}",
        )
        try:
            payout = client.send(prepared)
        except DuplicateReference:  # the task comes again a day later, when the key is forgotten
            payout = client.resolve(prepared)
    except OutcomeUnknown as error:
        raise task.retry(countdown=60, exc=PayoutFailed("OutcomeUnknown", error.effect, str(error))) from None
    except PaymentsError as error:
        raise PayoutFailed(type(error).__name__, error.effect, str(error)) from None
    return {"id": payout.id, "status": payout.status}
