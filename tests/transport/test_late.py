"""The HTTP library is imported when a client is made, but never on a running loop: a thread does it there."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time

import pytest

from payments_async._runtime import SYSTEM
from payments_async._transports import LateTransport, default_transport
from payments_async._wire import Answer, Flight, TransportFailure
from payments_async.errors import ConfigurationError

WATCH = """
import asyncio, sys

class Watch:
    imported, on_loop = 0, 0
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "aiohttp":
            Watch.imported += 1
            Watch.on_loop += asyncio._get_running_loop() is not None

sys.meta_path.insert(0, Watch())
KEY, NOWHERE = "sk_sandbox_0123456789", "http://127.0.0.1:9/v1"
"""
AWAITED = """
from payments_async import APIConnectionError, AsyncPayments
assert Watch.imported == 0, "the package alone needs no HTTP"
async def main():
    async with AsyncPayments(KEY, base_url=NOWHERE, max_retries=0) as client:
        assert Watch.imported == 0
        calls = [client.payouts.list() for _ in range(3)]
        ended = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(each) for each in ended] == [APIConnectionError] * 3, ended
asyncio.run(main())
assert Watch.imported and not Watch.on_loop, Watch.on_loop
"""
UNUSED = """
from payments_async import AsyncPayments
async def main():
    async with AsyncPayments(KEY, base_url=NOWHERE):
        pass
asyncio.run(main())
assert not Watch.imported
"""
BEFORE = """
from payments_async import AsyncPayments
AsyncPayments(KEY, base_url=NOWHERE)
assert Watch.imported, "no loop runs: now is the time"
"""
BLOCKING = """
import warnings
from payments_sync import APIConnectionError, Payments
warnings.simplefilter("ignore")
async def notebook():
    client = Payments(KEY, base_url=NOWHERE, max_retries=0)
    try:
        client.payouts.list()
    except APIConnectionError:
        client.close()
    else:
        raise AssertionError
asyncio.run(notebook())
assert Watch.imported and not Watch.on_loop, Watch.on_loop
"""


@pytest.mark.parametrize("program", [AWAITED, UNUSED, BEFORE, BLOCKING])
def test_no_running_loop_waits_for_the_import_of_the_http_library(program: str) -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", WATCH + program], check=True, timeout=50)


def flight(timeout: float = 30.0) -> Flight:
    return Flight("GET", "http://127.0.0.1:9/v1", {}, None, timeout)


class Quick:
    """Answers at once, and knows how long it was given."""

    def __init__(self) -> None:
        self.given: list[float] = []
        self.closed = 0

    async def send(self, flight: Flight) -> Answer:
        self.given.append(flight.timeout)
        return Answer(200, {}, b"")

    async def aclose(self) -> None:
        self.closed += 1


async def test_all_who_wait_for_the_import_get_one_transport_and_the_loop_goes_on() -> None:
    beats = asyncio.Event()
    made: list[Quick] = []

    def make() -> Quick:
        assert released.wait(20), "the loop stood still"
        made.append(Quick())
        return made[-1]

    released = threading.Event()
    late = LateTransport(make, SYSTEM)
    await late.aclose()
    sent = [asyncio.ensure_future(late.send(flight())) for _ in range(5)]
    asyncio.get_running_loop().call_later(0.01, beats.set)
    await beats.wait()
    released.set()
    assert [answer.status for answer in await asyncio.gather(*sent)] == [200] * 5
    assert len(made) == 1
    assert all(0 < given < 30 for given in made[0].given), "the wait was a part of the attempt"
    await late.send(flight())
    assert made[0].given[-1] == 30
    await late.aclose()
    assert made[0].closed == 1


async def test_an_import_that_takes_longer_than_the_attempt_may_ends_it_unsent() -> None:
    released = threading.Event()

    def make() -> Quick:
        released.wait(20)
        return Quick()

    late, attempt = LateTransport(make, SYSTEM), flight(0.02)
    started = time.monotonic()
    try:
        with pytest.raises(TransportFailure, match="not loaded in time") as failed:
            await late.send(attempt)
        assert failed.value.kind == "timeout"
        assert not attempt.sent
        assert time.monotonic() - started < 15
    finally:
        released.set()
    assert (await late.send(flight())).status == 200


async def test_a_library_that_cannot_be_imported_says_so_with_each_attempt() -> None:
    def make() -> Quick:
        raise ImportError("no aiohttp")

    late = LateTransport(make, SYSTEM)
    for _ in range(2):
        with pytest.raises(ImportError, match="no aiohttp"):
            await late.send(flight())


async def test_once_imported_a_client_has_its_transport_at_once() -> None:
    from payments_async._transport import AiohttpTransport

    assert isinstance(default_transport(SYSTEM, 10.0, 4, None, None), AiohttpTransport)


def test_a_proxy_is_looked_at_when_the_client_is_made() -> None:
    assert default_transport(SYSTEM, 1.0, 1, "http://proxy.test:3128", None)
    with pytest.raises(ConfigurationError, match="absolute") as refused:
        default_transport(SYSTEM, 1.0, 1, "proxy with user:secret", None)
    assert "secret" not in str(refused.value)
