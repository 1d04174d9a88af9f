"""`python -m benchmarks.instructions`: has a hot path come to take more instructions than it did?

Instructions do not depend on how busy the machine is. They do depend on Python, its compiler, libc and the
kind of processor: what was kept is compared only under the same ones, and the run says so where there is
nothing to compare with. `--update` keeps what is counted now. Exit code 1: something grew.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from pathlib import Path

from benchmarks.counting import counted, possible

KEPT = Path(__file__).with_name("instructions.json")
TOLERANCE = {"batch": 0.06, "blocking_create": 0.06}
"""By which part a path may grow: its threads meet at slightly different moments each time."""
ORDINARY = 0.03
Counts = dict[str, int]


def key() -> str:
    """What counts depend on besides our code."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return ", ".join((python, platform.python_compiler(), " ".join(platform.libc_ver()), platform.machine()))


def judged(now: Counts, before: Counts) -> tuple[str, list[str]]:
    """A table, and the paths that grew beyond their tolerance."""
    rows = ["| path | instructions | kept | change | |", "| --- | --- | --- | --- | --- |"]
    grown = []
    for name, count in now.items():
        if name not in before:
            rows.append(f"| {name} | {count:,} | | | new |")
            continue
        change, allowed = count / before[name] - 1, TOLERANCE.get(name, ORDINARY)
        told = (
            "**grew**" if change > allowed else "shrank: keep it with --update" if change < -allowed else ""
        )
        rows.append(f"| {name} | {count:,} | {before[name]:,} | {change:+.1%} | {told} |")
        if change > allowed:
            grown.append(name)
    return "\n".join(rows), grown


def read() -> dict[str, Counts]:
    """What was kept, by `key`."""
    kept: dict[str, Counts] = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    return kept


def keep(now: Counts) -> None:
    """Keep what was counted, beside what others were."""
    kept = read()
    kept[key()] = {**kept.get(key(), {}), **now}
    KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def main() -> int:
    """0, or 1 when something grew."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.instructions", description=__doc__)
    parser.add_argument("paths", nargs="*", help="only these")
    parser.add_argument("--update", action="store_true", help="keep what is counted now")
    chosen = parser.parse_args()
    if not possible():
        print("NOT COMPARED: counting needs valgrind, on Linux and x86_64.")
        return 0
    now, before = counted("benchmarks.hot_paths", *chosen.paths), read().get(key())
    table, grown = judged(now, before or {})
    print(table)
    if chosen.update:
        keep(now)
    elif before is None:
        print(f"\nNOT COMPARED: nothing is kept for {key()}. Keep it with --update.")
    elif grown:
        print(f"\nMore instructions than before: {', '.join(grown)}.")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
