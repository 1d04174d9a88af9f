"""`python -m tests.simulation code`; see the package."""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from .campaign import ABLATED, SEEDS, breach_without, missing, quiet, run_parts, summed
from .play import play_schedule

_AGAIN = "python -m tests.simulation code 1 --first {seed} --trace"


def run(arguments: Sequence[str]) -> int:
    """0 when nothing broke, everything happened and what should be noticed was."""
    parser = argparse.ArgumentParser(
        "python -m tests.simulation code", description="The real code, attacked."
    )
    parser.add_argument("schedules", nargs="?", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument("--trace", action="store_true", help="show what happens, line by line")
    parser.add_argument("--ablate", action="store_true", help="leave out one rule after the other instead")
    options = parser.parse_args(arguments)
    quiet()
    if options.ablate:
        return _ablate(options.jobs)
    seeds = range(options.first, options.first + options.schedules)
    return _trace(seeds) if options.trace else _attack(seeds, options.jobs)


def _attack(seeds: range, jobs: int) -> int:
    parts, began = [], time.monotonic()
    for part in run_parts(seeds, jobs):
        parts.append(part)
        for seed, breach in part.breaches.items():
            print(f"seed {seed}: {breach}\n    {_AGAIN.format(seed=seed)}", flush=True)
    took, whole = time.monotonic() - began, summed(parts)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    for event, count in sorted(whole.sometimes.items()):
        print(f"{count:10,}  {event}")
    print(
        f"{whole.schedules:,} schedules of the real code in {took:,.0f} s "
        f"({used.ru_utime + used.ru_stime:,.0f} s of processor), "
        f"{whole.schedules / took:,.1f} a second in {jobs} processes, "
        f"{whole.steps / whole.schedules:.0f} callbacks each: {len(whole.breaches)} breaches"
    )
    if not whole.breaches:
        print(
            "held: no payout twice, none lost, no verdict false, N = sum of classes, sums per currency exact"
        )
    absent = missing(whole)
    for event in absent:
        print(f"did not happen: {event}")
    return 1 if whole.breaches or absent else 0


def _trace(seeds: range) -> int:
    broken = 0
    for seed in seeds:
        trace = list[str]()
        breach = play_schedule(seed, trace=trace).breach
        print("\n".join(trace))
        print(f"seed {seed}: {breach or 'held'}")
        broken += breach is not None
    return 1 if broken else 0


def _ablate(jobs: int) -> int:
    unnoticed = 0
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for name, found in pool.map(breach_without, [(name, SEEDS) for name in ABLATED]):
            unnoticed += found is None
            told = f"NOT NOTICED in {SEEDS} schedules" if found is None else f"seed {found[0]:3}: {found[1]}"
            print(f"{name:32} {told}", flush=True)
    return 1 if unnoticed else 0
