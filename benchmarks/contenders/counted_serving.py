"""Creations over TCP under valgrind, served by the sandbox and by a bare server. `counted_serving ANSWER`.

One after the other, from a protocol on the server's own event loop: callgrind counts one thread rightly.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from collections.abc import Iterator
from functools import partial
from urllib.parse import urlsplit

from benchmarks.contenders.bare_server import opened
from benchmarks.counting import Counter
from benchmarks.sandbox import request
from payments_async._loopback import listen
from payments_async._loopback.server import serve
from payments_async.sandbox import Clock, Sandbox, SandboxLimits, VirtualClock

WARM, COUNTED = 300, 300
SECONDS = 0.1
"""From one creation to the next at the sandbox: each finds an earlier payout's end due."""


class Caller(asyncio.Protocol):
    """Sends the next creation once the last is answered."""

    def __init__(self, requests: Iterator[bytes], clock: Clock) -> None:
        self._requests = requests
        self._clock = clock
        self._left = 0
        self._done = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        assert data.startswith(b"HTTP/1.1 201"), data
        self._left -= 1
        self._clock.advance(SECONDS)
        if self._left:
            self._transport.write(next(self._requests))
        else:
            self._done.set()

    async def call(self, times: int) -> None:
        """So many."""
        self._left = times
        self._done.clear()
        self._transport.write(next(self._requests))
        await self._done.wait()


def count(runner: asyncio.Runner, counter: Counter, name: str, about: dict[str, str], clock: Clock) -> None:
    """Have one server counted, for `benchmarks.counting.counts`."""
    requests = iter([request(about, number) for number in range(WARM + COUNTED)])
    address = urlsplit(about["base_url"])
    connecting = runner.get_loop().create_connection(
        partial(Caller, requests, clock), address.hostname, address.port
    )
    _, caller = runner.run(connecting)
    runner.run(caller.call(WARM))
    gc.collect()
    gc.freeze()
    counter.count(name, COUNTED, partial(runner.run, caller.call(COUNTED)))


async def moved(sandbox: Sandbox) -> dict[str, str]:
    """Have a sandbox serve on the running loop, too."""
    assert sandbox._server is not None
    listener = listen(None)
    await serve(listener, sandbox._access, sandbox._server._handle)
    port = listener.getsockname()[1]
    return {"base_url": f"http://127.0.0.1:{port}/v1", "api_key": sandbox.api_key}


def main(answer: str) -> None:
    """Count both."""
    counter, limits = Counter(), SandboxLimits().scaled(1_000)
    assert counter.present, "to be run under valgrind"
    clock = VirtualClock.frozen()
    with asyncio.Runner() as runner, Sandbox(limits=limits, clock=clock) as sandbox:
        count(runner, counter, "bare", runner.run(opened(**json.loads(answer))), clock)
        count(runner, counter, "sandbox", runner.run(moved(sandbox)), clock)


if __name__ == "__main__":
    main(*sys.argv[1:])
