"""A batch of millions of rows in PostgreSQL: imported, planned, paid in part, checked and certified.

    python -m tests.campaigns.large_batch 10000000 [--paid 100000] [--scale 1]

Each step is a process of its own; the table has its time, its CPU and the most memory that it held. The
report is read again and again after the payments, as `status` does. The service's books, the check and
the certificate decide. Exits 1 on a breach, or when a process held more than 150 MiB.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import attrs

from benchmarks.bulk_service import Service, serving
from payments_async import AsyncPayments
from payments_async.bulk import SharedBatch
from tests.support.processes import COUNTRIES, HEAD
from tests.support.servers import PostgresServer, postgres_server

NAME: Final = "large"
MOST_MEMORY: Final = 150.0
"""MiB that one process may hold."""
MOST_DELAY: Final = 0.1
"""Seconds within which the report is read."""
READINGS: Final = 20
STEPS: Final = ("import", "pay", "status", "check", "certify")


def write_input(path: Path, rows: int) -> None:
    """Write so many payouts, each of an amount of its own."""
    with path.open("w") as file:
        file.write(f"{HEAD}\n")
        for place in range(rows):
            currency, method, phone, country = COUNTRIES[place % len(COUNTRIES)]
            file.write(f"r{place},{place % 900_000 + 1}.07,{currency},{method},{phone},{country}\n")


async def do(step: str, url: str, source: str, paid: int) -> None:
    """Do one step, in a process of its own. Prints what it found wrong."""
    async with AsyncPayments() as client, SharedBatch.open(url, client, batch_id=NAME) as batch:
        if step == "import":
            await batch.load(source)
            await batch.plan(max_rows=paid)
        elif step == "pay":
            await batch.run(max_rows=paid)
        elif step == "status":
            print(statistics.median([await _delay(batch) for _ in range(READINGS)]))
        elif step == "check":
            print(*(await batch.check()).findings, sep="\n")
        else:
            certificate = await batch.reconcile()
            counts = (await batch.refresh()).counts
            print(*certificate.check.findings, *certificate.audit.findings, sep="\n")
            if counts["created"] != paid:
                print(f"{counts['created']} rows are paid")


async def _delay(batch: SharedBatch) -> float:
    began = time.monotonic()
    await batch.refresh()
    return time.monotonic() - began


@attrs.frozen
class Step:
    """What one process took."""

    name: str
    seconds: float
    cpu: float
    memory: float
    """MiB, at most."""
    said: str
    code: int

    def __str__(self) -> str:
        return f"{self.name:8} {self.seconds:8.1f} s {self.cpu:8.1f} s of CPU {self.memory:6.0f} MiB"


def stepped(name: str, variables: Mapping[str, str], source: Path, paid: int) -> Step:
    """Run a step."""
    command = [sys.executable, "-m", "tests.campaigns.large_batch", "0", "--step", name]
    began = time.monotonic()
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            [*command, "--source", str(source), "--paid", str(paid)],
            env={**os.environ, **variables},
            stdout=said,
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        cpu = usage.ru_utime + usage.ru_stime
        seconds, memory = time.monotonic() - began, usage.ru_maxrss / 1024
        return Step(name, seconds, cpu, memory, said.read().strip(), process.returncode)


def run(server: PostgresServer, service: Service, source: Path, paid: int) -> list[str]:
    """Do all steps. Returns what went wrong."""
    database = server.make_database()
    variables, problems = {**service.variables, "PAYMENTS_LEDGER": server.url(database)}, list[str]()
    for name in STEPS:
        step = stepped(name, variables, source, paid)
        print(step, flush=True)
        if step.code:
            return [*problems, f"{name} ended with {step.code}"]
        if step.memory > MOST_MEMORY:
            problems.append(f"{name} held {step.memory:.0f} MiB")
        if name == "status":
            print(f"         the report was read in {float(step.said) * 1000:.0f} ms (median)")
            if float(step.said) > MOST_DELAY:
                problems.append(f"the report took {step.said} s")
        elif step.said:
            problems.append(f"{name}: {step.said[:500]}")
    ((size,),) = server.query(database, "SELECT pg_database_size(current_database())")
    print(f"the database holds {size / 2**30:.2f} GiB")
    account = service.account()
    facts = {
        f"{account['payouts']} payouts were made for {paid} rows": account["payouts"] == paid,
        f"{account['duplicates']} references are there twice": not account["duplicates"],
        f"{account['refused']} requests were answered 429": not account["refused"],
    }
    return [*problems, *(problem for problem, well in facts.items() if not well)]


def main() -> int:
    """1 when a guarantee was broken."""
    parser = argparse.ArgumentParser("python -m tests.campaigns.large_batch", description=__doc__)
    parser.add_argument("rows", type=int)
    parser.add_argument("--paid", type=int, default=100_000)
    parser.add_argument("--scale", type=float, default=1.0, help="divides the service's limits")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    parser.add_argument("--source", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.step:
        asyncio.run(do(asked.step, os.environ["PAYMENTS_LEDGER"], asked.source, asked.paid))
        return 0
    with (
        tempfile.TemporaryDirectory() as folder,
        postgres_server() as server,
        serving("bulk_sandbox", str(asked.scale), "0") as service,
    ):
        source = Path(folder) / "payouts.csv"
        write_input(source, asked.rows)
        problems = run(server, service, source, asked.paid)
    for problem in problems:
        print(problem, file=sys.stderr)
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
