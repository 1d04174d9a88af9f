"""Is the time of a `take` flat up to a million rows? `python -m benchmarks.takes [ROWS]`

Ledgers of 10,000 and of so many rows, filled by SQL, are taken from in turn: all new, and nine tenths done
under old statistics and without a vacuum. Whether memory is flat: `PAYMENTS_BENCH_ROWS=200000 python -m
benchmarks --only row` pays five times as many.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from benchmarks.row import ledgers
from payments_async._runtime import SYSTEM
from payments_async.bulk._ledger.database import DatabaseAddress
from payments_async.bulk._ledger.ledger import Ledger
from payments_async.bulk._ledger.tables import batches, now, rows
from payments_async.bulk._protocol.row_state import RowState, Turn
from payments_async.bulk._protocol.stop_rules import Account

FEW, TAKEN, TIMES = 10_000, 50, 15
ACCOUNT = Account("sandbox", "http://127.0.0.1:9/v1", "key")


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


async def compare(name: str, addresses: tuple[str, str], count: int) -> None:
    """Take from ledgers of few and of many rows."""
    few, many = await filled(addresses[0], FEW), await filled(addresses[1], count)
    for state in ("all new", "nine tenths done"):
        if state != "all new":
            await nearly_done(few, FEW)
            await nearly_done(many, count)
        short, long = await taken(few, many)
        print(f"| {name} | {state} | {short:.1f} ms | {long:.1f} ms | {long / short:.2f} |", flush=True)
    await few.close()
    await many.close()


def main(count: int = 1_000_000) -> None:
    """A table for each kind of ledger."""
    with ledgers() as kinds, tempfile.TemporaryDirectory(prefix="takes-") as folder:
        print(f"| ledger | rows are | take at {FEW:,} | at {count:,} | ratio |\n|---|---|---|---|---|")
        for name, kind in kinds.items():
            asyncio.run(compare(name, (kind(Path(folder)), kind(Path(folder))), count))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
