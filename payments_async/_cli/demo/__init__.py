"""`payments demo`: a payment and a thousand payouts against a simulated service, by both clients.

payout_file   the payouts as a CSV file, and the faults that disturb some of them
clients       the work itself, awaited and blocking: examples of both clients
compare       what happened, counted from events and compared with the service's books
output        what it prints
"""

from __future__ import annotations

import os
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from .._output import JsonLinesFlag, show_for

Payouts = Annotated[int, Parameter(validator=Number(gte=1, lte=100_000))]
Seed = Annotated[int, Parameter(validator=Number(gte=0, lte=1_000_000))]


def demo(*, payouts: Payouts = 1000, seed: Seed = 0, json: JsonLinesFlag = False) -> int:
    """Collect a payment and send 1,000 payouts on this machine alone, and check the books.

    Starts a simulated service, has a payer pay a checkout, sends a CSV file of payouts past faults that
    would make a careless client pay twice, and compares the result with the service's own books. Then it
    does the same with the blocking client. The exit code is 1 when the books do not agree.

    Parameters
    ----------
    payouts
        How many payouts each client sends.
    seed
        Other amounts, and other payouts disturbed.
    """
    for name in [name for name in os.environ if name.startswith(("PAYMENTS_", "PG"))]:
        del os.environ[name]  # what the person has set is for the real service, database and guard
    show = show_for(as_json=json)
    from .clients import run_demo  # imports the client and the sandbox

    return run_demo(payouts, seed, show)
