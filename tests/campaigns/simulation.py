"""The protocol against a hostile model service: `python -m tests.campaigns.simulation [SCHEDULES]`.

Arguments as of `tests.simulation`. Without any as many schedules as a full campaign has, then the ablation.
"""

from __future__ import annotations

import subprocess
import sys

MODULE = ("tests.simulation",)


def run(module: tuple[str, ...], arguments: list[str], full: str) -> int:
    """The schedules that were asked for; unless something was, the full number, and the ablation after it."""
    rounds = [arguments] if arguments else [[full], ["--ablate"]]
    codes = [subprocess.run([sys.executable, "-m", *module, *asked]).returncode for asked in rounds]
    return max(map(abs, codes))


if __name__ == "__main__":
    sys.exit(run(MODULE, sys.argv[1:], "100000"))
