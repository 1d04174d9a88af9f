"""A service in a process of its own that creates payouts after a while, and notes when each request counted.

    python -m tests.support.counting_service

It prints its port. For each line on its input it prints the moments (seconds on the monotonic clock) at which
requests counted, some time before they were answered. It ends with its input.
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import time
from array import array
from typing import Any, Final, Self, cast

from tests.support.motion import payout_answer

BODY: Final = payout_answer(reference=None).body
HEAD: Final = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"


class Counter:
    """When requests counted, and how long answers take."""

    def __init__(self) -> None:
        self.moments = array("d")
        self._chance = random.Random(1)

    def count(self) -> float:
        """Count a request, and return after how many seconds it is answered."""
        now = time.monotonic()
        took = self._chance.uniform(0.03, 0.12) + self._chance.expovariate(20.0)
        self.moments.append(now + took * self._chance.random())
        return took


class Line(asyncio.Protocol):
    """One connection: requests with a Content-Length, one after the other."""

    def __init__(self, counter: Counter) -> None:
        self._counter, self._pending = counter, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._pending += data
        while (head := self._pending.find(b"\r\n\r\n")) >= 0:
            _, _, rest = self._pending[:head].lower().partition(b"content-length: ")
            whole = head + 4 + int(rest.split(b"\r\n", 1)[0])
            if len(self._pending) < whole:
                return
            self._pending = self._pending[whole:]
            asyncio.get_running_loop().call_later(
                self._counter.count(), self._transport.write, HEAD % len(BODY) + BODY
            )


async def serve() -> None:
    loop, counter = asyncio.get_running_loop(), Counter()
    server = await loop.create_server(lambda: Line(counter), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        print(json.dumps(counter.moments.tolist()), flush=True)
    server.close()


class CountingService:
    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "tests.support.counting_service"]
        self._process: Any = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert self._process.stdout is not None
        self.base_url = f"http://127.0.0.1:{int(self._process.stdout.readline())}/v1"
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def counted(self) -> list[float]:
        self._process.stdin.write("counted\n")
        self._process.stdin.flush()
        return cast(list[float], json.loads(self._process.stdout.readline()))


if __name__ == "__main__":
    asyncio.run(serve())
