"""The real client, engine and ledger on a simulated computer: `python -m tests.campaigns.code_simulation`.

Arguments as of `tests.simulation code`. Without any as many schedules as a campaign has, then the ablation.
"""

from __future__ import annotations

import sys

from .simulation import MODULE, run

if __name__ == "__main__":
    sys.exit(run((*MODULE, "code"), sys.argv[1:], "2000"))
