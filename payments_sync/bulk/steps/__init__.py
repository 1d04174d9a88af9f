# From payments_async/bulk/steps/__init__.py; change that, then run: python -m tools.mirror
"""The steps of paying a batch in a database, for the scheduler or workflow engine that you already run.

    with Steps("postgresql://…", client) as steps:
        plan = steps.plan("june.csv", batch_id="june", confirm_total={"GHS": "1200.50"})
        for chunk in range(1, plan.chunks + 1):  # in any order, in any processes, any number of times
            end = steps.pay("june", chunk)
        end = steps.settle("june")
        end = steps.close("june")

`end.next` says what follows: `Done`, `Now`, `Wait`, `Held` or `Never`. The ledger alone decides who
may send which rows, and what is done.
"""

from __future__ import annotations

from payments_async.bulk.steps import BatchPlan as BatchPlan
from payments_async.bulk.steps import Done as Done
from payments_async.bulk.steps import FailureCause as FailureCause
from payments_async.bulk.steps import Held as Held
from payments_async.bulk.steps import HoldReason as HoldReason
from payments_async.bulk.steps import Never as Never
from payments_async.bulk.steps import Next as Next
from payments_async.bulk.steps import Now as Now
from payments_async.bulk.steps import OnProgress as OnProgress
from payments_async.bulk.steps import StepEnd as StepEnd
from payments_async.bulk.steps import StepFailed as StepFailed
from payments_async.bulk.steps import StopSignal as StopSignal
from payments_async.bulk.steps import Wait as Wait

from ._steps import Steps as Steps

__all__ = [
    "BatchPlan",
    "Done",
    "FailureCause",
    "Held",
    "HoldReason",
    "Never",
    "Next",
    "Now",
    "OnProgress",
    "StepEnd",
    "StepFailed",
    "Steps",
    "StopSignal",
    "Wait",
]
