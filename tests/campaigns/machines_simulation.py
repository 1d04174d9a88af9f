"""Many workers over a database that may lose commits: `python -m tests.campaigns.machines_simulation`.

Arguments as of `tests.simulation machines`. Without any a full number of schedules, then the ablation.
"""

from __future__ import annotations

import sys

from .simulation import MODULE, run

if __name__ == "__main__":
    sys.exit(run((*MODULE, "machines"), sys.argv[1:], "100000"))
