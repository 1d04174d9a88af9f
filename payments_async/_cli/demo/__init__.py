"""`payments demo`: a payment and a thousand payouts against a simulated service, by both clients.

payout_file   the payouts as a CSV file, and the faults that disturb some of them
clients       the work itself, awaited and blocking: examples of both clients
compare       what happened, counted from events and compared with the service's books
output        what it prints

With `--machines`, a batch on Temporal whose workers are killed:

machines         the work
workers          worker processes: the program of one, and killing them
servers          PostgreSQL and Temporal, from wheels
machines_report  file, ledger and books compared, and what it prints
"""

from __future__ import annotations

import os
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from .._output import Flag, JsonLinesFlag, show_for

Payouts = Annotated[int | None, Parameter(validator=Number(gte=1, lte=100_000))]
Seed = Annotated[int, Parameter(validator=Number(gte=0, lte=1_000_000))]


def demo(
    *, payouts: Payouts = None, seed: Seed = 0, machines: Flag = False, json: JsonLinesFlag = False
) -> int:
    """Collect a payment and send 1,000 payouts on this machine alone, and check the books.

    Starts a simulated service, has a payer pay a checkout, sends a CSV file of payouts past faults that
    would make a careless client pay twice, and compares the result with the service's own books. Then it
    does the same with the blocking client. The exit code is 1 when the books do not agree.

    With `--machines`, three workers pay a batch on Temporal, with its ledger in PostgreSQL. At most every two
    seconds, once all are at work, one of them is killed. It prints the addresses of Temporal's page and of
    the batch's page.

    Parameters
    ----------
    payouts
        How many payouts each client sends: 1,000, and with `--machines` 3,000 in all.
    seed
        Other amounts, and other payouts disturbed.
    machines
        Kill workers on Temporal. Needs its server and PostgreSQL's from two packages, which it names.
    """
    for name in [name for name in os.environ if name.startswith(("PAYMENTS_", "PG"))]:
        del os.environ[name]  # what the person has set is for the real service, database and guard
    show = show_for(as_json=json)
    if machines:
        from .servers import require_servers

        require_servers()
        from .machines import run_machines  # imports Temporal

        return run_machines(3000 if payouts is None else payouts, seed, show)
    from .clients import run_demo  # imports the client and the sandbox

    return run_demo(1000 if payouts is None else payouts, seed, show)
