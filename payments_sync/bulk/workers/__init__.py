# From payments_async/bulk/workers/__init__.py; change that, then run: python -m tools.mirror
"""Workers: processes, on any number of machines, that pay the batches of one database together.

    worker = PayoutWorker("postgresql://…", client)
    signal.signal(signal.SIGTERM, lambda *_: worker.stop())
    report = worker.run()

A worker holds leases of chunks of rows. Leases keep workers apart; what makes a second payment impossible is
each payout's `reference`. A scheduler of your own calls the steps instead (`bulk.steps`).
"""

from __future__ import annotations

from payments_async.bulk.workers import WorkerProgress as WorkerProgress
from payments_async.bulk.workers import WorkerReport as WorkerReport

from ._payout_worker import PayoutWorker as PayoutWorker
from ._payout_worker import work as work

__all__ = ["PayoutWorker", "WorkerProgress", "WorkerReport", "work"]
