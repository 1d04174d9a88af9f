"""`payments demo`: a payment and a thousand payouts against a simulated service, compared with its books.

payouts     a CSV file, the faults that disturb some of its rows, and what the service's books say of them
client      the work itself: an example of a client
processes   a batch that several processes pay, while they are killed
"""

from __future__ import annotations

import os
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from .._output import JsonLinesFlag, show_for

Payouts = Annotated[int | None, Parameter(validator=Number(gte=1, lte=100_000))]
Seed = Annotated[int, Parameter(validator=Number(gte=0, lte=1_000_000))]
Processes = Annotated[int | None, Parameter(validator=Number(gte=2, lte=16))]


def demo(
    *, payouts: Payouts = None, seed: Seed = 0, processes: Processes = None, json: JsonLinesFlag = False
) -> int:
    """Collect a payment and send 1,000 payouts on this machine alone, and check the books.

    Starts a simulated service, has a payer pay a checkout, sends a CSV file of payouts past faults that
    would make a careless client pay twice, and compares the result with the service's own books. The exit
    code is 1 when the books do not agree.

    Parameters
    ----------
    payouts
        How many payouts: 1,000, or 10,000 for several processes, unless given.
    seed
        Other amounts, and other payouts disturbed.
    processes
        So many processes pay the file as one batch instead, and every two seconds one of them is killed.
    """
    for name in [name for name in os.environ if name.startswith(("PAYMENTS_", "PG"))]:
        del os.environ[name]  # what the person has set is for the real service, database and guard
    show = show_for(as_json=json)
    if processes is not None:
        from .processes import run_processes

        return run_processes(payouts or 10_000, seed, processes, show)
    from .client import run_demo  # imports the client and the sandbox

    return run_demo(payouts or 1_000, seed, show)
