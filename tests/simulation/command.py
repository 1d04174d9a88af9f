"""Plays many schedules of one kind, or leaves out each of its rules, and prints what came of that."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import reduce

import attrs

from .campaign import SEEDS, Campaign

_CHUNK = 5_000
_SHARE_OF = 300


@attrs.frozen
class Kind:
    """A kind of worlds."""

    name: str
    """As on the command line; empty for worlds with one machine."""
    run: Callable[[range], Campaign]
    events: Collection[str]
    rules: Collection[str]
    breaches_without: Callable[[str, range], Iterator[tuple[int, str]]]


def run(kind: Kind, arguments: Sequence[str]) -> int:
    """0 when the protocol held and the campaign could have told otherwise."""
    program = f"python -m tests.simulation {kind.name}".rstrip()
    parser = argparse.ArgumentParser(program, description="The bulk protocol, attacked.")
    parser.add_argument("schedules", nargs="?", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    some = {"nargs": "*", "choices": kind.rules, "metavar": "RULE"}
    parser.add_argument("--ablate", **some, help="leave out each rule instead, or each of these")
    options = parser.parse_args(arguments)
    seeds = range(options.first, options.first + options.schedules)
    return _attack(kind, seeds) if options.ablate is None else _ablate(kind, options.ablate or kind.rules)


def _attack(kind: Kind, seeds: range) -> int:
    parts, began = list[Campaign](), time.process_time()
    for start in range(seeds.start, seeds.stop, _CHUNK):
        parts.append(kind.run(range(start, min(start + _CHUNK, seeds.stop))))
        for seed, breach in parts[-1].breaches.items():
            print(f"seed {seed}: {breach}", flush=True)
    took = time.process_time() - began
    whole = reduce(Campaign.plus, parts)
    for event, count in sorted(whole.sometimes.items()):
        print(f"{count:10,}  {event}")
    print(
        f"{whole.schedules:,} schedules, {whole.schedules / took:,.0f} a second on one core, "
        f"{whole.steps / whole.schedules:.0f} callbacks each: {len(whole.breaches)} breaches"
    )
    rare = whole.rare(kind.events)
    for event, count in rare.items():
        print(f"too seldom: {event} ({count})")
    return 1 if whole.breaches or rare else 0


def _ablate(kind: Kind, rules: Iterable[str]) -> int:
    unnoticed = 0
    for name in rules:
        seed, breach = next(kind.breaches_without(name, range(SEEDS)), (None, ""))
        if seed is None:
            unnoticed += 1
            print(f"{name:32} NOT NOTICED in {SEEDS} schedules", flush=True)
            continue
        share = len(list(kind.breaches_without(name, range(_SHARE_OF)))) / _SHARE_OF
        print(f"{name:32} seed {seed:3}, {share:4.1%} of schedules: {breach}", flush=True)
    return 1 if unnoticed else 0
