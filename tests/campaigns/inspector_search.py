"""How long the first paint of the overview takes with a full journal, search by search."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator

from payments_async.sandbox import Sandbox, SandboxLimits, VirtualClock
from payments_async.sandbox._journal import ENTRIES

SEARCHES = (
    "",
    "status:201",
    "status:5xx",
    "status:none",
    "is:failed",
    "op:payouts.create",
    "ref:june-7*",
    "ref:nothing*",
    "amount:>1000",
    "amount:<1",
    "took:>1h",
    "fault:any",
    "key:june-77",
    "event:payout.completed",
    "june",
    "nowhere",
    "-status:201 -is:record",
    "june status:503 amount:>5",
)
"""Common, rare and empty ones of every term."""

MOST = 0.3
"""Seconds that a first paint may take on a quiet machine."""


def paints() -> Iterator[tuple[str, float, int]]:
    """Each search, its seconds and its bytes: the best of three."""
    sandbox = full()
    for search in SEARCHES:
        seconds = []
        for _ in range(3):
            began = time.perf_counter()
            answer = sandbox.handle("GET", "/_sandbox/?find=" + search.replace(" ", "+"))
            seconds.append(time.perf_counter() - began)
            assert answer.status == 200, search
        yield search or "(none)", min(seconds), len(answer.body)


def full(entries: int = ENTRIES) -> Sandbox:
    """A sandbox whose journal is full: creations, faults, ends of payouts, reads."""
    sandbox = Sandbox(clock=VirtualClock.frozen(), limits=SandboxLimits.off())
    number = 0
    while sandbox.journal.last < entries:
        scenario = {"X-Sandbox-Scenario": "http:503"} if number % 500 == 0 else {}
        body = {
            "amount": 10 + number % 900,
            "currency": "GHS",
            "method": "mobile_money",
            "instrument": {"type": "phone", "phone_number": "+233200000001", "country": "GH"},
            "reference": f"june-{number}",
        }
        key = {"Authorization": f"Bearer {sandbox.api_key}", "X-Idempotency-Key": f"june-{number}"}
        sandbox.handle("POST", "/v1/payouts", key | scenario, json.dumps(body).encode())
        number += 1
        if number % 50 == 0:
            sandbox.handle("GET", "/v1/payouts?per_page=5", key)
            sandbox.advance(1)
    return sandbox


def main() -> int:
    """1 when a first paint took too long."""
    print(f"{ENTRIES:,} entries; at most {MOST} s on a quiet machine")
    worst = 0.0
    for name, seconds, size in paints():
        worst = max(worst, seconds)
        print(f"{seconds * 1e3:7.0f} ms  {size / 1e3:5.1f} kB  {name}")
    return int(worst > MOST)


if __name__ == "__main__":
    sys.exit(main())
