"""Rounds of blocking calls: `blocking_calls payments|requests URL`. Runs in either environment."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from benchmarks.wire import HEAD, KEY, body
from benchmarks.worker import serve

Call = Callable[[], object]
"""One call, answer read."""
WARM = 20


def by_payments(base_url: str) -> Callable[[], Call]:
    """One client for all threads."""
    from benchmarks.bodies import UNPACED, arguments
    from payments_sync import Payments

    client = Payments(KEY, base_url=base_url, limits=UNPACED)
    return lambda: lambda: client.payouts.create(**arguments())


def by_requests(base_url: str) -> Callable[[], Call]:
    """A session for each thread, since one is not made for several: kept connections, JSON both ways."""
    import requests

    def new_call() -> Call:
        session = requests.Session()
        session.headers.update(HEAD)
        return lambda: session.post(f"{base_url}/payouts", json=body(), timeout=30).json()

    return new_call


CLIENTS = {"payments": by_payments, "requests": by_requests}


def measured(new_call: Callable[[], Call], *, threads: int, calls: int) -> dict[str, float]:
    """CPU seconds a call, the calls shared among threads that each have one of their own, warm before."""
    mine = [new_call() for _ in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(partial(repeated, times=WARM), mine))
        began, each = time.process_time(), calls // threads
        list(pool.map(partial(repeated, times=each), mine))
    return {"cpu": (time.process_time() - began) / (each * threads)}


def repeated(call: Call, times: int) -> None:
    """One call after the other."""
    for _ in range(times):
        call()


def main(name: str, base_url: str) -> None:
    """Serve rounds."""
    new_call = CLIENTS[name](base_url)
    serve(lambda threads, calls: measured(new_call, threads=threads, calls=calls))


if __name__ == "__main__":
    main(*sys.argv[1:])
