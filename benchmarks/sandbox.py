"""How many payouts does the sandbox serve for a second of CPU, and what does a day of its time cost?"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from benchmarks.figures import Figure
from benchmarks.peers import Peers
from benchmarks.suite import alone
from benchmarks.wire import BODY
from benchmarks.worker import profiled
from payments_async.sandbox import Sandbox, SandboxLimits, VirtualClock

NAME = "sandbox"
QUESTION = (
    "How many payouts does the sandbox serve, its log on, for a second of its CPU, and what does a day of "
    "its time cost?"
)
CALLS, LINES, ROUNDS = 10_000, 32, 3
OPEN_RECORDS, DAY = 1_000, 86_400.0
PAYOUT = {name: value for name, value in BODY.items() if name not in ("webhook_url", "reference")}
"""Without a receiver: what webhooks cost is another question."""
_TICK = 1 / os.sysconf("SC_CLK_TCK")


def serve() -> None:
    """Serve in this process until a line comes; its limits are kept, but nobody reaches them."""
    with Sandbox(limits=SandboxLimits().scaled(1_000)) as sandbox:
        about = {"base_url": sandbox.base_url, "api_key": sandbox.api_key}
        print(json.dumps(about), flush=True)
        sys.stdin.readline()
        logged = sandbox.entries()  # a fault of the load would be fast: look at what was done
        print(len(sandbox.books.payouts()), len(sandbox.requests), len(logged), flush=True)


@contextmanager
def serving() -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """A sandbox in a process of its own."""
    command = [sys.executable, "-c", "from benchmarks.sandbox import serve; serve()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process, json.loads(process.stdout.readline())


def cpu_of(pid: int) -> float:
    """User and system seconds of a process so far. Linux only."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * _TICK


def request(about: dict[str, str], number: int) -> bytes:
    """A creation as it is on the wire."""
    body = json.dumps({**PAYOUT, "reference": f"bench-{number}"}).encode()
    address = urlsplit(about["base_url"])
    head = (
        f"POST {address.path}/payouts HTTP/1.1\r\nHost: {address.netloc}\r\n"
        f"Authorization: Bearer {about['api_key']}\r\nX-Idempotency-Key: key-{number:08d}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def load(about: dict[str, str], numbers: Iterator[int]) -> None:
    """One line: sends the next creation once the last is answered, and is content with a 201 only."""
    address = urlsplit(about["base_url"])
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    for number in numbers:
        writer.write(request(about, number))
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 201"), head
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        await reader.readexactly(int(length))
    writer.close()
    await writer.wait_closed()


async def crowd(about: dict[str, str], first: int, calls: int) -> None:
    """As many lines as there are, sharing the calls."""
    numbers = iter(range(first, first + calls))
    await asyncio.gather(*(load(about, numbers) for _ in range(LINES)))


def served(rounds: int = ROUNDS) -> Iterator[tuple[float, float]]:
    """Payouts per second of the sandbox's CPU and of the clock, once for each round."""
    with serving() as (process, about):
        asyncio.run(crowd(about, 0, 500))
        for turn in range(rounds):
            cpu, wall = cpu_of(process.pid), time.perf_counter()
            asyncio.run(crowd(about, 1_000 + turn * CALLS, CALLS))
            spent, passed = cpu_of(process.pid) - cpu, time.perf_counter() - wall
            yield CALLS / spent, CALLS / passed
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n")
        process.stdin.flush()
        payouts, requests, logged = map(int, process.stdout.readline().split())
        assert payouts == 500 + rounds * CALLS, payouts
        assert requests > 0
        assert logged > 0


def day() -> tuple[float, int]:
    """CPU seconds of a day that passes over open records which all end in it, and the changes it brings."""
    sandbox = Sandbox(clock=VirtualClock.frozen(), limits=SandboxLimits.off())
    for number in range(OPEN_RECORDS):
        _create(sandbox, {**PAYOUT, "metadata": {"sandbox_scenario": f"complete after={number * 80}s"}})
    began = time.process_time()
    changes = sandbox.advance(DAY)
    return time.process_time() - began, len(changes)


def _create(sandbox: Sandbox, body: dict[str, Any]) -> None:
    headers = {"Authorization": f"Bearer {sandbox.api_key}"}
    made = sandbox.handle("POST", "/v1/payouts", headers, json.dumps(body).encode())
    assert made.status == 201, made


def run(peers: Peers, *, quick: bool) -> list[Figure]:
    """Payouts for a second of CPU, and a day."""
    rates = [of_cpu for of_cpu, _ in served(1 if quick else ROUNDS)]
    spent, changes = day()
    days = f"a day over {OPEN_RECORDS:,} open records, {changes:,} changes, CPU"
    return [
        Figure.of(rates, "payouts served for a second of CPU", "", at_least=2_500.0),
        Figure.of([spent * 1e3], days, "ms", at_most=1_000.0),
    ]


def profile() -> str:
    """Where the sandbox's time goes in a creation, HTTP aside."""
    sandbox = Sandbox(clock=VirtualClock.frozen(), limits=SandboxLimits.off())

    def creations() -> None:
        for _ in range(CALLS):
            _create(sandbox, PAYOUT)

    return profiled(creations)


if __name__ == "__main__":
    alone(NAME, QUESTION, run)
