"""Are memory, and the time of a `take`, flat up to a million rows? `python -m benchmarks.million [ROWS]`

A file is loaded, paid without rate limits and reconciled, each step in a process of its own. Then ledgers of
10,000 and of so many rows, filled by SQL, are taken from in turn: all new, and nine tenths done under old
statistics and without a vacuum.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from benchmarks.answer_server import run
from benchmarks.bodies import UNPACED
from benchmarks.row import Ledger as Kind
from benchmarks.row import ledgers, open_service, write_input
from payments_async import AsyncPayments
from payments_async._runtime import SYSTEM
from payments_async.bulk import PayoutBatch
from payments_async.bulk._ledger.database import DatabaseAddress
from payments_async.bulk._ledger.ledger import Ledger
from payments_async.bulk._ledger.tables import batches, now, rows
from payments_async.bulk._protocol.row_state import RowState, Turn
from payments_async.bulk._protocol.stop_rules import Account

STEPS = ("load", "run", "reconcile")
FEW, TAKEN, TIMES = 10_000, 50, 15
ACCOUNT = Account("sandbox", "http://127.0.0.1:9/v1", "key")


def memory(name: str) -> float:
    """MiB of this process: VmRSS now, or VmHWM at most."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(name))


async def do(step: str, file: str, address: str) -> None:
    """One step; prints what it took, and the memory over that of an idle client with the ledger open."""
    async with (
        AsyncPayments(limits=UNPACED) as client,
        PayoutBatch.open(address, client, batch_id="million") as batch,
    ):
        await client.payouts.list(page_size=1)
        gc.collect()
        idle, cpu = memory("VmRSS"), time.process_time()
        if step == "load":
            await batch.load(file)
        elif step == "run":
            assert (await batch.run()).exit_code == 0
        else:
            assert (await batch.reconcile()).is_clean
        cost, peak = time.process_time() - cpu, memory("VmHWM")
        print(json.dumps({"cpu": cost, "peak": peak, "over": peak - idle}))


def steps(name: str, kind: Kind, count: int, folder: Path) -> None:
    """Pay so many rows, step by step."""
    file = folder / "payouts.csv"
    write_input(file, count)
    with open_service() as service:
        address = kind(folder)
        for step in STEPS:
            command = [sys.executable, "-m", "benchmarks.million", "--do", step, str(file), address]
            found = json.loads(
                subprocess.run(command, check=True, stdout=subprocess.PIPE, env=service.environ).stdout
            )
            cpu, memories = found["cpu"] / count * 1e6, f"{found['peak']:.0f} MiB | {found['over']:.0f} MiB"
            print(f"| {name} | {count:,} | {step} | {cpu:.0f} µs | {memories} |", flush=True)
        service.check(count)


async def filled(address: str, count: int) -> Ledger:
    """A ledger of so many new rows, made by the database itself."""
    ledger = await Ledger.open(DatabaseAddress(address), SYSTEM, "million", create=True)
    numbers = sa.select(sa.literal(1).label("number")).cte("numbers", recursive=True)
    numbers = numbers.union_all(sa.select(numbers.c.number + 1).where(numbers.c.number < count))
    name = sa.cast(numbers.c.number, sa.String)
    texts = {"batch_id": "million", "environment": "sandbox", "currency": "GHS", "method": "mtn"}
    made: dict[str, Any] = {
        **{column: sa.literal(text) for column, text in texts.items()},
        "scale": sa.literal(2),
        "body": sa.literal(b"x" * 420, sa.LargeBinary),
        **dict.fromkeys(("number", "units"), numbers.c.number),
        **dict.fromkeys(("row_key", "stem"), name),
    }

    async def work(connection: AsyncConnection) -> None:
        facts = {"environment": "sandbox", "base_url": ACCOUNT.base_url, "account": ACCOUNT.key}
        await connection.execute(batches.insert().values(batch_id="million", created_at=now(), **facts))
        await connection.execute(rows.insert().from_select([*made], sa.select(*made.values())))
        await connection.exec_driver_sql("ANALYZE")

    await ledger.database.write(work)
    return ledger


async def nearly_done(ledger: Ledger, count: int) -> None:
    """Nine tenths of the rows are taken and then created, by the database itself."""
    first = rows.c.number <= count * 9 // 10
    for values in (
        {"state": RowState.IN_FLIGHT.value, "due": now() + 60.0},
        {"state": RowState.CREATED.value, "turn": int(Turn.NOTHING), "payout_id": "po_1"},
    ):

        async def work(connection: AsyncConnection, values: Any = values) -> None:
            await connection.execute(sa.update(rows).where(first).values(**values))

        await ledger.database.write(work)


async def taken(few: Ledger, many: Ledger) -> tuple[float, float]:
    """Milliseconds of a take from each, in turn: medians; the first does not count."""
    found: list[list[float]] = [[], []]
    for _ in range(TIMES + 1):
        for ledger, times in zip((few, many), found, strict=True):
            began = time.perf_counter()
            take = await ledger.take(TAKEN, ACCOUNT, needs_confirmation=False)
            times.append((time.perf_counter() - began) * 1e3)
            assert len(take.rows) == TAKEN
    return statistics.median(found[0][1:]), statistics.median(found[1][1:])


async def takes(name: str, kind: Kind, count: int, folder: Path) -> None:
    """Take from ledgers of few and of many rows."""
    ledgers = [await filled(kind(folder), number) for number in (FEW, count)]
    for state in ("all new", "nine tenths done"):
        if state != "all new":
            await nearly_done(ledgers[0], FEW)
            await nearly_done(ledgers[1], count)
        few, many = await taken(*ledgers)
        print(f"| {name} | {state} | {few:.1f} ms | {many:.1f} ms | {many / few:.2f} |", flush=True)
    for ledger in ledgers:
        await ledger.close()


def main() -> None:
    """Both tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.million", description=__doc__)
    parser.add_argument("rows", nargs="?", type=int, default=1_000_000)
    parser.add_argument("--only", choices=("steps", "takes"))
    parser.add_argument("--do", nargs=3, metavar=("STEP", "FILE", "LEDGER"), help="one step, in this process")
    given = parser.parse_args()
    if given.do:
        run(do(*given.do))
        return
    with ledgers() as kinds, tempfile.TemporaryDirectory(prefix="million-") as folder:
        for name, kind in kinds.items():
            if given.only != "takes":
                print("| ledger | rows | step | CPU of a row | most memory | over an idle client |")
                steps(name, kind, given.rows, Path(folder))
            if given.only != "steps":
                print(f"| ledger | rows are | take at {FEW:,} | at {given.rows:,} | ratio |")
                asyncio.run(takes(name, kind, given.rows, Path(folder)))


if __name__ == "__main__":
    main()
