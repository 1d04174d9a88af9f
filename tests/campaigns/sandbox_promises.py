"""What the sandbox and the receiver promise in numbers: each figure beside its bound.

    python -m tests.campaigns.sandbox_promises
    python -m tests.campaigns.sandbox_promises --only served --only pages

Times are of the processor, medians where there are several: those of the clock tell how busy the machine is.
Linux only. The exit code is 1 when a figure is out of its bound.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from statistics import median

import attrs

from benchmarks.sandbox import OPEN_RECORDS, cpu_of, day, served
from payments_async.sandbox import Sandbox, SandboxLimits, VirtualClock
from payments_async.sandbox._journal import ENTRIES
from tests.campaigns import webhooks
from tests.campaigns.page_weights import heaviest
from tests.support.simulated import run_simulated

ROUNDS = 7
PAGES = ("", "?find=june", "?find=key-00000077", "?find=nowhere", "?kind=failed", "payouts?find=nowhere")
"""The log and a list, and searches that find much, little and nothing."""
ENTER = """
import time
from payments_async.sandbox import Sandbox
began, wall = time.process_time(), time.perf_counter()
with Sandbox():
    print(time.process_time() - began, time.perf_counter() - wall)
"""
AIOHTTP = "import aiohttp, sys; print(flush=True); sys.stdin.readline()"
COMMAND = "import sys; from payments_async._cli import main; sys.exit(main(['sandbox', '--json']))"


@attrs.frozen
class Promise:
    """A figure and its bound."""

    told: str
    figure: float
    bound: float
    least: bool = False
    """Whether the bound is the least that the figure may be, not the most."""
    unit: str = ""

    @property
    def is_kept(self) -> bool:
        """Whether the figure is within its bound."""
        return self.figure >= self.bound if self.least else self.figure <= self.bound

    def __str__(self) -> str:
        sign = "≥" if self.least else "≤"
        mark = "kept  " if self.is_kept else "BROKEN"
        return f"{mark}  {self.told}: {self.figure:,.6g}{self.unit} ({sign} {self.bound:,g}{self.unit})"


def entering(_: int) -> Iterator[Promise]:
    """`with Sandbox()`, in processes that have imported it."""
    rounds = [_measured(ENTER) for _ in range(ROUNDS)]
    yield Promise("Sandbox() entered", median(cpu for cpu, _ in rounds), 0.1, unit=" s")


def _measured(program: str) -> tuple[float, float]:
    told = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    cpu, wall = map(float, told.split())
    return cpu, wall


def ready(_: int) -> Iterator[Promise]:
    """`payments sandbox`, until it says where it is; what `import aiohttp` takes is not counted."""
    pairs = [(_until_it_speaks(AIOHTTP), _until_it_speaks(COMMAND)) for _ in range(ROUNDS)]
    extra = median(own for _, own in pairs) - median(bare for bare, _ in pairs)
    yield Promise("`payments sandbox` ready, after `import aiohttp`", round(extra, 3), 0.4, unit=" s")


def _until_it_speaks(program: str) -> float:
    """Processor seconds of a program until its first line."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", program], **pipes) as process:  # type: ignore[call-overload] # pipes
        process.stdout.readline()
        spent = cpu_of(process.pid)
        process.terminate()
        return spent


def serving(_: int) -> Iterator[Promise]:
    """Payouts over TCP, from 32 lines, the log on."""
    rate = median(of_cpu for of_cpu, _ in served())
    yield Promise("payouts served for a second of CPU, log on", round(rate), 2_500, least=True)


def pages(_: int) -> Iterator[Promise]:
    """Every page that links lead to, with all it loads."""
    count, size, path = heaviest()
    yield Promise("pages that were found", count, 40, least=True)
    yield Promise(f"heaviest page with all it loads, {path}", size / 1e3, 60, unit=" kB")


def searches(_: int) -> Iterator[Promise]:
    """The first paint of pages with a full journal: creations, faults, ends of payouts, reads."""
    sandbox, number = Sandbox(clock=VirtualClock.frozen(), limits=SandboxLimits.off()), 0
    while sandbox.journal.last < ENTRIES:
        _pay(sandbox, number, {"X-Sandbox-Scenario": "http:503"} if number % 500 == 0 else {})
        number += 1
        if number % 50 == 0:
            sandbox.handle("GET", "/v1/payouts?per_page=5", {"Authorization": f"Bearer {sandbox.api_key}"})
            sandbox.advance(1)
    for path in PAGES:
        took = []
        for _ in range(3):
            began = time.thread_time()
            assert sandbox.handle("GET", f"/_sandbox/{path}").status == 200
            took.append(time.thread_time() - began)
        yield Promise(f"first paint of {ENTRIES:,} entries, {path or 'log'}", min(took), 0.3, unit=" s")


def a_day(_: int) -> Iterator[Promise]:
    """A virtual day over records that all end in it."""
    seconds, changes = day()
    yield Promise(
        f"a virtual day over {OPEN_RECORDS:,} open records, {changes:,} changes", seconds, 1, unit=" s"
    )


def _pay(sandbox: Sandbox, number: int, scenario: Mapping[str, str] | None = None) -> None:
    body = {
        "amount": 10 + number % 900,
        "currency": "GHS",
        "method": "mobile_money",
        "instrument": {"type": "phone", "phone_number": "+233200000001", "country": "GH"},
        "reference": f"june-{number}",
    }
    headers = {"Authorization": f"Bearer {sandbox.api_key}", "X-Idempotency-Key": f"key-{number:08d}"}
    made = sandbox.handle("POST", "/v1/payouts", headers | (scenario or {}), json.dumps(body).encode())
    assert made.status == (503 if scenario else 201)


def forged(tries: int) -> Iterator[Promise]:
    """What a stranger can do to a receiver."""
    found = run_simulated(webhooks.forge(tries, 1))
    yield Promise(f"{tries:,} forged tokens, accepted", found.accepted, 0)
    yield Promise(f"{tries:,} forged tokens, reads", found.requests, 0)
    breaches = webhooks.breaches_of_forging(found)
    yield Promise(f"{tries:,} forged tokens, breaches: {breaches}", len(breaches), 0)


def repeated(tries: int) -> Iterator[Promise]:
    """What repeats of a valid delivery cost."""
    found = run_simulated(webhooks.repeat(tries, 1))
    yield Promise(f"{tries:,} repeats, reads in the fullest minute", found.fullest, 12)
    breaches = webhooks.breaches_of_repeating(found)
    yield Promise(f"{tries:,} repeats, breaches: {breaches}", len(breaches), 0)


PROMISES: dict[str, Callable[[int], Iterator[Promise]]] = {
    "entered": entering,
    "ready": ready,
    "served": serving,
    "pages": pages,
    "searches": searches,
    "day": a_day,
    "forged": forged,
    "repeated": repeated,
}


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.sandbox_promises")
    parser.add_argument(
        "tries", type=int, nargs="?", default=1_000_000, help="forged deliveries, and repeats"
    )
    parser.add_argument("--only", action="append", choices=PROMISES)
    options = parser.parse_args()
    broken = 0
    for name in options.only or PROMISES:
        for promise in PROMISES[name](options.tries):
            print(promise, flush=True)
            broken += not promise.is_kept
    raise SystemExit(1 if broken else 0)


if __name__ == "__main__":
    main()
