"""Workers that are stopped again and again, and cut off from the database: who writes under which lease.

    python -m tests.campaigns.leases 6000 4 [--seed 1]
    python -m tests.campaigns.leases 3000 4 --ablate last_check [expiry] [fencing]

Each worker process runs for a few seconds, and is then stopped (SIGSTOP) or cut off from the database for 5
to 60 seconds, until the batch is closed. A worker notes the time and its lease right before it writes the
first byte of a payout; the ledger has the order of the leases. No payout may be begun under an older lease of
a chunk more than 50 ms after one was begun under a newer lease of it. The service's books decide on the rest:
each row once, and a clean certificate.

`--ablate` leaves out the last check before the first byte, the end of the work when its lease has expired,
or the fencing of intents: then it must find some. Exits 1 on a breach, or when an ablation finds none.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import random
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import attrs

from payments_async import AsyncPayments
from payments_async.bulk import SharedBatch
from payments_async.sandbox import Sandbox, SandboxLimits
from tests.support.processes import Batch
from tests.support.servers import PostgresServer, postgres_server
from tests.support.worker_processes import WorkerProcess, Write, worker_process

NAME: Final = "campaign"
TOLERANCE: Final = 0.05
"""Seconds by which a payout under an older lease may follow one under a newer lease."""
WRITES: Final = 1_200
"""Payouts a minute of one worker: its other rows wait for that under their leases."""
STOPS: Final = (5.0, 60.0)
RESTS: Final = (1.0, 8.0)
"""Seconds in which a worker runs undisturbed."""
_STEP: Final = 0.25
CUTS: Final = 0.3
"""The share of disturbances that cut a worker off instead of stopping it."""
REAL: Final[Mapping[str, float]] = {}
"""The product's own leases."""
_LEASES: Final = (
    "SELECT chunk, encode(lease, 'hex') FROM payments.entries WHERE kind = 'lease' ORDER BY chunk, number"
)
_TAKEN: Final = (
    "SELECT (SELECT count(*) FROM payments.entries WHERE kind = 'lease') - "
    "(SELECT count(*) FROM payments.entries WHERE kind = 'ended')"
)


@attrs.frozen
class Settings:
    """How workers are disturbed."""

    seed: int = 1
    stops: tuple[float, float] = STOPS
    rests: tuple[float, float] = RESTS
    timing: Mapping[str, float] = REAL
    ablate: tuple[str, ...] = ()


@attrs.define
class Report:
    """What a campaign came to."""

    rows: int
    stops: int = 0
    cuts: int = 0
    restarts: int = 0
    """Workers that ended because the database was lost to them."""
    taken: int = 0
    """Leases that ran out: another worker took the chunk."""
    late: list[str] = attrs.field(factory=list)
    """Payouts begun under an older lease after a newer one."""
    problems: list[str] = attrs.field(factory=list)

    def __str__(self) -> str:
        return (
            f"{self.rows} rows, {self.stops} stops, {self.cuts} cut-offs, {self.restarts} workers started "
            f"anew, {self.taken} leases taken over: {len(self.late)} payouts under an older lease after "
            "one under a newer"
        )


def too_late(writes: Sequence[Write], order: Sequence[tuple[int, str]]) -> list[str]:
    """The payouts begun under an older lease of a chunk after one under a newer lease. Pure."""
    rank = {lease: place for place, (_, lease) in enumerate(order)}
    by_chunk: dict[int, list[Write]] = defaultdict(list)
    for write in writes:
        by_chunk[write.chunk].append(write)
    found = []
    for chunk, of_chunk in by_chunk.items():
        begun: dict[int, float] = {}
        for write in sorted(of_chunk):
            begun.setdefault(rank[write.lease], write.at)
        for write in of_chunk:
            newer = [at for place, at in begun.items() if place > rank[write.lease]]
            if newer and write.at > min(newer) + TOLERANCE:
                found.append(f"chunk {chunk}: {write.at - min(newer):.3f} s after one under a newer lease")
    return found


class Disturbed:
    """Worker processes that are stopped and cut off until the batch is closed."""

    def __init__(
        self, server: PostgresServer, database: str, sandbox: Sandbox, folder: Path, settings: Settings
    ) -> None:
        self._place = (server, database, sandbox, folder)
        self._server, self._database, self._settings = server, database, settings
        self._stack = ExitStack()
        self._started: list[WorkerProcess] = []
        self.report = Report(0)

    async def run(self, count: int) -> None:
        """Let so many workers pay."""
        with self._stack:
            tasks = [asyncio.ensure_future(self._disturb(place)) for place in range(count)]
            try:
                await asyncio.gather(*tasks)
            finally:
                for task in tasks:
                    task.cancel()
            self.report.late = too_late(
                [write for worker in self._started for write in worker.writes],
                self._server.query(self._database, _LEASES),  # type: ignore[arg-type] # rows of two
            )
            self.report.taken = self._server.query(self._database, _TAKEN)[0][0]

    @property
    def _is_closed(self) -> bool:
        return self._server.query(self._database, "SELECT state FROM payments.batches") == [("closed",)]

    def _start(self) -> WorkerProcess:
        settings = self._settings
        process = worker_process(
            *self._place,
            f"worker-{len(self._started)}",
            ablate=settings.ablate,
            timing=dict(settings.timing),
            writes=WRITES,
            until_idle=False,
            concurrency=16,
        )
        self._started.append(self._stack.enter_context(process))
        return self._started[-1]

    async def _disturb(self, place: int) -> None:
        chance, worker = random.Random(f"{self._settings.seed}:{place}"), self._start()
        while not self._is_closed:
            await asyncio.sleep(chance.uniform(*self._settings.rests))
            if worker.process.poll() is not None:
                self.report.restarts += 1
                worker = self._start()
            await self._disturb_once(worker, chance)

    async def _disturb_once(self, worker: WorkerProcess, chance: random.Random) -> None:
        seconds = chance.uniform(*self._settings.stops)
        if chance.random() < CUTS:
            self.report.cuts += 1
            worker.proxy.cut()
            await self._wait(seconds)
            worker.proxy.heal()
        else:
            self.report.stops += 1
            worker.freeze()
            await self._wait(seconds)
            worker.thaw()

    async def _wait(self, seconds: float) -> None:
        """Wait, but not beyond the end of the batch."""
        for _ in range(math.ceil(seconds / _STEP)):
            if not self._is_closed:
                await asyncio.sleep(_STEP)


async def play(server: PostgresServer, folder: Path, rows: int, count: int, settings: Settings) -> Report:
    """Pay one batch with so many disturbed workers."""
    batch, database = Batch.write(folder, rows), server.make_database()
    with Sandbox(limits=SandboxLimits.off()) as sandbox:
        async with (
            AsyncPayments(sandbox.api_key, base_url=sandbox.base_url) as client,
            SharedBatch.open(server.url(database), client, batch_id=NAME) as planned,
        ):
            await planned.load(str(batch.source))
            await planned.plan()
            disturbed = Disturbed(server, database, sandbox, folder, settings)
            await disturbed.run(count)
            certificate = await planned.reconcile()
        report = disturbed.report
        report.rows = rows
        paid = [(entry.currency, entry.amount) for entry in batch.entries(sandbox)]
        facts: dict[str, Any] = {
            f"{len(paid) - len(set(paid))} rows were paid twice": len(paid) == len(set(paid)),
            f"{len(batch.rows - set(paid))} rows were lost": batch.rows == set(paid),
            f"the certificate is not clean: {certificate.findings[:3]}": certificate.is_clean,
        }
        report.problems = [problem for problem, well in facts.items() if not well]
    return report


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.leases")
    parser.add_argument("rows", type=int)
    parser.add_argument("workers", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ablate", nargs="+", default=[], choices=["last_check", "expiry", "fencing"])
    options = parser.parse_args()
    settings = Settings(seed=options.seed, ablate=tuple(options.ablate))
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, postgres_server() as server:
        report = asyncio.run(play(server, Path(folder), options.rows, options.workers, settings))
    print(f"{report}; {time.perf_counter() - began:.0f} s")
    print("\n".join([*report.problems, *report.late[:10]]))
    is_as_wanted = bool(report.late) if options.ablate else not report.late
    raise SystemExit(0 if is_as_wanted and not report.problems else 1)


if __name__ == "__main__":
    main()
