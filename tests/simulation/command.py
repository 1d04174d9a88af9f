"""Plays many schedules of one kind, or leaves out each of its rules, and prints what came of that."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial, reduce
from multiprocessing import get_context

import attrs

from .campaign import SEEDS, Campaign, run_campaign
from .schedule import Verdict


@attrs.frozen
class Kind:
    """A kind of worlds. Its functions are those of modules, so that other processes find them."""

    name: str
    """As on the command line; empty for worlds with one machine."""
    play: Callable[[object], Verdict]
    events: Collection[str]
    rules: Collection[str]
    breaches_without: Callable[[str, range], Iterator[tuple[int, str]]]
    traced: Callable[[object], tuple[list[str], str | None]] | None = None
    """Plays a seed, and gives what happened, line by line, and the breach."""
    often: int = 100
    """How often each event must happen in a long campaign."""
    seeds: int = SEEDS
    """Within so many schedules the lack of a rule must show."""
    share_of: int = 300
    """In how many schedules it is counted how many go wrong."""
    part: int = 1_000
    """So many schedules are played by one process at a time."""


def run(kind: Kind, arguments: Sequence[str]) -> int:
    """0 when the protocol held and the campaign could have told otherwise."""
    program = f"python -m tests.simulation {kind.name}".rstrip()
    parser = argparse.ArgumentParser(program, description="The bulk protocol, attacked.")
    parser.add_argument("schedules", nargs="?", type=int, default=10 * kind.seeds)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    if kind.traced is not None:
        parser.add_argument("--trace", action="store_true", help="show what happens, line by line")
    some = {"nargs": "*", "choices": kind.rules, "metavar": "RULE"}
    parser.add_argument("--ablate", **some, help="leave out each rule instead, or each of these")
    options = parser.parse_args(arguments)
    seeds = range(options.first, options.first + options.schedules)
    if kind.traced is not None and options.trace:
        return _trace(kind.traced, seeds)
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        if options.ablate is None:
            return _attack(kind, seeds, pool)
        return _ablate(kind, options.ablate or kind.rules, pool)


def _attack(kind: Kind, seeds: range, pool: ProcessPoolExecutor) -> int:
    parts, began = list[Campaign](), time.monotonic()
    starts = range(seeds.start, seeds.stop, kind.part)
    for part in pool.map(
        partial(run_campaign, play=kind.play), (seeds[at - seeds.start :][: kind.part] for at in starts)
    ):
        parts.append(part)
        for seed, breach in part.breaches.items():
            print(f"seed {seed}: {breach}", flush=True)
    took, whole = time.monotonic() - began, reduce(Campaign.plus, parts)
    for event, count in sorted(whole.sometimes.items()):
        print(f"{count:10,}  {event}")
    print(
        f"{whole.schedules:,} schedules in {took:,.0f} s, {whole.schedules / took:,.0f} a second, "
        f"{whole.steps / whole.schedules:.0f} callbacks each: {len(whole.breaches)} breaches"
    )
    rare = whole.rare(kind.events, kind.often)
    for event, count in rare.items():
        print(f"too seldom: {event} ({count})")
    return 1 if whole.breaches or rare else 0


def _trace(play: Callable[[object], tuple[list[str], str | None]], seeds: range) -> int:
    broken = 0
    for seed in seeds:
        trace, breach = play(seed)
        print("\n".join(trace))
        print(f"seed {seed}: {breach or 'held'}")
        broken += breach is not None
    return 1 if broken else 0


def _ablate(kind: Kind, rules: Iterable[str], pool: ProcessPoolExecutor) -> int:
    unnoticed = 0
    for told in pool.map(partial(_without, kind), rules):
        unnoticed += "NOT NOTICED" in told
        print(told, flush=True)
    return 1 if unnoticed else 0


def _without(kind: Kind, rule: str) -> str:
    """How the lack of a rule shows."""
    seed, breach = next(kind.breaches_without(rule, range(kind.seeds)), (None, ""))
    if seed is None:
        return f"{rule:32} NOT NOTICED in {kind.seeds} schedules"
    if not kind.share_of:
        return f"{rule:32} seed {seed:3}: {breach}"
    share = len(list(kind.breaches_without(rule, range(kind.share_of)))) / kind.share_of
    return f"{rule:32} seed {seed:3}, {share:4.1%} of schedules: {breach}"
