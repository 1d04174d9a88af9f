"""Rounds of blocking calls. Imported in both environments: standard library only."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

Call = Callable[[], object]
"""One call, answer read."""

WARM = 20


def measured(new_call: Callable[[], Call], *, threads: int, seconds: float) -> dict[str, Any]:
    """Calls a second, CPU a call and latencies, all threads taken together; each has a call of its own."""
    latencies: list[list[float]] = [[] for _ in range(threads)]
    failures: list[BaseException] = []
    ready, begun, end = threading.Barrier(threads + 1), threading.Event(), [0.0]

    def work(mine: list[float]) -> None:
        try:
            call = new_call()
            for _ in range(WARM):
                call()
            ready.wait()
            begun.wait()
            _until(end[0], call, mine)
        except BaseException as failure:
            failures.append(failure)
            ready.abort()

    workers = [threading.Thread(target=work, args=(mine,), daemon=True) for mine in latencies]
    for worker in workers:
        worker.start()
    try:
        ready.wait()
    except threading.BrokenBarrierError:
        raise failures[0] from None
    started, cpu = time.perf_counter(), time.process_time()
    end[0] = started + seconds
    begun.set()
    for worker in workers:
        worker.join()
    if failures:
        raise failures[0]
    return _told(latencies, time.perf_counter() - started, time.process_time() - cpu)


def _until(end: float, call: Call, latencies: list[float]) -> None:
    clock, note = time.perf_counter, latencies.append
    before = clock()
    while before < end:
        call()
        after = clock()
        note(after - before)
        before = after


def _told(latencies: list[list[float]], elapsed: float, cpu: float) -> dict[str, Any]:
    every = sorted(latency for mine in latencies for latency in mine)
    calls = len(every)
    return {
        "calls": calls,
        "rate": calls / elapsed,
        "cpu": cpu / calls,
        "p50": every[calls // 2],
        "p99": every[calls * 99 // 100],
    }
