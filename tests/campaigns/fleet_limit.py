"""Fleets that share one limit, in virtual time, with processes, messages, clocks and stores that fail.

    python -m tests.campaigns.fleet_limit 10000
    python -m tests.campaigns.fleet_limit 1000 --without new_state_is_empty    must find a breach

Every seed is two to three minutes of up to 16 processes (`tests/rate_limit/fleet.py`), judged by the fullest
sixty seconds wherever they begin.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from payments_async._rate_limit import store
from payments_async._rate_limit.store import LimitFigures
from tests.rate_limit.fleet import full_when_new, leaves_no_room, scheduled

PROMISES = ("rate_leaves_room", "new_state_is_empty")


def fullest(seed: int, without: str | None) -> float:
    """The fullest minute of one schedule, as a part of the limit."""
    if without == "rate_leaves_room":
        LimitFigures.rate = leaves_no_room  # type: ignore[method-assign] # in a process of its own
    if without == "new_state_is_empty":
        store.reserve = full_when_new
    return scheduled(seed).fullest


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.fleet_limit", description=__doc__)
    parser.add_argument("schedules", type=int)
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first seed")
    parser.add_argument("--without", choices=PROMISES, help="a promise that the rule does not keep")
    parser.add_argument("--processes", type=int, default=2, help="that run schedules")
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.schedules)
    with ProcessPoolExecutor(options.processes) as pool:
        found = list(pool.map(partial(fullest, without=options.without), seeds, chunksize=20))
    breaches = [(seed, part) for seed, part in zip(seeds, found, strict=True) if part > 1.0]
    print(f"{len(found)} schedules: {len(breaches)} breaches; fullest minute {max(found):.2%} of the limit")
    for seed, part in breaches[:10]:
        print(f"  seed {seed}: {part:.2%}")
    raise SystemExit(1 if bool(breaches) != bool(options.without) else 0)


if __name__ == "__main__":
    main()
