"""What does a call under way take, and a list that is read to its end?"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from benchmarks.figures import Figure
from benchmarks.memory_server import holding
from benchmarks.peers import Peers
from benchmarks.suite import alone
from benchmarks.worker import started

NAME = "memory"
QUESTION = (
    "How much memory does a call take that waits for its answer, 1,000 of them at a time, each on its own "
    "connection? And how much does a process grow that reads a long list to its end with `iterate`?"
)
MANY = 1_000
ROWS = int(os.environ.get("PAYMENTS_BENCH_ROWS", "200000"))
OURS, BY_HAND = "payments-sdk", "aiohttp by hand"
MODULES = {OURS: ("memory_ours", "flying"), BY_HAND: ("memory_aiohttp",)}
CHARTS = {"in_flight": "KiB of a call under way, 1,000 at a time"}


def told(name: str, *, traced: bool) -> float:
    """KiB a call, of a process that is started for it: what an earlier round left behind would count."""
    module, *kind = MODULES[name]
    with holding() as url, started(f"benchmarks.contenders.{module}", url, *kind) as worker:
        taken: float = worker.ask(many=MANY, traced=traced)["bytes"]
    return taken / 1024


def under_way(times: int) -> Iterator[Figure]:
    """KiB a call, of ours and by hand."""
    for name in MODULES:
        goal: dict[str, Any] = {"target": "P10", "at_most": 20.0} if name == OURS else {}
        for traced, note in ((False, "resident"), (True, "as tracemalloc counts")):
            values = [told(name, traced=traced) for _ in range(times)]
            chart = "" if traced else "in_flight"
            what = f"{name}: a call under way, of {MANY:,}"
            yield Figure.of(values, what, "KiB", chart=chart, label=name, note=note, **goal)


def streamed(times: int, rows: int) -> Figure:
    """MiB between the first rows and the last, at its most."""
    values = []
    for _ in range(times):
        with holding() as url, started("benchmarks.contenders.memory_ours", url, "streaming") as worker:
            values.append(worker.ask(many=rows)["grown"] / 2**20)
    return Figure.of(
        values, f"growth over {rows:,} payouts read with iterate", "MiB", target="P10", at_most=16.0
    )


def run(peers: Peers, *, quick: bool) -> list[Figure]:
    """Calls under way, then rows read."""
    return [*under_way(1 if quick else 3), streamed(1 if quick else 3, 20_000 if quick else ROWS)]


def profile() -> str:
    """Who holds the memory of calls under way: bytes a call, by line of code."""
    module, *kind = MODULES[OURS]
    with holding() as url, started(f"benchmarks.contenders.{module}", url, *kind) as worker:
        return worker.profile(many=MANY)


if __name__ == "__main__":
    alone(NAME, QUESTION, run)
