"""Batches on Temporal: a workflow a batch, an activity a chunk. Extra `temporal`.

    async with payroll_worker(temporal, "postgresql://…", client, task_queue="payroll"):
        payroll = Payroll("june.csv", batch_id="june", confirm_total={"GHS": "1200.50"})
        await temporal.start_workflow(PayrollWorkflow.run, payroll, id="june", task_queue="payroll")

A worker may be killed, and an activity or a workflow run twice: the ledger decides who may send.
"""

from __future__ import annotations

from ...._extras import needs

try:
    from temporalio import workflow
except ImportError as _missing:
    raise ImportError(needs("batches on Temporal need", "temporal")) from _missing

with workflow.unsafe.imports_passed_through():  # what is no workflow is not loaded again for each of them
    from ._payroll import Payroll as Payroll
    from ._worker import payroll_worker as payroll_worker
from ._workflow import PayrollWorkflow as PayrollWorkflow
from ._workflow import nightly as nightly

__all__ = ["Payroll", "PayrollWorkflow", "nightly", "payroll_worker"]
