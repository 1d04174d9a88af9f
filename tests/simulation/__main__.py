"""The command line of the simulation; see the package."""

from __future__ import annotations

import argparse
import sys
import time
from functools import reduce

from .ablation import ABLATIONS
from .campaign import SEEDS, Campaign, breaches_without, run_campaign

_CHUNK = 5_000
_SHARE_OF = 300


def main() -> int:
    """0 when the protocol held and the campaign could have told otherwise."""
    if sys.argv[1:2] == ["code"]:
        from .real.command import run  # the real engine: slower to import than the whole model is to play

        return run(sys.argv[2:])
    parser = argparse.ArgumentParser("python -m tests.simulation", description="The bulk protocol, attacked.")
    parser.add_argument("schedules", nargs="?", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--ablate", action="store_true", help="leave out each rule instead")
    options = parser.parse_args()
    return _ablate() if options.ablate else _attack(range(options.first, options.first + options.schedules))


def _attack(seeds: range) -> int:
    parts, began = list[Campaign](), time.process_time()
    for start in range(seeds.start, seeds.stop, _CHUNK):
        parts.append(run_campaign(range(start, min(start + _CHUNK, seeds.stop))))
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
    for event, count in whole.rare.items():
        print(f"too seldom: {event} ({count})")
    return 1 if whole.breaches or whole.rare else 0


def _ablate() -> int:
    unnoticed = 0
    for name in ABLATIONS:
        seed, breach = next(breaches_without(name, range(SEEDS)), (None, ""))
        if seed is None:
            unnoticed += 1
            print(f"{name:32} NOT NOTICED in {SEEDS} schedules", flush=True)
            continue
        share = len(list(breaches_without(name, range(_SHARE_OF)))) / _SHARE_OF
        print(f"{name:32} seed {seed:3}, {share:4.0%} of schedules: {breach}", flush=True)
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
