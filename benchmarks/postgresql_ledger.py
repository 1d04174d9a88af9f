"""What does the ledger in PostgreSQL cost per row, with the network and the service taken out?

    python -m benchmarks.postgresql_ledger                  # 100,000 rows
    python -m benchmarks.postgresql_ledger 20000 --group 25

A server of its own is started. Rows are imported, claimed 384 at a time under leases, and their outcomes
recorded, `--group` in a commit. Client CPU is this process's. Server CPU is that of all processes of the
server, read from /proc; WAL and HOT are the server's own figures.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.bodies import ARGUMENTS
from payments_async import PayoutRequest
from payments_async._runtime import SYSTEM
from payments_async.bulk._ledger.postgresql.database import Database
from payments_async.bulk._ledger.postgresql.granting import grant
from payments_async.bulk._ledger.postgresql.leased_chunks import LeasedChunks
from payments_async.bulk._ledger.postgresql.leases import Work, give_back
from payments_async.bulk._ledger.postgresql.ledger import PostgresLedger
from payments_async.bulk._ledger.postgresql.schema import table_of
from payments_async.bulk._ledger.postgresql.work import due_work, open_batches
from payments_async.bulk._ledger.postgresql.worker_registry import Worker
from payments_async.bulk._loading.new_rows import RowIdentifiers
from payments_async.bulk._protocol.clocks import Timestamps
from payments_async.bulk._protocol.records import Binding, NewRow, RowOutcome
from payments_async.bulk._protocol.row_state import confirm
from payments_async.bulk._protocol.stop_rules import Account, StopRules
from payments_async.bulk.sources import Row

BATCH = "benchmark"
URL = "https://sandbox.test/v1"
CLAIMED = 384
TICKS = os.sysconf("SC_CLK_TCK")


def made(count: int) -> Iterator[NewRow]:
    """Rows as an input gives them."""
    naming, request = RowIdentifiers("sandbox", BATCH, "", True), PayoutRequest(**ARGUMENTS)
    for number in range(1, count + 1):
        yield naming.new_row(Row(number, number + 1, str(number), None, request))


async def each(rows: Iterable[NewRow]) -> AsyncIterator[NewRow]:
    """The rows, one after the other."""
    for row in rows:
        yield row


def now() -> Timestamps:
    """The time on this process's clocks."""
    return Timestamps(time.time(), time.monotonic(), "benchmark", time.time())


def server_cpu(postmaster: int) -> float:
    """Seconds of CPU that a server's processes have taken so far, ended ones included."""
    spent = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended
                continue
            if int(entry.name) == postmaster:
                spent += sum(map(int, fields[11:15]))
            elif int(fields[1]) == postmaster:
                spent += sum(map(int, fields[11:13]))
    return spent / TICKS


class Spent:
    """What a part took."""

    def __init__(self, server: Any, database: str, rows: int) -> None:
        self._server, self._database, self._rows = server, database, rows
        self._postmaster = int((server.data / "postmaster.pid").read_text().split()[0])

    def _wal(self) -> int:
        return int(self._server.query(self._database, "SELECT pg_current_wal_lsn() - '0/0'::pg_lsn")[0][0])

    def __enter__(self) -> Spent:
        self._before = (self._wal(), server_cpu(self._postmaster), time.process_time(), time.perf_counter())
        return self

    def __exit__(self, *_: object) -> None:
        taken = (time.process_time(), time.perf_counter())
        after = (self._wal(), server_cpu(self._postmaster), *taken)
        wal, server, client, wall = (b - a for a, b in zip(self._before, after, strict=True))
        self.figures = {
            "client_us": round(client / self._rows * 1e6, 1),
            "server_us": round(server / self._rows * 1e6, 1),
            "wall_us": round(wall / self._rows * 1e6, 1),
            "wal_bytes": round(wal / self._rows),
        }


async def paid(database: Database, group: int) -> int:
    """Claim all rows and record that each was created. Returns how many."""
    worker = Worker(b"b" * 16, "host", os.getpid(), "0", 2, Account("sandbox", URL, "key"))
    (batch,), rows = await open_batches(database, worker, None), 0
    while due := await due_work(database, [batch.batch], [Work.SEND], 1):
        leases = await grant(database, worker, batch, chunk=due[0].chunk)
        ledger = await LeasedChunks.under(database, leases, clock=now)
        while (claim := await ledger.claim(CLAIMED)).rows:
            rows += len(claim.rows)
            outcomes = [
                RowOutcome(row.number, confirm(row.known, f"po_{row.number:020}"), "pending")
                for row in claim.rows
            ]
            for start in range(0, len(outcomes), group):
                await ledger.record(outcomes[start : start + group])
        await give_back(database, worker, leases)
    return rows


async def measured(server: Any, count: int, group: int) -> dict[str, Any]:
    """Import and pay so many rows."""
    name = server.make_database()
    rows = [*made(count)]
    database = await Database.open(server.url(name), SYSTEM)
    ledger = await PostgresLedger.open(database, BATCH, clock=now, create=True, must_exist=False)
    with Spent(server, name, count) as importing:
        await ledger.import_rows(Binding(BATCH, "sandbox", URL, "key", "input", "{}"), each(rows))
    await ledger.plan(StopRules())
    server.query(name, "CHECKPOINT")
    with Spent(server, name, count) as paying:
        assert await paid(database, group) == count
    with Spent(server, name, count) as checking:
        report = await ledger.check()
        assert not report.findings, report.findings
    table = table_of("row_states", ledger.facts.batch.batch).removeprefix("payments.")
    await database.close()  # a session hands in its counts when it ends
    updates = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = %s"
    (states,), (chunks,) = (server.query(name, updates, of) for of in (table, "chunks"))
    return {
        "import": importing.figures,
        "pay": {
            **paying.figures,
            "hot_percent": round(100 * states[1] / max(states[0], 1)),
            "chunk_updates": f"{chunks[0]}, of which {chunks[1]} are HOT",
        },
        "check": checking.figures,
    }


def main() -> None:
    """Measure, and print the figures."""
    sys.path.append(str(Path(__file__).parents[1]))
    from tests.support.servers import postgres_server

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="?", type=int, default=100_000)
    parser.add_argument("--group", type=int, default=200, help="outcomes in a commit")
    parser.add_argument("--version", type=int, default=18)
    asked = parser.parse_args()
    with postgres_server(version=asked.version) as server:
        found = asyncio.run(measured(server, asked.rows, asked.group))
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
