"""A real run, killed with SIGKILL again and again, over a line that fails in every way the sandbox knows.

    python -m tests.campaigns.kills 20000 50 [--seed 1] [--share 0.02]
    python -m tests.campaigns.kills 8000 9 --brisk --deletions 1 --within 60
    python -m tests.campaigns.kills 2000 15 --losing

Each process pays the batch over TCP and is killed 50 to 600 ms after its first creation arrived, one in ten
at any moment of its beginning; in between, a share of all requests is disturbed. A batch that is complete
before all kills were had is followed by another one in the same books. The sandbox's books alone decide: each
row exactly once but for those that the service refused, sums equal to the cent, a clean certificate, the
right exit code. Exits 1 on a breach.

`--brisk`: only faults after which a row's next post settles it, each of them in somewhat under 2 % of all
requests, and no kill once there were enough. `--deletions`: so many times a kill takes the ledger along.
`--within`: seconds from the last kill until the batch is complete. `--losing`: the ledger is deleted at
nearly every kill, alone or with its neighbours, half of the time under a process that goes on without it;
and once more when the batch is complete, which is then run again: its last report must be the one before it.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import attrs

from tests.support.disturbed import BRIEF, BRISK, PASSING, REFUSING, DisturbedSandbox
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

WINDOW = (0.05, 0.6)
"""Seconds from the first creation to the kill."""
EARLY, BEGINNING = 0.1, 2.0
"""The share of processes that are killed within so many seconds of their start, whatever they do."""
GREETING = 60.0
"""Seconds after which a process that has sent nothing is killed all the same."""
BRISKLY: Mapping[str, Any] = {
    "share": 0.019 * len(BRISK),
    "words": BRISK,
    "readings": BRISK,
    "halting": 0.0,
    "window": (0.5, 4.0),
    "relentless": False,
}
"""Each fault in 1.9 % of all requests; kills all over the batch."""
LOSING: Mapping[str, Any] = {
    **BRISKLY,
    "share": 0.01,
    "words": BRIEF,
    "readings": BRIEF,
    "window": (0.0, 1.2),
    "deletions": 10**6,
    "losing": True,
}
"""Brief faults; the ledger is deleted all the time."""
PARTS = (("",), ("", "-wal"), ("", "-wal", ".lock", ".ballast", ".status.json"))
"""What is deleted together: the ledger with its neighbours, by their endings."""


@attrs.define
class Killer:
    """Starts processes and kills them."""

    sandbox: DisturbedSandbox
    chance: random.Random
    window: tuple[float, float] = WINDOW
    kills: int = 0
    """Of processes that had sent something."""
    early: int = 0
    """Kills of processes that had sent nothing yet."""
    deletions: int = 0
    """Kills, from the third on, that take the ledger along: at most so many."""
    losing: bool = False
    """Whether half of them only delete it, under a process that goes on."""
    deleted: int = 0
    codes: Counter[int] = attrs.field(factory=Counter)
    """Exit codes of processes that ended by themselves."""
    problems: list[str] = attrs.field(factory=list)

    def start(self, batch: Batch) -> End:
        """One more process, killed unless it ends before that."""
        self.sandbox.expect()
        with started(self.sandbox, batch) as process:
            if self.chance.random() < EARLY:
                time.sleep(self.chance.uniform(0.0, BEGINNING))
            elif self._wait(process):
                time.sleep(self.chance.uniform(*self.window))
            if under := self.losing and self.chance.random() < 0.5:
                self._delete(batch)
            end = ended(process, within=120.0) if under else killed(process)
        sent = self.sandbox.arrived.is_set()
        if end.killed:
            self.kills += sent
            self.early += not sent
            if sent and self.kills > 2 and self.deleted < self.deletions:
                self._delete(batch)
        else:
            self.codes[end.code] += 1
        if end.problem:
            self.problems.append(end.problem)
        return end

    def _delete(self, batch: Batch) -> None:
        self.deleted += 1
        for ending in self.chance.choice(PARTS):
            Path(f"{batch.ledger}{ending}").unlink(missing_ok=True)

    def pay_again(self, batch: Batch, certificate: dict[str, Any]) -> list[str]:
        """Pay a complete batch once more without its ledger; what is wrong then."""
        self._delete(batch)
        end = run_to_the_end(self.sandbox, batch)[-1]
        again, found = judged(self.sandbox, batch, end, self.sandbox.refused)
        first, second = _money(certificate), _money(again)
        return [*found, *([f"the reports differ: {first}, then {second}"] if first != second else [])]

    def _wait(self, process: subprocess.Popen[str]) -> bool:
        """Whether a creation arrived; returns when the process has ended, too."""
        until = time.monotonic() + GREETING
        while time.monotonic() < until and process.poll() is None:
            if self.sandbox.arrived.wait(0.05):
                return True
        return self.sandbox.arrived.is_set()


@attrs.define
class Report:
    """What a campaign came to."""

    batches: int = 0
    rows: int = 0
    kills: int = 0
    early: int = 0
    deleted: int = 0
    """Ledgers."""
    seconds: float = 0.0
    """From a batch's last kill until it was complete, at most."""
    refused: int = 0
    creations: int = 0
    """Requests to create a payout."""
    codes: Counter[int] = attrs.field(factory=Counter)
    faults: Counter[str] = attrs.field(factory=Counter)
    problems: list[str] = attrs.field(factory=list)

    def __str__(self) -> str:
        kinds = ", ".join(f"{count} {word}" for word, count in sorted(self.faults.items()))
        return (
            f"{self.rows} rows in {self.batches} batches, {self.kills} kills after a first send and "
            f"{self.early} before one, {self.deleted} ledgers deleted, "
            f"{sum(self.codes.values())} ends without a kill ({dict(sorted(self.codes.items()))}); "
            f"{self.creations} creations asked for, {self.refused} rows refused, "
            f"{self.faults.total()} faults: {kinds}; complete {self.seconds:.1f} s after the last kill"
        )


def run(
    folder: Path,
    rows: int,
    kills: int,
    *,
    seed: int = 1,
    share: float = 0.02,
    words: Sequence[str] = PASSING + REFUSING,
    readings: Sequence[str] = BRIEF,
    halting: float = 0.04,
    window: tuple[float, float] = WINDOW,
    relentless: bool = True,
    deletions: int = 0,
    losing: bool = False,
) -> Report:
    """Pay batches until so many processes were killed, and, `relentless`, until no row is left.

    Of all requests a `share` is disturbed by one of `words`, or for the list `readings`; of these, a share
    stops the run (`halting`). So many kills take the ledger along (`deletions`), or only that (`losing`).
    """
    report = Report()
    disturbed = DisturbedSandbox(seed, share=share, words=words, readings=readings, halting=halting)
    with disturbed as sandbox:
        chance = random.Random(seed)
        killer = Killer(sandbox, chance, window, deletions=deletions, losing=losing, problems=report.problems)
        while killer.kills < kills and not report.problems:
            batch = Batch.write(folder, rows, report.batches)
            kill_on = partial(_kill_on, killer, batch, kills, relentless=relentless)
            _pay(killer, batch, report, kill_on)
    report.kills, report.early, report.deleted = killer.kills, killer.early, killer.deleted
    report.codes, report.faults, report.creations = killer.codes, sandbox.faults, sandbox.creations
    return report


def _pay(killer: Killer, batch: Batch, report: Report, kill_on: Callable[[], bool]) -> None:
    """One batch to its end, under kills at first."""
    sandbox = killer.sandbox
    end = killer.start(batch)
    while not (end.complete or report.problems) and kill_on():
        end = killer.start(batch)
    began = time.monotonic()
    ends = run_to_the_end(sandbox, batch)  # once more, even when it was complete
    report.seconds = max(report.seconds, time.monotonic() - began)
    killer.codes.update(each.code for each in ends)
    certificate, found = judged(sandbox, batch, ends[-1], sandbox.refused)
    if killer.losing:
        found += killer.pay_again(batch, certificate)
    report.problems += [f"batch {report.batches}: {problem}" for problem in found]
    report.batches += 1
    report.rows += len(batch.rows)
    report.refused += len(batch.rows) - len(batch.entries(sandbox))


def _kill_on(killer: Killer, batch: Batch, kills: int, *, relentless: bool) -> bool:
    """Whether the batch's processes are still to be killed."""
    if killer.kills < kills or not relentless:
        return killer.kills < kills
    paid = {(entry.currency, entry.amount) for entry in batch.entries(killer.sandbox)}
    return bool(batch.rows - paid - killer.sandbox.refused)


def judged(
    sandbox: DisturbedSandbox, batch: Batch, end: End, refused: Collection[Any] = ()
) -> tuple[dict[str, Any], list[str]]:
    """A batch's certificate, made undisturbed, and what the books say against it and its end."""
    sandbox.share, share = 0.0, sandbox.share
    certificate = certificate_of(sandbox, batch)
    sandbox.share = share
    return certificate, breaches(batch, batch.entries(sandbox), certificate, end, {*refused})


def _money(certificate: dict[str, Any]) -> Any:
    """Counts and sums; not how many have arrived so far."""
    sums = {currency: (by["asked"], by["created"]) for currency, by in certificate["sums"].items()}
    return certificate["rows"]["created"], certificate["rows"]["rejected"], sums


def told(found: Any, began: float) -> NoReturn:
    """Print a report and its breaches, and end with 1 if there are any."""
    print(f"{found}; {time.perf_counter() - began:.0f} s, {len(found.problems)} breaches")
    print("\n".join(found.problems))
    raise SystemExit(1 if found.problems else 0)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.kills")
    parser.add_argument("rows", type=int, help="rows of a batch")
    parser.add_argument("kills", type=int, help="kills after a first send, at least")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--share", type=float, default=0.02, help="of all requests that are disturbed")
    parser.add_argument("--brisk", action="store_true", help="faults that the next post settles")
    parser.add_argument("--losing", action="store_true", help="the ledger is deleted all the time")
    parser.add_argument("--deletions", type=int, default=0, help="kills that take the ledger along")
    parser.add_argument("--within", type=float, help="seconds from the last kill to the end")
    options = parser.parse_args()
    chosen = BRISKLY if options.brisk else LOSING if options.losing else {"share": options.share}
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        sizes = (Path(folder), options.rows, options.kills)
        found = run(*sizes, **{"seed": options.seed, "deletions": options.deletions, **chosen})
    if options.within is not None and found.seconds > options.within:
        found.problems.append(f"it took {found.seconds:.1f} s after the last kill")
    told(found, began)


if __name__ == "__main__":
    main()
