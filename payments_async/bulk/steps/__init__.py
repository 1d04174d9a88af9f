"""The steps of paying a batch in a database, for the scheduler or workflow engine that you already run.

    async with Steps("postgresql://…", client) as steps:
        plan = await steps.plan("june.csv", batch_id="june", confirm_total={"GHS": "1200.50"})
        for chunk in range(1, plan.chunks + 1):  # in any order, in any processes, any number of times
            end = await steps.pay("june", chunk)
        end = await steps.settle("june")
        end = await steps.close("june")

`end.next` says what follows: `Done`, `Now`, `Wait`, `Held` or `Never`. The ledger alone decides who
may send which rows, and what is done.
"""

from __future__ import annotations

from .._leasing.step_call import OnProgress as OnProgress
from .._leasing.step_call import StopSignal as StopSignal
from .._leasing.step_ends import BatchPlan as BatchPlan
from .._leasing.step_ends import Done as Done
from .._leasing.step_ends import FailureCause as FailureCause
from .._leasing.step_ends import Held as Held
from .._leasing.step_ends import HoldReason as HoldReason
from .._leasing.step_ends import Never as Never
from .._leasing.step_ends import Next as Next
from .._leasing.step_ends import Now as Now
from .._leasing.step_ends import StepEnd as StepEnd
from .._leasing.step_ends import StepFailed as StepFailed
from .._leasing.step_ends import Wait as Wait
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
