"""What does it cost the database to find due work and to grant it, while many batches are open?

    python -m benchmarks.due_work                          # 20 batches of 1,000 chunks
    python -m benchmarks.due_work --idle 8 --seconds 30    # workers that find nothing to do

A server of its own is started. A worker asks for work and is granted a chunk: with all chunks still to be
sent, with ten of each batch left, and with rows in doubt in all of them. Server CPU is that of all its
processes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, Final

from benchmarks.postgresql_ledger import URL, each, made, now, server_cpu
from payments_async import AsyncPayments
from payments_async._runtime import SYSTEM
from payments_async.bulk._ledger import importing
from payments_async.bulk._ledger.postgresql import importing as shared_importing
from payments_async.bulk._ledger.postgresql.database import Database
from payments_async.bulk._ledger.postgresql.granting import grant
from payments_async.bulk._ledger.postgresql.leases import Work, give_back
from payments_async.bulk._ledger.postgresql.ledger import PostgresLedger
from payments_async.bulk._ledger.postgresql.work import due_work, open_batches
from payments_async.bulk._ledger.postgresql.worker_registry import Worker
from payments_async.bulk._protocol.records import Binding
from payments_async.bulk._protocol.stop_rules import Account, StopRules
from payments_async.bulk.workers import PayoutWorker

KINDS: Final = (Work.SEND, Work.LOOK, Work.CLOSE)
STATES: Final = {
    "all to be sent": (),
    "ten chunks left": (
        "unsent = 0, created = 1, totals = replace(c.totals, 'not_started', 'not_final')",
        10,
    ),
    "all in doubt, none due": (
        "unsent = 0, created = 0, in_doubt = 1, look_at = clock_timestamp() + interval '1 h', "
        "totals = regexp_replace(c.totals, 'not_started|not_final', 'in_doubt')",
        0,
    ),
}
"""{state of the batches: how it is made from the one before, but for so many chunks at the end of each}."""


async def filled(server: Any, name: str, batches: int, chunks: int) -> None:
    """Import and plan so many batches of so many chunks, of a row each."""
    importing.BLOCK, shared_importing._CHUNKS = 1, chunks  # type: ignore[misc] # rows would only take time
    for number in range(batches):
        database = await Database.open(server.url(name), SYSTEM)
        batch_id = f"batch {number}"
        ledger = await PostgresLedger.open(database, batch_id, clock=now, create=True, must_exist=False)
        binding = Binding(batch_id, "sandbox", URL, "key", f"input {number}", "{}")
        await ledger.import_rows(binding, each(made(chunks)))
        await ledger.plan(StopRules())
        await database.close()


async def asked(server: Any, name: str, times: int) -> dict[str, float]:
    """Ask for work, and for a lease of the first that is found, so many times."""
    database = await Database.open(server.url(name), SYSTEM)
    postmaster = int((server.data / "postmaster.pid").read_text().split()[0])
    worker = Worker(b"b" * 16, "host", os.getpid(), "0", 2, Account("sandbox", URL, "key"))
    spent = {"find": [0.0, 0.0], "grant": [0.0, 0.0]}

    def add(part: str, cpu: float, wall: float) -> None:
        spent[part][0] += server_cpu(postmaster) - cpu
        spent[part][1] += time.perf_counter() - wall

    due, leases = [], []
    for _ in range(times):
        at = server_cpu(postmaster), time.perf_counter()
        open_now = {batch.batch_id: batch for batch in await open_batches(database, worker, None)}
        due = await due_work(database, [batch.batch for batch in open_now.values()], KINDS, 16)
        add("find", *at)
        if due:
            at = server_cpu(postmaster), time.perf_counter()
            leases = await grant(database, worker, open_now[due[0].batch_id], chunk=due[0].chunk)
            add("grant", *at)
            await give_back(database, worker, leases)
    await database.close()
    return {
        "due": len(due),
        **{f"{part}_server_ms": round(cpu / times * 1e3, 2) for part, (cpu, _) in spent.items()},
        **{f"{part}_wall_ms": round(wall / times * 1e3, 2) for part, (_, wall) in spent.items()},
    }


async def measured(given: argparse.Namespace) -> None:
    """Print the figures of each state."""
    from tests.support.servers import postgres_server

    with postgres_server(version=given.version) as server:
        name = server.make_database()
        await filled(server, name, given.batches, given.chunks)
        for state, change in STATES.items():
            if change:
                to, left = change
                server.query(
                    name,
                    f"UPDATE payments.chunks c SET {to} FROM payments.batches b "
                    f"WHERE b.batch = c.batch AND c.chunk > 0 AND c.chunk <= b.chunks - {left}",
                )
            server.query(name, "VACUUM ANALYZE payments.chunks")
            if not given.idle:
                print(state, json.dumps(await asked(server, name, given.times)), flush=True)
        if given.idle:
            print("idle", json.dumps(await idled(server, name, given.idle, given.seconds)))


async def idled(server: Any, name: str, workers: int, seconds: float) -> dict[str, float]:
    """Let so many workers find nothing to do, and count the CPU of both sides in percent of a core."""
    postmaster = int((server.data / "postmaster.pid").read_text().split()[0])
    async with AsyncPayments(api_key="sk_sandbox_idle", base_url=URL) as client:
        running = [
            asyncio.ensure_future(PayoutWorker(server.url(name), client, folder=None).run())
            for _ in range(workers)
        ]
        await asyncio.sleep(5)
        cpu, client_cpu = server_cpu(postmaster), time.process_time()
        await asyncio.sleep(seconds)
        shares = {"server": server_cpu(postmaster) - cpu, "workers": time.process_time() - client_cpu}
        for task in running:
            task.cancel()
        await asyncio.wait(running)
    return {f"{part}_percent": round(100 * spent / seconds, 2) for part, spent in shares.items()}


def main() -> None:
    """Measure, and print the figures."""
    sys.path.append(str(Path(__file__).parents[1]))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--chunks", type=int, default=1000)
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--idle", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--version", type=int, default=18)
    asyncio.run(measured(parser.parse_args()))


if __name__ == "__main__":
    main()
