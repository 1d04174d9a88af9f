"""One process that pays a file with `PayoutBatch`, phase by phase: bulk_run and bulk_million start it.

`python -m benchmarks.bulk_pay FILE LEDGER`; the service is named by PAYMENTS_BASE_URL and PAYMENTS_API_KEY.
Prints a JSON line for each phase.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.bulk_watch import forget_peak, memory, peak_memory, waited
from payments_async import AsyncPayments, RateLimits, events
from payments_async.bulk import PayoutBatch

LIFTED = RateLimits(writes=10**8, reads=10**8, burst=10**8)
"""The gate is passed as always; it only never makes anybody wait."""
LOOPS = ("uvloop", "asyncio") if find_spec("uvloop") else ("asyncio",)
"""The event loops there are; the first is the one that the command takes."""
PHASES = ("preview", "load", "run", "certify", "csv", "parquet")

Phase = Callable[[PayoutBatch, argparse.Namespace], Awaitable[dict[str, Any]]]


async def _preview(batch: PayoutBatch, wished: argparse.Namespace) -> dict[str, Any]:
    return {"rows": (await batch.preview(wished.file)).rows}


async def _load(batch: PayoutBatch, wished: argparse.Namespace) -> dict[str, Any]:
    report = await batch.load(wished.file)
    return {"rows": report.rows}


async def _run(batch: PayoutBatch, wished: argparse.Namespace) -> dict[str, Any]:
    report = await batch.run(concurrency=wished.concurrency)
    return {"exit_code": report.exit_code, "stopped": report.stopped}


async def _certify(batch: PayoutBatch, _: argparse.Namespace) -> dict[str, Any]:
    return {"certificate": json.loads((await batch.reconcile()).to_json())}


def _exporting(ending: str) -> Phase:
    async def export(batch: PayoutBatch, wished: argparse.Namespace) -> dict[str, Any]:
        path = Path(wished.ledger).with_suffix(f".out.{ending}")
        try:
            await batch.export(path)
            return {"bytes": path.stat().st_size}
        finally:
            path.unlink(missing_ok=True)

    return export


_DO: dict[str, Phase] = {
    "preview": _preview,
    "load": _load,
    "run": _run,
    "certify": _certify,
    "csv": _exporting("csv"),
    "parquet": _exporting("parquet"),
}


@contextmanager
def _measured(told: dict[str, Any]) -> Iterator[None]:
    """Adds to `told` what happens inside: wall and CPU seconds, the peak of memory, the load."""
    gc.collect()
    forget_peak()
    began, cpu, delayed = time.time(), os.times(), waited(os.getpid())
    yield
    used = os.times()
    told |= {
        "start": began,
        "wall": time.time() - began,
        "user": used.user - cpu.user,
        "system": used.system - cpu.system,
        "waited": waited(os.getpid()) - delayed,
        "peak": peak_memory(os.getpid()),
        "load": os.getloadavg()[0],
    }


async def pay(wished: argparse.Namespace) -> None:
    """The phases in turn. What an idle client takes comes first."""
    counts: Counter[str] = Counter()

    def note(event: events.Event) -> None:
        if isinstance(event, events.AttemptEnded):
            counts[str(event.status)] += 1

    limits = LIFTED if wished.lifted else None
    hook = None if wished.lifted else note
    async with AsyncPayments(limits=limits, on_event=hook) as client:
        await client.payouts.list(page_size=1)
        async with PayoutBatch.open(wished.ledger, client) as batch:
            gc.collect()
            idle = memory(os.getpid())
            _tell({"phase": "idle", "peak": idle})
            for name in wished.phases:
                told: dict[str, Any] = {"phase": name}
                with _measured(told):
                    told |= await _DO[name](batch, wished)
                _tell(told)
    _tell({"phase": "end", "answers": dict(counts)})


def _tell(line: dict[str, Any]) -> None:
    print(json.dumps(line), flush=True)


def main() -> None:
    """Pay."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bulk_pay")
    parser.add_argument("file")
    parser.add_argument("ledger")
    parser.add_argument("--phases", nargs="+", choices=PHASES, default=["load", "run", "certify"])
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--lifted", action="store_true", help="without rate limits")
    parser.add_argument("--loop", choices=LOOPS, default=LOOPS[0])
    wished = parser.parse_args()
    with asyncio.Runner(loop_factory=_factory(wished.loop)) as runner:
        runner.run(pay(wished))


def _factory(loop: str) -> Callable[[], asyncio.AbstractEventLoop] | None:
    if loop == "asyncio":
        return None
    import uvloop

    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


if __name__ == "__main__":
    main()
