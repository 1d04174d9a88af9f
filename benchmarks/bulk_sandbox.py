"""The sandbox in a process of its own, with every request counted, as far away as is wished.

`python -m benchmarks.bulk_sandbox SCALE SECONDS` divides its limits and answers creations that much later. It
prints one JSON line with its address and key; a line on its standard input makes it print its books and
leave. Its limits are enforced in every minute that can be laid, not only in those of the clock.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from array import array
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from itertools import takewhile
from typing import Any

import attrs

from benchmarks.bulk_watch import memory
from payments_async.sandbox import Sandbox, SandboxLimits

_EVERY = 2.0
"""Seconds between two looks at the request log, which keeps the latest 20,000."""


class Counting:
    """Counts the sandbox's requests by operation and status, and keeps the times of the creations."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._last = 0
        self.statuses: Counter[str] = Counter()
        self.replayed = 0
        self.lost = 0
        """Requests that left the log before they were counted: 0, or the counts are too low."""
        self.sent = array("d")
        """When each creation came, seconds since 1970."""

    def look(self) -> None:
        """Count what came since the last look."""
        latest_first = reversed(self._sandbox.requests)
        fresh = [*takewhile(lambda each: int(each.request_id[4:]) > self._last, latest_first)][::-1]
        if not fresh:
            return
        self.lost += int(fresh[0].request_id[4:]) - self._last - 1
        self._last = int(fresh[-1].request_id[4:])
        for each in fresh:
            self.statuses[f"{each.operation} {each.status}"] += 1
            self.replayed += each.replayed
            if each.operation == "payouts.create":
                self.sent.append(each.at)


def busiest(times: Sequence[float], window: float = 60.0) -> int:
    """The most events in any half-open window of so many seconds."""
    most = first = 0
    for last, at in enumerate(times):
        while at - times[first] >= window:
            first += 1
        most = max(most, last + 1 - first)
    return most


def books(sandbox: Sandbox) -> dict[str, Any]:
    """Payouts and their sums, and whether a reference is there twice."""
    entries = sandbox.books.payouts()
    sums: dict[str, Decimal] = {}
    for entry in entries:
        sums[entry.currency] = sums.get(entry.currency, Decimal(0)) + entry.amount
    twice = len(entries) - len({entry.reference for entry in entries})
    return {
        "payouts": len(entries),
        "sums": {currency: str(amount) for currency, amount in sorted(sums.items())},
        "duplicates": twice,
    }


def account(sandbox: Sandbox, counting: Counting, idle: int) -> dict[str, Any]:
    """All that is told at the end."""
    counting.look()
    sent = counting.sent
    return {
        **books(sandbox),
        "requests": dict(counting.statuses),
        "replayed": counting.replayed,
        "uncounted": counting.lost,
        "refused": sum(n for what, n in counting.statuses.items() if what.endswith(" 429")),
        "first": sent[0] if sent else 0.0,
        "last": sent[-1] if sent else 0.0,
        "nearly_all": sent[len(sent) * 19 // 20] if sent else 0.0,
        "busiest_minute": busiest(sent),
        "memory": memory(os.getpid()),
        "memory_idle": idle,
    }


def main() -> None:
    """Serve until a line comes."""
    scale, latency = map(float, sys.argv[1:])
    # reads are not what is measured; the client paces them as always
    limits = attrs.evolve(SandboxLimits().scaled(1 / scale), reads=10_000, window="sliding")
    with Sandbox(limits=limits) as sandbox:
        if latency:
            sandbox.on("payouts.create").respond(f"slow:{latency}", times=None)
        idle = memory(os.getpid())
        print(json.dumps({"base_url": sandbox.base_url, "api_key": sandbox.api_key}), flush=True)
        counting, told = Counting(sandbox), threading.Event()

        def hear() -> None:
            sys.stdin.readline()
            told.set()

        threading.Thread(target=hear, daemon=True).start()
        while not told.wait(_EVERY):
            counting.look()
        print(json.dumps(account(sandbox, counting, idle)), flush=True)


if __name__ == "__main__":
    main()
