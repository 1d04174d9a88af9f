"""What does it cost to begin: to import, to make a client, to have a first answer?"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.answer_server import answering
from benchmarks.figures import Figure
from benchmarks.peers import Peers
from benchmarks.suite import alone
from benchmarks.wire import KEY, PAYOUT_ANSWER
from benchmarks.worker import CLIENT_CORE, ROOT, hold
from payments_async import AsyncPayments

NAME = "start"
QUESTION = (
    "What does it cost to begin: to import the package, to have a first answer, to make another client? "
    "CPU of fresh processes over those that do the same with aiohttp alone."
)
NOTHING, AIOHTTP = "pass", "import aiohttp"
CLIENT = f"AsyncPayments({KEY!r}, base_url='http://127.0.0.1:9/v1')"
OURS = {
    "payments_async": "import payments_async",
    "payments_sync": "import payments_sync",
    "records and errors": "from payments_async import Instrument, OutcomeUnknown, Payout",
    "AsyncPayments": "from payments_async import AsyncPayments",
    "Payments": "from payments_sync import Payments",
    "AsyncPayments, a client made": f"from payments_async import AsyncPayments; {CLIENT}",
}
PEERS = ("requests", "httpx", "stripe", "openai")
FIRST_ANSWER = """
import asyncio, sys
from payments_async import AsyncPayments, Instrument

client = AsyncPayments("sk_sandbox_benchmark", base_url=sys.argv[1])

async def main():
    async with client:
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
WATCHED = """
import asyncio, sys

class Watch:
    seen = 0
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "aiohttp" and asyncio._get_running_loop() is not None:
            Watch.seen += 1

sys.meta_path.insert(0, Watch())
"""
COUNTED = "\nassert 'aiohttp' in sys.modules\nsys.exit(min(Watch.seen, 99))\n"

CHARTS = {"import": "CPU of an import over that of aiohttp (1.00)"}


class Fresh:
    """Processes that begin as those of an installed package do: what they import was compiled before.

    Not with `keeps_none`, as in images that are built without bytecode: there only the standard library was.
    """

    def __init__(self, cache: str, *, keeps_none: bool = False) -> None:
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        if keeps_none:
            kept["PYTHONDONTWRITEBYTECODE"] = "1"
            for place in (ROOT, Path(sysconfig.get_path("purelib"))):
                shutil.rmtree(cache + str(place), ignore_errors=True)
        self._environ = {**kept, "PYTHONPATH": str(ROOT), "PYTHONPYCACHEPREFIX": cache, "PYTHONHASHSEED": "0"}

    def spent(self, code: str, *arguments: str, python: str | Path = sys.executable) -> float:
        """CPU seconds of a process, from its first instruction to its last."""
        status, seconds = self.run(code, *arguments, python=python)
        if status:
            raise RuntimeError(f"ended with {status}: {code}")
        return seconds

    def run(self, code: str, *arguments: str, python: str | Path = sys.executable) -> tuple[int, float]:
        """Its exit code and its CPU seconds."""
        command = [str(python), "-c", code, *arguments]
        _, status, usage = os.wait4(os.posix_spawn(command[0], command, self._environ), 0)
        return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime

    def imported(self, code: str) -> dict[str, int]:
        """Microseconds that each module took to import, without those it imports."""
        command = [sys.executable, "-X", "importtime", "-c", code]
        ended = subprocess.run(command, env=self._environ, stderr=subprocess.PIPE, text=True, check=True)
        rows = [line.partition(":")[2].split("|") for line in ended.stderr.splitlines() if "|" in line]
        return {name.strip(): int(took) for took, _, name in rows if took.strip().isdigit()}


@contextmanager
def on_one_core() -> Iterator[None]:
    """This process, and so those it starts, stay on the core of what is measured."""
    before = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    hold(CLIENT_CORE)
    try:
        yield
    finally:
        if before is not None:
            os.sched_setaffinity(0, before)


def rounds(
    fresh: Fresh, programs: Mapping[str, tuple[str | Path, str]], times: int
) -> list[dict[str, float]]:
    """CPU of each program, all in turn, round after round; the first does not count."""
    found = [
        {name: fresh.spent(code, python=python) for name, (python, code) in programs.items()}
        for _ in range(times + 1)
    ]
    return found[1:]


def imports(fresh: Fresh, peers: Peers, times: int) -> Iterator[Figure]:
    """Each import over that of aiohttp, without the interpreter's own start."""
    mine = {NOTHING: NOTHING, AIOHTTP: AIOHTTP, **OURS}
    programs: dict[str, tuple[str | Path, str]] = {
        name: (sys.executable, code) for name, code in mine.items()
    }
    for name in PEERS if peers.present else ():
        programs[name] = (peers.python, f"import {name}")
    found = rounds(fresh, programs, times)
    for name in [name for name in programs if name not in (NOTHING, AIOHTTP)]:
        values = [(each[name] - each[NOTHING]) / (each[AIOHTTP] - each[NOTHING]) for each in found]
        goal: dict[str, Any] = {"target": "P7", "at_most": 0.35} if name == "payments_async" else {}
        yield Figure.of(values, f"import of {name} over import aiohttp", chart="import", label=name, **goal)
    took = [(each[AIOHTTP] - each[NOTHING]) * 1e3 for each in found]
    yield Figure.of(took, "import aiohttp, CPU", "ms")


def first_answers(fresh: Fresh, bare: Fresh, times: int) -> Iterator[Figure]:
    """From a process's start to its first answer, over the same by hand; `bare` keeps no bytecode."""
    with answering(PAYOUT_ANSWER) as url:
        found = [
            {
                "ours": fresh.spent(FIRST_ANSWER, url),
                "blocking": fresh.spent(BLOCKING, url),
                "hand": fresh.spent(BY_HAND, url),
                "ours, bare": bare.spent(FIRST_ANSWER, url),
                "hand, bare": bare.spent(BY_HAND, url),
            }
            for _ in range(times + 1)
        ][1:]
        on_loop, _ = fresh.run(WATCHED + FIRST_ANSWER + COUNTED, url)
    ways: dict[str, tuple[float, Callable[[dict[str, float]], float]]] = {
        "bytecode kept": (1.2, lambda each: each["ours"] / each["hand"]),
        "no bytecode of packages": (1.7, lambda each: each["ours, bare"] / each["hand, bare"]),
        "what the blocking client adds": (
            0.08,
            lambda each: (each["blocking"] - each["ours"]) / each["hand"],
        ),
    }
    for way, (most, ratio) in ways.items():
        what = f"CPU from start to first answer over aiohttp by hand, {way}"
        yield Figure.of([ratio(each) for each in found], what, target="P7", at_most=most)
    yield Figure.of([each["ours"] * 1e3 for each in found], "start to first answer, CPU", "ms")
    what = "modules of aiohttp imported while a loop runs in the thread"
    yield Figure.of([on_loop], what, "modules", target="P7", at_most=0)


def second_clients(times: int) -> Figure:
    """What another client costs, where one was made before."""
    kept = [AsyncPayments(KEY, base_url="http://127.0.0.1:9/v1")]
    values = []
    for _ in range(times):
        started = time.process_time()
        kept.extend(AsyncPayments(KEY, base_url="http://127.0.0.1:9/v1") for _ in range(100))
        values.append((time.process_time() - started) * 10)
    return Figure.of(values, "making another client, CPU", "ms", target="P7", at_most=1.0)


def run(peers: Peers, *, quick: bool) -> list[Figure]:
    """Imports, first answers, clients."""
    times = 5 if quick else 15
    with on_one_core(), tempfile.TemporaryDirectory() as place:
        fresh = Fresh(f"{place}/kept")
        found = list(imports(fresh, peers, times))
        shutil.copytree(f"{place}/kept", f"{place}/bare")
        bare = Fresh(f"{place}/bare", keeps_none=True)
        return [*found, *first_answers(fresh, bare, times), second_clients(times)]


def profile() -> str:
    """Where a first client's time goes, beside aiohttp's: modules by their own best time."""
    with on_one_core(), tempfile.TemporaryDirectory() as cache:
        fresh = Fresh(cache)
        rounds = [fresh.imported(OURS["AsyncPayments, a client made"]) for _ in range(8)][1:]
        shared = fresh.imported(AIOHTTP)
    took = {name: min(each[name] for each in rounds) for name in rounds[0].keys() - shared.keys()}
    slowest = sorted(took.items(), key=lambda item: -item[1])
    told = f"{sum(took.values()) / 1e3:.1f} ms in {len(took)} modules that aiohttp does not import\n\n"
    return told + "".join(f"{microseconds:9,.0f} µs  {name}\n" for name, microseconds in slowest[:40])


if __name__ == "__main__":
    alone(NAME, QUESTION, run)
