"""What does it take to archive a closed batch of PostgreSQL, and to check the archive alone?

    python -m benchmarks.archive                  # 1,000,000 rows: 3 GB of disk, a quarter of an hour
    python -m benchmarks.archive 20000

A server of its own is started. Rows are imported, and paid as in `postgresql_ledger`; then the commands
`archive` and `check` run, each in a process of its own, whose time, CPU and peak memory count.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from benchmarks.bodies import ARGUMENTS
from benchmarks.postgresql_ledger import BATCH, URL, now, paid
from payments_async import PayoutRequest
from payments_async._runtime import SYSTEM
from payments_async.bulk._ledger.postgresql import batches
from payments_async.bulk._ledger.postgresql.database import Database
from payments_async.bulk._ledger.postgresql.ledger import PostgresLedger
from payments_async.bulk._loading.new_rows import RowIdentifiers
from payments_async.bulk._protocol.records import Binding, NewRow
from payments_async.bulk._protocol.stop_rules import StopRules
from payments_async.bulk.sources import Row


async def made(count: int) -> AsyncIterator[NewRow]:
    """Rows as an input gives them."""
    naming, request = RowIdentifiers("sandbox", BATCH, "", True), PayoutRequest(**ARGUMENTS)
    for number in range(1, count + 1):
        yield naming.new_row(Row(number, number + 1, str(number), None, request))


async def filled(url: str, count: int, group: int) -> None:
    """Import, pay and close a batch."""
    database = await Database.open(url, SYSTEM)
    ledger = await PostgresLedger.open(database, BATCH, clock=now, create=True, must_exist=False)
    await ledger.import_rows(Binding(BATCH, "sandbox", URL, "key", "input", "{}"), made(count))
    await ledger.plan(StopRules())
    await paid(database, group)
    assert await batches.close(database, ledger.facts.batch, now, {})
    await database.close()


def run(*arguments: str) -> dict[str, Any]:
    """What a command takes."""
    begun = time.perf_counter()
    command = [sys.executable, "-m", "payments_async", "payouts", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert process.stdout is not None
    said = process.stdout.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, said
    return {
        "seconds": round(time.perf_counter() - begun, 1),
        "cpu": round(usage.ru_utime + usage.ru_stime, 1),
        "peak_mib": round(usage.ru_maxrss / 1024),
    }


def main() -> None:
    """Measure, and print the figures."""
    sys.path.append(str(Path(__file__).parents[1]))
    from tests.support.servers import postgres_server

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="?", type=int, default=1_000_000)
    parser.add_argument("--group", type=int, default=200, help="outcomes in a commit")
    parser.add_argument("--version", type=int, default=18)
    asked = parser.parse_args()
    with postgres_server(version=asked.version) as server, tempfile.TemporaryDirectory() as folder:
        name, file = server.make_database(), str(Path(folder, "archive.parquet"))
        asyncio.run(filled(server.url(name), asked.rows, asked.group))
        ledger = (server.url(name), "--batch-id", BATCH)
        found: dict[str, Any] = {}
        for kind, options in {"": (), " with accounts": ("--accounts", "--overwrite")}.items():
            found[f"archive{kind}"] = run("archive", *ledger, "--to", file, *options)
            found[f"archive{kind}"]["mb"] = round(Path(file).stat().st_size / 1e6, 1)
            found[f"check of the archive{kind}"] = run("check", file)
        found["check of the ledger"] = run("check", *ledger)
        ((size,),) = server.query(name, "SELECT pg_database_size(current_database())")
        found["database_mb"] = round(size / 1e6)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
