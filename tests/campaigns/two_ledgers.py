"""Two processes with two ledgers pay the same batch at once, and are killed at random.

    python -m tests.campaigns.two_ledgers 2000 10 [--seed 1]

In every other round the two ledgers lie in one folder, else in two. A share of all requests is disturbed.
Nothing may be paid twice, and both ledgers must end with the same, right report. Exits 1 on a breach.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import attrs

from tests.campaigns.kills import judged, told
from tests.support.disturbed import BRIEF, DisturbedSandbox
from tests.support.processes import Batch, End, killed, run_to_the_end, started

WINDOW = (0.02, 0.5)
"""Seconds from a creation to the kill."""
KILLS = 4
"""In a round."""


@attrs.define
class Report:
    """What a campaign came to."""

    rounds: int = 0
    rows: int = 0
    kills: int = 0
    creations: int = 0
    codes: Counter[int] = attrs.field(factory=Counter)
    """Exit codes of processes that ended by themselves."""
    problems: list[str] = attrs.field(factory=list)

    def __str__(self) -> str:
        return (
            f"{self.rounds} rounds, {self.rows} rows in two ledgers each, {self.kills} kills, processes that "
            f"ended by themselves: {dict(sorted(self.codes.items()))}; {self.creations} creations asked for"
        )


@attrs.define
class Pair:
    """A batch, its two ledgers, and the processes at work on them."""

    sandbox: DisturbedSandbox
    batches: Sequence[Batch]
    report: Report
    _open: ExitStack
    _processes: dict[int, subprocess.Popen[str]] = attrs.field(factory=dict)

    def begin(self) -> None:
        """See that both are being paid; one that has ended is begun again."""
        for place, batch in enumerate(self.batches):
            if place in self._processes and self._processes[place].poll() is not None:
                self.end(place)
            if place not in self._processes:
                self._processes[place] = self._open.enter_context(started(self.sandbox, batch))

    def end(self, place: int) -> None:
        """Kill one of them, unless it has ended."""
        end = killed(self._processes.pop(place))
        self.report.kills += end.killed
        if not end.killed:
            self.report.codes[end.code] += 1
        if end.problem:
            self.report.problems.append(end.problem)

    def finish(self) -> list[End]:
        """Both to their ends, at the same time; the last one of each."""
        for place in list(self._processes):
            self.end(place)
        with ThreadPoolExecutor(len(self.batches)) as pool:
            ends = list(pool.map(lambda batch: run_to_the_end(self.sandbox, batch), self.batches))
        self.report.codes.update(each.code for of_one in ends for each in of_one)
        return [of_one[-1] for of_one in ends]


def run(
    folder: Path, rows: int, rounds: int, *, seed: int = 1, words: Sequence[str] = BRIEF, kills: int = KILLS
) -> Report:
    """So many rounds, in the same books."""
    report, chance = Report(), random.Random(seed)
    with DisturbedSandbox(seed, share=0.01, words=words) as sandbox:
        for number in range(rounds):
            batch = Batch.write(folder, rows, number)
            beside = attrs.evolve(batch, ledger=folder / f"other-{number}.ledger")
            other = batch.elsewhere(folder / "elsewhere") if number % 2 else beside
            with ExitStack() as stack:
                _round(Pair(sandbox, (batch, other), report, stack), chance, kills)
            report.rounds += 1
            report.rows += rows
    report.creations = sandbox.creations
    return report


def _round(pair: Pair, chance: random.Random, kills: int) -> None:
    for _ in range(kills):
        pair.sandbox.expect()
        pair.begin()
        pair.sandbox.arrived.wait(10.0)
        time.sleep(chance.uniform(*WINDOW))
        for place in chance.choice(((0,), (1,), (0, 1))):
            pair.end(place)
    for batch, end in zip(pair.batches, pair.finish(), strict=True):
        _, found = judged(pair.sandbox, batch, end)
        pair.report.problems += [f"{batch.ledger.name}: {problem}" for problem in found]


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.two_ledgers")
    parser.add_argument("rows", type=int, help="rows of a batch")
    parser.add_argument("rounds", type=int, help="batches")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        found = run(Path(folder), options.rows, options.rounds, seed=options.seed)
    told(found, began)


if __name__ == "__main__":
    main()
