"""How many rows a second can the bulk engine do, with the network taken out and its ledger on FULL sync?"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile

from benchmarks.figures import Figure
from benchmarks.peers import Peers
from benchmarks.suite import alone
from benchmarks.worker import ROOT, functions

NAME = "bulk"
QUESTION = (
    "How many rows a second can the bulk engine and its ledger do, with the network taken out and every "
    "commit synced? And with the real client, its transport taken out?"
)


def once(part: str, rows: int) -> dict[str, float]:
    """One round of `bulk_engine`, in a process of its own."""
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-m", "benchmarks.bulk_engine", "--one", part, place, str(rows)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=ROOT)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def run(peers: Peers, *, quick: bool) -> list[Figure]:
    """The engine alone and with the client; and what more rows change."""
    rows, rounds, figures = (20_000, 1, []) if quick else (100_000, 3, list[Figure]())
    for part, name in (("engine", "the engine"), ("client", "engine and client")):
        found = [once(part, rows) for _ in range(rounds)]
        speeds = [1e6 / each["wall"] for each in found]
        what = f"{name}, {rows:,} rows, the network taken out"
        judged = {"target": "P8", "at_least": 5_000.0} if part == "engine" else {}
        note = "by the clock: falls on a busy machine"
        figures.append(Figure.of(speeds, what, "rows/s", note=note, **judged))
        goal = {"target": "P8", "at_most": 120.0} if part == "client" else {}
        figures.append(Figure.of([each["cpu"] for each in found], f"{name}, CPU a row", "µs", **goal))
        figures.append(Figure.of([each["height"] for each in found], f"{name}, most memory in all", "MiB"))
        if part == "engine":
            figures += growth(found, rows)
    return figures


def growth(many: list[dict[str, float]], rows: int) -> list[Figure]:
    """Memory and CPU a row of the engine's rounds beside as many rounds of a tenth of the rows."""
    fewer = rows // 10
    few = [once("engine", fewer) for _ in many]
    pairs = list(zip(many, few, strict=True))
    heights = [more["height"] - less["height"] for more, less in pairs]
    costs = [more["cpu"] / less["cpu"] for more, less in pairs]
    span = f"{rows:,} rows over {fewer:,}"
    note = "a million: see bulk_million"
    return [
        Figure.of(heights, f"memory of {span}", "MiB", target="P8", at_most=16.0, note=note),
        Figure.of(costs, f"CPU a row, {span}", target="P9", at_most=1.2),
    ]


def profile() -> str:
    """Where the engine's time goes, on its loop; SQLite's thread is not in it."""
    with tempfile.TemporaryDirectory() as place:
        found = f"{place}/profile"
        measured = ["-m", "benchmarks.bulk_engine", "--one", "engine", place, "10000"]
        command = [sys.executable, "-m", "cProfile", "-o", found, *measured]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=ROOT)
        return functions(found)


if __name__ == "__main__":
    alone(NAME, QUESTION, run)
