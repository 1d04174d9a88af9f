"""`python -m benchmarks`: every suite. A full run keeps its figures and renews the tables made of them."""

from __future__ import annotations

import argparse
import importlib
import sys
import time
import traceback

from benchmarks import peers, report
from benchmarks.figures import Reached, read, table, write
from benchmarks.machine import circumstances

SUITES = ("call_cost", "blocking", "start", "row", "decode", "limiter", "memory")


def run(name: str, *, quick: bool) -> Reached:
    """One suite: a module with `run(rounds, share)`, of which a quick run makes fewer and smaller rounds."""
    began = time.monotonic()
    rounds, share = (2, 0.2) if quick else (7, 1.0)
    figures = list(importlib.import_module(f"benchmarks.{name}").run(rounds, share))
    return Reached(name, figures, f"{circumstances()}, {time.monotonic() - began:.0f} s.")


def main(given: list[str] | None = None) -> int:
    """0, or 1 when a suite could not be run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, smaller sizes; not kept")
    parser.add_argument("--only", nargs="+", choices=SUITES, default=SUITES, metavar="SUITE")
    chosen, failed = parser.parse_args(given), list[str]()
    if not peers.present():
        print(f"{peers.MISSING}\n")
    for name in chosen.only:
        try:
            reached = run(name, quick=chosen.quick)
        except Exception:
            failed.append(name)
            traceback.print_exc()
            continue
        print(f"### {name}\n\n{table(reached.figures)}\n\n{reached.circumstances}\n", flush=True)
        if not chosen.quick:
            everything = {**read(), name: reached}
            write(everything[each] for each in SUITES if each in everything)
            report.renew()
    if failed:
        print(f"could not be run: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
