"""`python -m benchmarks`: every suite, one table of targets and what was reached.

A full run keeps its figures in results.json and renews the tables and charts made of them; a quick one only
prints. Where a target is missed, a profile says where the time goes (benchmarks/profiles).
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
import traceback
from datetime import UTC, datetime
from typing import Any

from benchmarks import report, results
from benchmarks.figures import table
from benchmarks.machine import load, machine, told
from benchmarks.peers import MISSING, Peers
from benchmarks.results import Reached

SUITES = (
    *("call_cost", "blocking", "decode", "limiter", "start", "memory", "keys", "growth"),
    *("bulk", "sandbox"),
)
PROFILES = results.HERE / "profiles"


def run(name: str, peers: Peers, *, quick: bool, began: str = "") -> Reached:
    """One suite; a missed target leaves a profile, where the suite can make one."""
    suite: Any = importlib.import_module(f"benchmarks.{name}")
    started = time.monotonic()
    figures = suite.run(peers, quick=quick)
    took = time.monotonic() - started
    profile = PROFILES / f"{name}.txt"
    profile.unlink(missing_ok=True)
    if any(figure.met is False for figure in figures) and hasattr(suite, "profile"):
        PROFILES.mkdir(exist_ok=True)
        profile.write_text(suite.profile(), encoding="utf-8")
    titles = getattr(suite, "CHARTS", {})
    return Reached(
        name, suite.QUESTION, figures, round(took, 1), round(load(), 1), machine(), quick, titles, began
    )


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    """What is wanted."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, smaller sizes; not kept")
    parser.add_argument("--keep", action="store_true", help="keep a quick run's figures, too")
    parser.add_argument("--only", help="suites by name, with commas between: " + ",".join(SUITES))
    chosen = parser.parse_args(given)
    chosen.suites = chosen.only.split(",") if chosen.only else list(SUITES)
    if unknown := set(chosen.suites) - set(SUITES):
        parser.error(f"there is no suite {', '.join(sorted(unknown))}; there are {', '.join(SUITES)}")
    return chosen


def keep(reached: Reached) -> None:
    """Keep a suite's figures, and renew what is made of figures; those of other suites stay."""
    everything = {**results.read(), reached.name: reached}
    ordered = [everything[name] for name in SUITES if name in everything]
    results.write(ordered)
    report.renew(ordered)


def main() -> int:
    """0, or 1 when a suite could not be run."""
    chosen, peers, failed = arguments(), Peers(), list[str]()
    print(told(machine()), f"Load {load():.1f}.", "" if peers.present else f"\n{MISSING}", "\n")
    done: dict[str, Reached] = {}
    began = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    for name in chosen.suites:
        try:
            done[name] = run(name, peers, quick=chosen.quick, began=began)
        except Exception:
            failed.append(name)
            traceback.print_exc()
            continue
        heading = f"### {name} ({done[name].seconds:.0f} s, load {done[name].load})"
        print(f"{heading}\n\n{done[name].question}\n\n{table(done[name].figures)}\n", flush=True)
        if chosen.keep or not chosen.quick:
            keep(done[name])
    print(f"### Targets\n\n{results.judged(list(done.values()))}\n")
    if failed:
        print(f"could not be run: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
