"""What does the sandbox take for a payout, beside a bare server, and what does a day of its time cost?"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from benchmarks import counting
from benchmarks.figures import Figure
from benchmarks.peers import Peers
from benchmarks.suite import alone
from benchmarks.wire import BODY
from benchmarks.worker import profiled
from payments_async.sandbox import Answer, Sandbox, SandboxLimits, VirtualClock

NAME = "sandbox"
QUESTION = (
    "How many payouts does the sandbox serve, its log on, for a second of its CPU? What does a payout take, "
    "in CPU beside a bare server that parses and answers the same, and in memory? And what does a day of its "
    "time cost?"
)
CALLS, LINES, ROUNDS, WARM = 10_000, 32, 6, 500
FEW = 2_000
"""Calls of a round in which one is sent after the other."""
FULL = 2
"""Rounds after which the log is full: it grows no more."""
OPEN_RECORDS, DAY = 1_000, 86_400.0
PAYOUT = {name: value for name, value in BODY.items() if name not in ("webhook_url", "reference")}
"""Without a receiver: what webhooks cost is another question."""
Server = tuple[subprocess.Popen[str], dict[str, str]]
"""A process, and what it says of itself: its address and a key."""


def serve() -> None:
    """Serve in this process until a line comes; its limits are kept, but nobody reaches them."""
    with Sandbox(limits=SandboxLimits().scaled(1_000)) as sandbox:
        about = {"base_url": sandbox.base_url, "api_key": sandbox.api_key}
        print(json.dumps(about), flush=True)
        sys.stdin.readline()
        logged = sandbox.entries()  # a fault of the load would be fast: look at what was done
        print(len(sandbox.books.payouts()), len(sandbox.requests), len(logged), flush=True)


@contextmanager
def serving(*command: str) -> Iterator[Server]:
    """A server in a process of its own: the sandbox, or what `python command` is."""
    own = command or ("-c", "from benchmarks.sandbox import serve; serve()")
    with subprocess.Popen(
        [sys.executable, *own], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process, json.loads(process.stdout.readline())
        finally:
            process.kill()


def answer() -> str:
    """What the sandbox answers to a creation, for a bare server."""
    made = _create(Sandbox(), {**PAYOUT, "reference": "bench-1000"})
    return json.dumps({"status": made.status, "headers": {**made.headers}, "body": made.body.decode()})


def cpu_of(pid: int) -> float:
    """Seconds that the threads of a process have run so far, to the nanosecond. Linux only."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


def memory_of(pid: int) -> int:
    """Resident bytes of a process. Linux only."""
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


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


async def crowd(about: dict[str, str], first: int, calls: int, lines: int) -> None:
    """So many lines, sharing the calls."""
    numbers = iter(range(first, first + calls))
    await asyncio.gather(*(load(about, numbers) for _ in range(lines)))


def spent(server: Server, first: int, calls: int, lines: int) -> float:
    """Seconds of a server's CPU for so many creations."""
    process, about = server
    before = cpu_of(process.pid)
    asyncio.run(crowd(about, first, calls, lines))
    return cpu_of(process.pid) - before


def served(
    rounds: int, calls: int = CALLS, lines: int = LINES
) -> tuple[list[tuple[float, float]], list[int]]:
    """Of each round the CPU seconds of the sandbox and the bare server, and the sandbox's memory after it."""
    found, memory = [], []
    with serving() as ours, serving("-m", "benchmarks.contenders.bare_server", answer()) as theirs:
        for server in (ours, theirs):
            spent(server, 0, WARM, lines)
        for first in range(1_000, 1_000 + rounds * calls, calls):
            found.append((spent(ours, first, calls, lines), spent(theirs, first, calls, lines)))
            memory.append(memory_of(ours[0].pid))
        process, _ = ours
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n")
        process.stdin.flush()
        payouts, requests, logged = map(int, process.stdout.readline().split())
        assert payouts == WARM + rounds * calls, payouts
        assert requests > 0
        assert logged > 0
    return found, memory


def counted() -> Iterator[Figure]:
    """Instructions of a creation over the bare server's, which a busy machine does not change."""
    if counting.possible():
        found = counting.counted("benchmarks.contenders.counted_serving", answer())
        yield Figure.of(
            [found["sandbox"] / found["bare"]],
            "instructions of a creation, with the end of an earlier one, over a bare server's",
            at_most=2.5,
        )


def day() -> tuple[float, int]:
    """CPU seconds of a day that passes over open records which all end in it, and the changes it brings."""
    sandbox = Sandbox(clock=VirtualClock.frozen(), limits=SandboxLimits.off())
    for number in range(OPEN_RECORDS):
        _create(sandbox, {**PAYOUT, "metadata": {"sandbox_scenario": f"complete after={number * 80}s"}})
    began = time.process_time()
    changes = sandbox.advance(DAY)
    return time.process_time() - began, len(changes)


def _create(sandbox: Sandbox, body: dict[str, Any]) -> Answer:
    headers = {"Authorization": f"Bearer {sandbox.api_key}"}
    made = sandbox.handle("POST", "/v1/payouts", headers, json.dumps(body).encode())
    assert made.status == 201, made
    return made


def run(peers: Peers, *, quick: bool) -> list[Figure]:
    """Payouts for a second of CPU, what one takes, and a day."""
    alone, _ = served(3, FEW, 1)
    found, memory = served(1 if quick else ROUNDS)
    seconds, changes = day()
    what = "CPU of a creation over a bare aiohttp server's"
    days = f"a day over {OPEN_RECORDS:,} open records, {changes:,} changes, CPU"
    figures = [
        Figure.of(
            [CALLS / ours for ours, _ in found], "payouts served for a second of CPU", "", at_least=2_500.0
        ),
        Figure.of([ours / theirs for ours, theirs in alone], f"{what}, one at a time", at_most=2.5),
        Figure.of(
            [ours / theirs for ours, theirs in found],
            f"{what}, {LINES} at a time, {len(found) * CALLS:,} kept",
            at_most=2.5,
        ),
        *counted(),
        Figure.of([seconds * 1e3], days, "ms", at_most=1_000.0),
    ]
    if not quick:
        grown = (memory[-1] - memory[FULL - 1]) / 1024 / CALLS / (ROUNDS - FULL)
        kept = f"memory of a payout, from {FULL * CALLS:,} to {ROUNDS * CALLS:,}"
        figures.append(Figure.of([grown], kept, "KiB", at_most=2.5, note="resident"))
    return figures


def profile() -> str:
    """Where the sandbox's time goes in a creation, HTTP aside."""
    sandbox = Sandbox(clock=VirtualClock.frozen(), limits=SandboxLimits.off())

    def creations() -> None:
        for _ in range(CALLS):
            _create(sandbox, PAYOUT)

    return profiled(creations)


if __name__ == "__main__":
    alone(NAME, QUESTION, run)
