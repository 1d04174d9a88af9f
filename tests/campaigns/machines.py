"""Workers in processes of their own pay one batch over PostgreSQL, while they and the database are killed.

    python -m tests.campaigns.machines 100000 4 --kill-every 2 --restarts 2
    python -m tests.campaigns.machines 100000 4                                undisturbed

Each worker takes its rate from the ledger's database. `--kill-every`: after so many seconds a worker is
killed with SIGKILL and another started in its place. `--restarts`: so many times the database is stopped
as by a power cut and started again. `--scale`: divides the limits of the service, for a machine too small
for all of it. The service's books decide: each row once, the sums equal, no 429, a clean certificate. It
prints the rate over the limit, and how even the work was. The last rows may wait for the lease of a dead
worker to end, so the rate is also told without the last twentieth. Exits 1 on a breach.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import attrs

from benchmarks.bulk_service import Service, serving
from payments_async import AsyncPayments, RateLimits
from payments_async.bulk import SharedBatch, workers
from tests.support.processes import Batch, sums_of
from tests.support.servers import PostgresServer, postgres_server

LIMIT: Final = 60_000
NAME: Final = "campaign"
POLL: Final = 0.5
PATIENCE: Final = 180.0
"""Seconds without a decided row after which the campaign gives up."""
_LEFT: Final = "SELECT coalesce(sum(unsent + in_flight + in_doubt), 0)::int FROM payments.chunks"
_CLOSED: Final = "SELECT count(*) FROM payments.batches WHERE state = 'closed'"
_BY_WORKER: Final = "SELECT rows FROM payments.workers ORDER BY started"
_TAKEN_UP: Final = """
SELECT (held.changes::json->>'pid')::int, held.wall, min(row.wall)
FROM payments.entries held JOIN payments.entries row ON row.batch = held.batch AND row.chunk = held.chunk
    AND row.kind IN ('claim', 'resend') AND row.number > held.number AND row.lease <> held.lease
WHERE held.kind = 'lease' AND NOT EXISTS (SELECT FROM payments.entries e WHERE e.batch = held.batch
    AND e.chunk = held.chunk AND e.kind = 'ended' AND e.lease = held.lease)
GROUP BY held.batch, held.chunk, held.number, held.changes, held.wall
"""
"""Of each lease that nobody gave back: its process, its time, and the next intent under another one."""


async def work(url: str, limit: int) -> None:
    """Be one worker, until it is killed."""
    async with AsyncPayments(limits=RateLimits(writes=limit)) as client:
        await workers.work(url, client, batch_id=NAME)


@attrs.define
class Fleet:
    """Worker processes."""

    url: str
    limit: int
    service: Service
    folder: Path
    processes: list[subprocess.Popen[bytes]] = attrs.field(factory=list)
    killed: dict[int, float] = attrs.field(factory=dict)
    """When each process was killed, seconds since 1970."""

    @property
    def kills(self) -> int:
        """How many were killed."""
        return len(self.killed)

    def start(self) -> None:
        """Start one more."""
        command = [sys.executable, "-m", "tests.campaigns.machines", "--work", str(self.limit)]
        environment = {**os.environ, **self.service.variables, "PAYMENTS_LEDGER": self.url}
        environment["PYTHONPATH"] = str(Path(__file__).parents[2])
        log = (self.folder / f"worker-{len(self.processes)}-{self.kills}.log").open("wb")
        self.processes.append(subprocess.Popen(command, env=environment, cwd=self.folder, stderr=log))

    def replace(self, place: int) -> None:
        """Kill one with SIGKILL, and start another."""
        victim = self.processes.pop(place)
        victim.kill()
        self.killed[victim.pid] = time.time()
        victim.wait()
        self.start()

    def revive(self) -> int:
        """Start another for each that has ended by itself. Returns how many had."""
        ended = [process for process in self.processes if process.poll() is not None]
        self.processes = [process for process in self.processes if process.poll() is None]
        for _ in ended:
            self.start()
        return len(ended)


@contextmanager
def fleet_of(count: int, url: str, limit: int, service: Service, folder: Path) -> Iterator[Fleet]:
    """Context of so many workers."""
    fleet = Fleet(url, limit, service, folder)
    try:
        for _ in range(count):
            fleet.start()
        yield fleet
    finally:
        for process in fleet.processes:
            process.kill()
            process.wait()


@attrs.frozen
class Report:
    """What a campaign came to."""

    rows: int
    limit: int
    kills: int
    restarts: int
    revived: int
    account: dict[str, Any]
    by_worker: list[int]
    taken_up: list[float]
    """Seconds from a worker's death to the next intent for a row of each chunk that it held."""
    problems: list[str]

    def used(self, rows: float, end: str) -> float:
        """The share of the limit that was used, from the first payout until so many rows were sent."""
        seconds = self.account[end] - self.account["first"]
        return float(rows / seconds * 60 / self.limit)

    def __str__(self) -> str:
        statuses = ", ".join(f"{number} {what}" for what, number in sorted(self.account["requests"].items()))
        return (
            f"{self.rows} rows, {self.kills} kills, {self.restarts} restarts of the database, "
            f"{self.revived} workers ended by themselves: {self.used(self.rows * 0.95, 'nearly_all'):.1%} of "
            f"{self.limit} a minute until 95% were sent, {self.used(self.rows, 'last'):.1%} in all, "
            f"busiest minute {self.account['busiest_minute']}, {self.account['refused']} answers 429; "
            f"rows by worker {sorted(self.by_worker, reverse=True)[:8]}; "
            f"chunks of the dead taken up after {max(self.taken_up, default=0.0):.1f} s at most; "
            f"requests: {statuses}"
        )


def run(
    folder: Path, rows: int, count: int, *, kill_every: float, restarts: int, scale: float, seed: int
) -> Report:
    """Pay one batch with so many workers."""
    batch, limit = Batch.write(folder, rows), round(LIMIT / scale)
    with postgres_server() as server, serving("bulk_sandbox", str(scale), "0") as service:
        url = server.url(server.make_database())
        asyncio.run(_planned(url, service, batch))
        with fleet_of(count, url, limit, service, folder) as fleet:
            disturber = _Disturber(server, fleet, random.Random(seed), kill_every, restarts, rows)
            revived = disturber.until_closed()
            by_worker = [number for (number,) in disturber.ask(_BY_WORKER)]
            taken_up = [
                at - fleet.killed[pid]
                for pid, since, at in disturber.ask(_TAKEN_UP)
                if since < fleet.killed.get(pid, 0.0) < at
            ]
        certificate = asyncio.run(_certified(url, service))
        account = service.account()
    problems = [*disturber.problems, *_breaches(batch, rows, certificate, account)]
    return Report(
        rows, limit, fleet.kills, disturber.restarted, revived, account, by_worker, taken_up, problems
    )


def _client(service: Service) -> AsyncPayments:
    return AsyncPayments(
        service.variables["PAYMENTS_API_KEY"], base_url=service.variables["PAYMENTS_BASE_URL"]
    )


async def _planned(url: str, service: Service, batch: Batch) -> None:
    async with _client(service) as client, SharedBatch.open(url, client, batch_id=NAME) as planned:
        await planned.load(batch.source)
        await planned.plan()


async def _certified(url: str, service: Service) -> Any:
    async with _client(service) as client, SharedBatch.open(url, client, batch_id=NAME) as paid:
        return await paid.reconcile()


@attrs.define
class _Disturber:
    """Kills workers and restarts the database until the batch is closed."""

    server: PostgresServer
    fleet: Fleet
    chance: random.Random
    kill_every: float
    restarts: int
    rows: int
    restarted: int = 0
    problems: list[str] = attrs.field(factory=list)

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        database = self.fleet.url.rpartition("/")[2]
        return self.server.query(database, statement)

    def until_closed(self) -> int:
        """Returns how many workers ended by themselves meanwhile."""
        revived, killed_at, moved_at, left = 0, time.monotonic(), time.monotonic(), self.rows
        while not self.ask(_CLOSED)[0][0]:
            time.sleep(POLL)
            now, last = time.monotonic(), left
            ((left,),) = self.ask(_LEFT)
            moved_at = now if left != last else moved_at
            if now - moved_at > PATIENCE:
                self.problems.append(f"nothing moved for {PATIENCE:g} s; {left} rows are left")
                break
            if self.kill_every and left and now - killed_at >= self.kill_every:
                killed_at = now
                self.fleet.replace(self.chance.randrange(len(self.fleet.processes)))
            share_left = 1 - (self.restarted + 1) / (self.restarts + 1)
            if self.restarted < self.restarts and left < self.rows * share_left:
                self.restarted += 1
                self.server.restart()
            revived += self.fleet.revive()
        return revived


def _breaches(batch: Batch, rows: int, certificate: Any, account: dict[str, Any]) -> list[str]:
    sums = {currency: Decimal(amount) for currency, amount in account["sums"].items()}
    facts = {
        f"{account['duplicates']} references are there twice": not account["duplicates"],
        f"{account['payouts']} payouts were made for {rows} rows": account["payouts"] == rows,
        f"the books' sums differ from the input's: {sums}": sums == sums_of(batch.rows),
        f"{account['refused']} requests were answered 429": not account["refused"],
        f"the certificate is not clean: {certificate}": certificate.is_clean,
    }
    return [problem for problem, well in facts.items() if not well]


def main() -> int:
    """1 when a guarantee was broken."""
    parser = argparse.ArgumentParser("python -m tests.campaigns.machines", description=__doc__)
    parser.add_argument("rows", type=int, nargs="?", default=0)
    parser.add_argument("workers", type=int, nargs="?", default=4)
    parser.add_argument("--kill-every", type=float, default=0.0)
    parser.add_argument("--restarts", type=int, default=0)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", type=int, default=0, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.work:
        asyncio.run(work(os.environ["PAYMENTS_LEDGER"], asked.work))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        report = run(
            Path(folder),
            asked.rows,
            asked.workers,
            kill_every=asked.kill_every,
            restarts=asked.restarts,
            scale=asked.scale,
            seed=asked.seed,
        )
        logs = {log.name: log.read_text()[-1500:] for log in Path(folder).glob("*.log") if log.stat().st_size}
    print(report)
    for name, text in [*logs.items()][:4]:
        print(f"{name}: {text}", file=sys.stderr)
    for problem in report.problems:
        print(problem, file=sys.stderr)
    return bool(report.problems)


if __name__ == "__main__":
    sys.exit(main())
