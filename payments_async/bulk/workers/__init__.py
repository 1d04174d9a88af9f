"""Workers: processes, on any number of machines, that pay the batches of one database together.

    worker = PayoutWorker("postgresql://…", client)
    loop.add_signal_handler(signal.SIGTERM, worker.stop)
    report = await worker.run()

A worker holds leases of chunks of rows. Leases keep workers apart; what makes a second payment impossible is
each payout's `reference`. A scheduler of your own calls the steps instead (`bulk.steps`).
"""

from __future__ import annotations

from ._payout_worker import PayoutWorker as PayoutWorker
from ._payout_worker import work as work
from ._reports import WorkerProgress as WorkerProgress
from ._reports import WorkerReport as WorkerReport

__all__ = ["PayoutWorker", "WorkerProgress", "WorkerReport", "work"]
