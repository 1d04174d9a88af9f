"""schemathesis against the sandbox, at length: `python -m tests.campaigns.asking [EXAMPLES] [SEED]`."""

from __future__ import annotations

import sys

from tests.fidelity.asking import ask


def run(examples: int = 1000, seed: int = 0) -> int:
    """So many examples for each operation and phase; 0 when nothing was found."""
    ended = ask(examples, seed)
    print(ended.stdout, ended.stderr)
    return ended.returncode


if __name__ == "__main__":
    sys.exit(run(*map(int, sys.argv[1:])))
