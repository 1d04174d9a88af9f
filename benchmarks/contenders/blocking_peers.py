"""Blocking clients of other people's: each posts a dict and reads a dict. `blocking_peers NAME URL`.

Kept connections, JSON both ways, and else nothing tuned.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from benchmarks.contenders.blocking_rounds import Call, measured
from benchmarks.wire import BODY, KEY, body
from benchmarks.worker import serve

HEADERS = {"Authorization": f"Bearer {KEY}"}
CONNECTIONS = 64


def by_requests(base_url: str) -> Callable[[], Call]:
    """A session for each thread, since one is not made for several."""
    import requests

    def new_call() -> Call:
        session = requests.Session()
        session.headers.update(HEADERS)
        return lambda: session.post(f"{base_url}/payouts", json=body(), timeout=30).json()

    return new_call


def by_urllib3(base_url: str) -> Callable[[], Call]:
    """One pool for all threads."""
    import urllib3

    pool = urllib3.PoolManager(maxsize=CONNECTIONS, headers=HEADERS)
    return lambda: lambda: pool.request("POST", f"{base_url}/payouts", json=body(), timeout=30.0).json()


def by_httpx(base_url: str) -> Callable[[], Call]:
    """One client for all threads."""
    import httpx

    limits = httpx.Limits(max_keepalive_connections=CONNECTIONS)  # fewer than threads: its pool fails
    client = httpx.Client(headers=HEADERS, timeout=30, limits=limits)
    return lambda: lambda: client.post(f"{base_url}/payouts", json=body()).json()


def by_stripe(base_url: str) -> Callable[[], Call]:
    """A payment SDK with records and keys of its own, on requests; its own payouts at our address."""
    import stripe

    client = stripe.StripeClient(KEY, base_addresses={"api": base_url.removesuffix("/v1")})
    params: Any = {name: BODY[name] for name in ("amount", "currency", "method", "description", "metadata")}
    return lambda: lambda: client.v1.payouts.create(params)


CLIENTS = {"requests": by_requests, "urllib3": by_urllib3, "httpx": by_httpx, "stripe": by_stripe}


def main(name: str, base_url: str) -> None:
    """Serve rounds."""
    new_call = CLIENTS[name](base_url)
    serve(lambda threads, seconds: measured(new_call, threads=threads, seconds=seconds))


if __name__ == "__main__":
    main(*sys.argv[1:])
