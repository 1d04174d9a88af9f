"""What does it cost to begin: to import, and to have a first answer? CPU of fresh processes."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import peers
from benchmarks.answer_server import answering
from benchmarks.figures import Figure
from benchmarks.wire import PAYOUT_ANSWER
from benchmarks.worker import CLIENT_CORE, ROOT, hold

NOTHING, AIOHTTP = "pass", "import aiohttp"
OURS = (
    "import payments_async",
    "import payments_sync",
    "from payments_async import AsyncPayments",
    "from payments_sync import Payments",
)
THEIRS = ("requests", "httpx", "stripe", "openai")
ASYNC = """
import asyncio, sys
from payments_async import AsyncPayments, Instrument

async def main():
    async with AsyncPayments("sk_sandbox_benchmark", base_url=sys.argv[1]) as client:
        payout = await client.payouts.create(
            amount="250.50", currency="GHS", method="mtn_momo_gh",
            instrument=Instrument.phone("+233241234567", "GH"),
        )
        assert payout.status == "pending"

asyncio.run(main())
"""
BLOCKING = """
import sys
from payments_sync import Instrument, Payments

with Payments("sk_sandbox_benchmark", base_url=sys.argv[1]) as client:
    payout = client.payouts.create(
        amount="250.50", currency="GHS", method="mtn_momo_gh",
        instrument=Instrument.phone("+233241234567", "GH"),
    )
    assert payout.status == "pending"
"""
BY_HAND = """
import aiohttp, asyncio, sys
BODY = {"amount": 250.5, "currency": "GHS", "method": "mtn_momo_gh",
        "instrument": {"type": "phone", "phone_number": "+233241234567", "country": "GH"}}

async def main():
    async with aiohttp.ClientSession(headers={"Authorization": "Bearer sk_sandbox_benchmark"}) as session:
        async with session.post(sys.argv[1] + "/payouts", json=BODY) as response:
            assert (await response.json())["data"]["status"] == "pending"

asyncio.run(main())
"""


def spent(cache: str, code: str, *arguments: str, python: str | Path = sys.executable) -> float:
    """CPU seconds of a process, from its first instruction to its last; `cache` keeps its bytecode."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environ = {**kept, "PYTHONPATH": str(ROOT), "PYTHONPYCACHEPREFIX": cache, "PYTHONHASHSEED": "0"}
    command = [str(python), "-c", code, *arguments]
    _, status, usage = os.wait4(os.posix_spawn(command[0], command, environ), 0)
    if status:
        raise RuntimeError(f"ended with {os.waitstatus_to_exitcode(status)}: {code}")
    return usage.ru_utime + usage.ru_stime


def imports(cache: str, rounds: int) -> Iterator[Figure]:
    """Each import over that of aiohttp, without the interpreter's own start."""
    programs: dict[str, str | Path] = dict.fromkeys((NOTHING, AIOHTTP, *OURS), sys.executable)
    if peers.present():
        programs.update({f"import {name}": peers.PYTHON for name in THEIRS})
    found = [
        {code: spent(cache, code, python=python) for code, python in programs.items()}
        for _ in range(rounds + 1)
    ][1:]
    for code in [code for code in programs if code not in (NOTHING, AIOHTTP)]:
        ratios = [(each[code] - each[NOTHING]) / (each[AIOHTTP] - each[NOTHING]) for each in found]
        goal = 0.35 if code == OURS[0] else None
        yield Figure.of(ratios, f"CPU of `{code}` over `import aiohttp`", at_most=goal)


def first_answers(cache: str, rounds: int) -> Iterator[Figure]:
    """From a process's start to its first answer, over the same by hand."""
    with answering(PAYOUT_ANSWER) as url:
        found = [
            {code: spent(cache, code, url) for code in (ASYNC, BLOCKING, BY_HAND)} for _ in range(rounds + 1)
        ][1:]
    for code, name in ((ASYNC, "AsyncPayments"), (BLOCKING, "Payments")):
        ratios = [each[code] / each[BY_HAND] for each in found]
        what = f"CPU from start to first answer over aiohttp by hand, {name}"
        yield Figure.of(ratios, what, at_most=1.2)


def run(rounds: int, share: float) -> Iterator[Figure]:
    """Imports and first answers, on the core of what is measured."""
    before = os.sched_getaffinity(0)
    hold(CLIENT_CORE)
    try:
        with tempfile.TemporaryDirectory() as cache:
            yield from imports(cache, rounds)
            yield from first_answers(cache, rounds)
    finally:
        os.sched_setaffinity(0, before)
