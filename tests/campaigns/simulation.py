"""The simulations at full size: `python -m tests.campaigns.simulation [code | machines] [ARGUMENTS]`.

Arguments as of `tests.simulation`. Without any as many schedules as a full campaign has, then the ablation.
"""

from __future__ import annotations

import subprocess
import sys

FULL = {"": "100000", "code": "2000", "machines": "100000"}
"""{kind of worlds: schedules of a full campaign}."""


def run(arguments: list[str]) -> int:
    """The schedules that were asked for; unless something was, the full number, and the ablation after it."""
    kind = [name for name in arguments[:1] if name in FULL]
    asked = arguments[len(kind) :]
    rounds = [asked] if asked else [[FULL["".join(kind)]], ["--ablate"]]
    command = [sys.executable, "-m", "tests.simulation", *kind]
    return max(abs(subprocess.run([*command, *each]).returncode) for each in rounds)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
