"""A worker in a process of its own, for tests that kill it, stop it or cut it off.

    python -m tests.support.worker_process '{"url": …}'

Its options come as JSON; the API key from the environment. When a request is about to be written, the time,
the lease and the row are noted in `notes`, a line each, right before the first byte. `ablate` leaves out a
rule, to see that it is needed: `last_check`, `expiry`, `fencing`.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import attrs

from payments_async import AsyncPayments, RateLimits
from payments_async._http.types import HTTPRequest
from payments_async.bulk._leasing.lease_keeper import LeaseKeeper
from payments_async.bulk._ledger.postgresql.commits import SharedCommitter
from payments_async.bulk._ledger.postgresql.leases import Lease
from payments_async.bulk._protocol import machines
from payments_async.bulk.ledger_errors import LedgerUnavailable
from payments_async.bulk.workers import PayoutWorker


def note_writes(path: str) -> None:
    """Note each creation right before its first byte is written, after the last check of its lease."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    is_withheld = HTTPRequest.is_withheld.fget  # type: ignore[attr-defined] # of a property
    assert is_withheld is not None

    def noted(request: HTTPRequest) -> bool:
        withheld: bool = is_withheld(request)
        lease = getattr(request.may_send, "__self__", None)
        if not withheld and isinstance(lease, Lease):
            line = f"{time.monotonic()} {lease.id.hex()} {lease.chunk}\n"
            os.write(file, line.encode())
        return withheld

    HTTPRequest.is_withheld = property(noted)  # type: ignore[method-assign,assignment] # seen by the tests


def ablate(rule: str) -> None:
    """Leave out a rule."""
    if rule == "last_check":
        HTTPRequest.is_withheld = property(lambda _: False)  # type: ignore[assignment,method-assign] # an ablation
    elif rule == "expiry":
        LeaseKeeper._expire = lambda self: None  # type: ignore[method-assign] # an ablation
    elif rule == "fencing":
        SharedCommitter.require_leases = lambda self, locked, leases: None  # type: ignore[method-assign] # an ablation
    else:
        raise ValueError(rule)


@attrs.frozen(kw_only=True)
class ProcessOptions:
    """What the process is told."""

    url: str
    base_url: str
    notes: str
    worker: dict[str, Any]
    """Options of `PayoutWorker`."""
    lease: float = machines.LEASE
    margin: float = machines.MARGIN
    renew_every: float = machines.RENEW_EVERY
    ablate: tuple[str, ...] = ()
    writes: int = 60_000
    """Payouts a minute, so that rows wait for the rate limit under their leases."""


async def main(options: ProcessOptions) -> int:
    """Work until SIGTERM, or until nothing is left to do; the exit code."""
    for rule in options.ablate:
        ablate(rule)
    note_writes(options.notes)
    machines.LEASE, machines.MARGIN = options.lease, options.margin  # type: ignore[misc] # short for a test
    machines.RENEW_EVERY = options.renew_every  # type: ignore[misc] # short for a test
    limits = RateLimits(writes=options.writes).share(1)  # not the database's, which is cut off
    async with AsyncPayments(
        os.environ["PAYMENTS_API_KEY"], base_url=options.base_url, limits=limits
    ) as client:
        worker = PayoutWorker(options.url, client, **options.worker)
        stop: Callable[[], None] = worker.stop
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)
        try:
            report = await worker.run()
        except LedgerUnavailable:  # cut off when it began
            return 75
    print(json.dumps(attrs.asdict(report)), flush=True)
    return report.exit_code


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main(ProcessOptions(**json.loads(sys.argv[1])))))
