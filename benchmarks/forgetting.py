"""What does it take to forget a closed batch in PostgreSQL, and what does that free?

    python -m benchmarks.forgetting                  # 1,000,000 rows: about 5 minutes
    python -m benchmarks.forgetting 100000

A server of its own is started, and a batch imported, paid and closed as in `benchmarks.postgresql_ledger`.
A process of its own forgets it, so that its peak of memory is that of forgetting alone.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.postgresql_ledger import BATCH, URL, each, made, now, paid
from payments_async._runtime import SYSTEM
from payments_async.bulk import BatchDatabase
from payments_async.bulk._ledger.postgresql import batches
from payments_async.bulk._ledger.postgresql.database import Database
from payments_async.bulk._ledger.postgresql.ledger import PostgresLedger
from payments_async.bulk._protocol.records import Binding
from payments_async.bulk._protocol.stop_rules import StopRules

GROUP = 200


async def closed(url: str, count: int) -> None:
    """Import a batch of so many rows, pay it and close it."""
    database = await Database.open(url, SYSTEM)
    ledger = await PostgresLedger.open(database, BATCH, clock=now, create=True, must_exist=False)
    await ledger.import_rows(Binding(BATCH, "sandbox", URL, "key", "input", "{}"), each(made(count)))
    await ledger.plan(StopRules())
    assert await paid(database, GROUP) == count
    assert await batches.close(database, ledger.facts.batch, now, {})
    await database.close()


async def forgotten(url: str) -> dict[str, Any]:
    """Forget it; print what that took."""
    figures: dict[str, Any] = {}
    async with BatchDatabase.open(url) as database:
        for name, dry_run in (("dry run", True), ("forget", False)):
            began = time.perf_counter()
            (done,) = await database.forget(0.0, unsettled=[BATCH], dry_run=dry_run)
            assert done.kept is None, done.kept
            figures[f"{name} s"] = round(time.perf_counter() - began, 2)
        figures |= {"rows": done.rows, "tables MB": round(done.size / 1e6)}
        (listed,) = await database.batches()
        assert listed.report.counts["created"] == done.rows
    return figures


def peak() -> int:
    """MB of memory that this process has had at most."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line)
    return round(int(line.split()[1]) / 1e3)


def measured(server: Any, count: int) -> dict[str, Any]:
    """Make a batch of so many rows, forget it, and look for references of it."""
    name = server.make_database()
    url = server.url(name)
    size = "SELECT pg_database_size(current_database())"
    asyncio.run(closed(url, count))
    server.query(name, "CHECKPOINT")
    ((before,),) = server.query(name, size)
    command = [sys.executable, "-m", "benchmarks.forgetting", "--at", url]
    figures = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    server.query(name, "CHECKPOINT")
    ((after,),) = server.query(name, size)
    hashes = "SELECT pg_total_relation_size('payments.forgotten_references')"
    sizes = {
        "database MB before": before,
        "after": after,
        "of which hashes": server.query(name, hashes)[0][0],
    }
    return {**figures, **{what: round(size / 1e6, 1) for what, size in sizes.items()}}


def main() -> None:
    """Measure, and print the figures."""
    sys.path.append(str(Path(__file__).parents[1]))
    from tests.support.servers import postgres_server

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="?", type=int, default=1_000_000)
    parser.add_argument("--at", help="forget the batch of this database, and nothing else")
    asked = parser.parse_args()
    if asked.at:
        found = {**asyncio.run(forgotten(asked.at)), "peak MB": peak()}
    else:
        with postgres_server(version=18) as server:
            found = measured(server, asked.rows)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
