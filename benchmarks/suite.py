"""What every suite has: NAME, QUESTION and `run`; and how one is run alone."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Protocol

from benchmarks.figures import Figure, table
from benchmarks.peers import MISSING, Peers


class Suite(Protocol):
    """A module of `benchmarks`."""

    NAME: str
    """One word, as in `--only`."""
    QUESTION: str
    """What the figures answer, one or two sentences."""

    def run(self, peers: Peers, *, quick: bool) -> list[Figure]:
        """All figures; `quick` takes fewer rounds and smaller sizes."""
        ...


def alone(name: str, question: str, run: object, arguments: Sequence[str] | None = None) -> None:
    """`python -m benchmarks.<name> [--quick]`."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=question)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, smaller sizes")
    chosen, peers = parser.parse_args(arguments), Peers()
    if not peers.present:
        print(f"{MISSING}\n")
    assert callable(run)
    print(f"### {name}\n\n{question}\n\n{table(run(peers, quick=chosen.quick))}")
