"""Rounds of blocking calls. Imported in both environments: standard library only."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

Call = Callable[[], object]
"""One call, answer read."""
Latencies = list[tuple[float, float]]
"""Seconds of each call: by the clock, and of the process's CPU."""

WARM = 20


def measured(new_call: Callable[[], Call], *, threads: int, seconds: float) -> dict[str, Any]:
    """Calls a second, CPU a call and latencies, all threads taken together; each has a call of its own.

    A latency is told by the clock, and by the CPU that the whole process used meanwhile: what the clock would
    say if nothing else ran on its core.
    """
    latencies: list[Latencies] = [[] for _ in range(threads)]
    failures: list[BaseException] = []
    ready, begun, end = threading.Barrier(threads + 1), threading.Event(), [0.0]

    def work(mine: Latencies) -> None:
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


def _until(end: float, call: Call, latencies: Latencies) -> None:
    clock, cpu, note = time.perf_counter, time.process_time, latencies.append
    before, used = clock(), cpu()
    while before < end:
        call()
        now, using = clock(), cpu()
        note((now - before, using - used))
        before, used = now, using


def _told(latencies: list[Latencies], elapsed: float, cpu: float) -> dict[str, Any]:
    walls, cpus = (sorted(each[of] for mine in latencies for each in mine) for of in (0, 1))
    calls = len(walls)
    return {
        "calls": calls,
        "rate": calls / elapsed,
        "cpu": cpu / calls,
        "p50": walls[calls // 2],
        "p99": walls[calls * 99 // 100],
        "p99_cpu": cpus[calls * 99 // 100],
    }
