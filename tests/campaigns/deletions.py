"""The ledger is deleted, between runs and under a run, and the batch paid again.

    python -m tests.campaigns.deletions 2000 10 [--seed 1]

Each round pays a batch of its own by processes that are killed at random; each time the ledger goes too, all
of it or some of its files. Once the batch is complete, the ledger is deleted once more and the batch run
again. Nothing may be paid twice, and the last report must be the one before it, to the cent. A share of all
requests is disturbed. Exits 1 on a breach.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, NoReturn

import attrs

from tests.support.disturbed import BRIEF, DisturbedSandbox
from tests.support.processes import (
    Batch,
    End,
    breaches,
    certificate_of,
    ended,
    killed,
    run_to_the_end,
    started,
)

WINDOW = (0.0, 1.2)
"""Seconds from the first creation to the deletion."""
DELETIONS = 3
"""Within a round, before its last one."""
PARTS = (("",), ("", "-wal"), ("", "-wal", ".lock", ".ballast", ".status.json"))
"""What is deleted together: the ledger with its neighbours, by their endings."""


@attrs.define
class Report:
    """What a campaign came to."""

    rounds: int = 0
    rows: int = 0
    deletions: Counter[str] = attrs.field(factory=Counter)
    """By when: `between` runs, `during` one that went on, `at the end`."""
    codes: Counter[int] = attrs.field(factory=Counter)
    """Exit codes of runs whose ledger was deleted under them."""
    creations: int = 0
    problems: list[str] = attrs.field(factory=list)

    def __str__(self) -> str:
        return (
            f"{self.rounds} rounds, {self.rows} rows, ledger deleted {dict(self.deletions)}; runs that lost "
            f"theirs ended with {dict(sorted(self.codes.items()))}; {self.creations} creations asked for"
        )


def run(
    folder: Path,
    rows: int,
    rounds: int,
    *,
    seed: int = 1,
    words: Sequence[str] = BRIEF,
    times: int = DELETIONS,
) -> Report:
    """So many rounds, in the same books."""
    report, chance = Report(), random.Random(seed)
    with DisturbedSandbox(seed, share=0.01, words=words) as sandbox:
        for number in range(rounds):
            batch = Batch.write(folder, rows, number)
            for _ in range(times):
                _lose_the_ledger(sandbox, batch, chance, report)
            _compare_two_ends(sandbox, batch, chance, report)
            report.rounds += 1
            report.rows += rows
    report.creations = sandbox.creations
    return report


def _lose_the_ledger(sandbox: DisturbedSandbox, batch: Batch, chance: random.Random, report: Report) -> None:
    """One run that is killed before its ledger is deleted, or that goes on without it."""
    sandbox.expect()
    between = chance.random() < 0.5
    report.deletions["between" if between else "during"] += 1
    with started(sandbox, batch) as process:
        sandbox.arrived.wait(10.0)
        time.sleep(chance.uniform(*WINDOW))
        end = killed(process) if between else None
        delete(batch.ledger, chance)
        end = end or ended(process, within=120.0)
    if not between:
        report.codes[end.code] += 1
    if end.problem:
        report.problems.append(end.problem)


def delete(ledger: Path, chance: random.Random) -> None:
    """The ledger, alone or with the files beside it."""
    for ending in chance.choice(PARTS):
        Path(f"{ledger}{ending}").unlink(missing_ok=True)


def judged(
    sandbox: DisturbedSandbox, batch: Batch, end: End, refused: Collection[Any] = ()
) -> tuple[dict[str, Any], list[str]]:
    """A batch's certificate, made undisturbed, and what the books say against it and its end."""
    sandbox.share, share = 0.0, sandbox.share
    certificate = certificate_of(sandbox, batch)
    sandbox.share = share
    return certificate, breaches(batch, batch.entries(sandbox), certificate, end, {*refused})


def _compare_two_ends(sandbox: DisturbedSandbox, batch: Batch, chance: random.Random, report: Report) -> None:
    first = _end(sandbox, batch, report)
    delete(batch.ledger, chance)
    report.deletions["at the end"] += 1
    second = _end(sandbox, batch, report)
    if first != second:
        report.problems.append(f"round {report.rounds}: the reports differ: {first}, then {second}")


def _end(sandbox: DisturbedSandbox, batch: Batch, report: Report) -> Any:
    """The batch run to its end: counts and sums, once they are judged; not how many have arrived so far."""
    certificate, found = judged(sandbox, batch, run_to_the_end(sandbox, batch)[-1])
    report.problems += [f"round {report.rounds}: {problem}" for problem in found]
    sums = {currency: (by["asked"], by["created"]) for currency, by in certificate["sums"].items()}
    return certificate["rows"]["created"], certificate["rows"]["rejected"], sums


def rounds(name: str, run: Callable[..., Any]) -> NoReturn:
    """The command of a campaign that pays so many batches of so many rows, in a folder of its own."""
    parser = argparse.ArgumentParser(prog=f"python -m tests.campaigns.{name}")
    parser.add_argument("rows", type=int, help="rows of a batch")
    parser.add_argument("rounds", type=int, help="batches")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        found = run(Path(folder), options.rows, options.rounds, seed=options.seed)
    told(found, began)


def told(found: Any, began: float) -> NoReturn:
    """Print a report and its breaches, and end with 1 if there are any."""
    print(f"{found}; {time.perf_counter() - began:.0f} s, {len(found.problems)} breaches")
    print("\n".join(found.problems))
    raise SystemExit(1 if found.problems else 0)


if __name__ == "__main__":
    rounds("deletions", run)
