"""Batches on Celery: plan a file once, and let the Celery workers that you have pay it.

    celery --app payroll worker --concurrency 4
    python payroll.py june.csv june

`PAYMENTS_API_KEY` and `PAYMENTS_BASE_URL` name the account, `PAYMENTS_LEDGER` the database,
`CELERY_BROKER_URL` the broker. A task carries the names of the batch and its file, and a chunk's number: no
account, no amount of a row.
"""

from __future__ import annotations

import os
import sys

from celery import Celery

from payments_async.bulk.engines.celery import Payroll

app = Celery("payroll", broker=os.environ.get("CELERY_BROKER_URL"))
app.conf.broker_transport_options = {"visibility_timeout": float(os.environ.get("PAYROLL_VISIBILITY", "900"))}
payroll = Payroll(
    app,
    os.environ["PAYMENTS_LEDGER"],
    time_limit=float(os.environ.get("PAYROLL_TIME_LIMIT", "300")),
    drain=float(os.environ.get("PAYROLL_DRAIN", "30")),
)

if __name__ == "__main__":
    file, batch_id = sys.argv[1:]
    payroll.start(file, batch_id=batch_id, confirm_from=os.environ.get("PAYROLL_TOTAL"))
