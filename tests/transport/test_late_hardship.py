"""The import of the HTTP library, and what may come between: a close, a fork, a busy executor, a failure."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from payments_async import _transports
from payments_async._runtime import SYSTEM
from payments_async._transports import LateTransport, default_transport
from payments_async._wire import Answer, Flight, TransportFailure
from payments_async.errors import ConfigurationError


class Quick:
    """Answers at once."""

    def __init__(self) -> None:
        self.sent = 0
        self.closed = 0

    async def send(self, flight: Flight) -> Answer:
        self.sent += 1
        return Answer(200, {}, b"")

    async def aclose(self) -> None:
        self.closed += 1


class Slow:
    """Makes its transport when it is told to, in as many threads as ask."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.released = threading.Event()
        self.made = Quick()

    def __call__(self) -> Quick:
        self.begun.set()
        assert self.released.wait(20)
        return self.made


@pytest.fixture
def slow() -> Iterator[Slow]:
    make = Slow()
    yield make
    make.released.set()


def flight(timeout: float = 30.0) -> Flight:
    return Flight("GET", "http://127.0.0.1:9/v1", {}, None, timeout)


async def begun(make: Slow) -> None:
    while not make.begun.is_set():  # noqa: ASYNC110 - a thread sets it
        await asyncio.sleep(0)


@pytest.mark.parametrize("loaded_first", [True, False])
async def test_what_waits_for_the_import_when_the_client_is_closed_is_never_sent(
    slow: Slow, loaded_first: bool
) -> None:
    late, attempt = LateTransport(slow, SYSTEM), flight()
    sending = asyncio.ensure_future(late.send(attempt))
    await begun(slow)
    if loaded_first:  # the loop has not looked yet
        thread = late._thread
        slow.released.set()
        assert thread is not None
        thread.join(20)
    await late.aclose()
    with pytest.raises(TransportFailure, match="the client was closed") as failed:
        await sending
    assert failed.value.kind == "closed"
    assert not attempt.sent
    slow.released.set()
    assert (await late.send(flight())).status == 200
    assert slow.made.sent == 1, "only what was sent after the close"


async def test_a_close_on_one_loop_leaves_those_who_wait_on_another(slow: Slow) -> None:
    late = LateTransport(slow, SYSTEM)
    sending = asyncio.ensure_future(late.send(flight()))
    await begun(slow)
    await asyncio.to_thread(lambda: asyncio.run(late.aclose()))
    slow.released.set()
    assert (await sending).status == 200


async def test_a_loop_that_ended_while_it_waited_disturbs_nobody(slow: Slow) -> None:
    late = LateTransport(slow, SYSTEM)

    def abandon() -> None:
        loop = asyncio.new_event_loop()
        sending = loop.create_task(late.send(flight()))
        loop.run_until_complete(begun(slow))
        loop.close()
        abandoned.append(sending)

    abandoned: list[asyncio.Task[Answer]] = []
    await asyncio.to_thread(abandon)
    sending = asyncio.ensure_future(late.send(flight()))
    await asyncio.sleep(0)
    slow.released.set()
    assert (await sending).status == 200
    with contextlib.suppress(RuntimeError):
        abandoned[0].get_coro().close()
    abandoned[0]._log_destroy_pending = False  # type: ignore[attr-defined] # it was abandoned on purpose


async def test_the_import_does_not_stand_in_line_for_the_loops_executor() -> None:
    loop, busy = asyncio.get_running_loop(), threading.Event()
    executor = ThreadPoolExecutor(1)
    loop.set_default_executor(executor)
    blocked = loop.run_in_executor(None, busy.wait, 20)
    try:
        assert (await LateTransport(Quick, SYSTEM).send(flight(10.0))).status == 200
    finally:
        busy.set()
        await blocked


async def test_an_import_that_ended_since_the_caller_looked_is_taken() -> None:
    late = LateTransport(Quick, SYSTEM)
    await late.send(flight())
    assert await late._loaded(flight()) is late._transport


forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

FORKED = """
import asyncio, os, signal, sys, threading, time, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # of a fork with threads: that is what is tried
from payments_async import APIConnectionError, AsyncPayments
KEY, NOWHERE = "sk_sandbox_0123456789", "http://127.0.0.1:9/v1"
importing = threading.Event()

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "aiohttp":
            importing.set()
            time.sleep(0.2)  # so that the fork comes while the module is being imported

sys.meta_path.insert(0, Watch())

def client():
    return AsyncPayments(KEY, base_url=NOWHERE, max_retries=0)

async def refused(client):
    async with client:
        try:
            await client.payouts.list()
        except APIConnectionError as error:
            assert "refused" in str(error) or error.kind in ("connect", "reset"), error
            return
    raise AssertionError

async def parent():
    made.append(client())
    await refused(made[0])

made = []
thread = threading.Thread(target=lambda: asyncio.run(parent()))
thread.start()
assert importing.wait(20)
pid = os.fork()
if pid == 0:
    signal.alarm(20)
    asyncio.run(refused(CHILD))
    os._exit(0)
thread.join()
assert os.waitpid(pid, 0)[1] == 0, "the child"
"""


@forks
@pytest.mark.parametrize("child", ["made[0]", "client()"])
def test_a_child_forked_during_the_import_has_a_library_that_works(child: str) -> None:
    program = FORKED.replace("CHILD", child)
    subprocess.run([sys.executable, "-c", program], check=True, timeout=50)


@forks
async def test_a_child_forked_before_the_thread_began_loads_for_itself(slow: Slow) -> None:
    late = LateTransport(slow, SYSTEM)
    before = asyncio.ensure_future(late.send(flight(0.01)))
    await begun(slow)
    late._thread = threading.Thread()  # what a child finds: a thread that is not alive
    slow.released.set()
    assert (await late.send(flight())).status == 200
    with contextlib.suppress(TransportFailure):
        await before


def test_a_fork_that_waited_long_enough_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_transports, "_FORK_PATIENCE", 0.01)
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with _transports._IMPORTING:
            held.set()
            done.wait(20)

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        assert held.wait(20)
        before: Callable[[], None] = _transports._before_fork
        before()
        _transports._after_fork()
    finally:
        done.set()
        holder.join()
    assert _transports._IMPORTING.acquire(timeout=1), "nobody holds it"
    _transports._IMPORTING.release()


BROKEN = """
import asyncio, sys, traceback
from payments_async import AsyncPayments, ConfigurationError
from payments_sync import Payments
sys.modules["aiohttp"] = None

def options():  # so that no frame of this program holds the address
    return dict(base_url="http://127.0.0.1:9/v1", proxy="http://user:" + "NEED" + "LE@proxy.test:1")

def check(error):
    told = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    assert "NEEDLE" not in told, told
    assert "aiohttp, cannot be imported (ModuleNotFoundError: " in str(error), error
    assert error.effect == "none" and error.__context__ is None

async def on_a_loop(client):
    for _ in range(2):
        try:
            await client.payouts.list()
        except ConfigurationError as error:
            check(error)
        else:
            raise AssertionError

async def make():
    await on_a_loop(AsyncPayments("sk_sandbox_0123456789", **options()))

asyncio.run(make())
for cls in (AsyncPayments, Payments):
    try:
        cls("sk_sandbox_0123456789", **options())
    except ConfigurationError as error:
        check(error)
    else:
        raise AssertionError
"""


def test_a_broken_installation_is_a_configuration_error_that_shows_no_proxy_password() -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", BROKEN], check=True, timeout=50)


def test_a_library_that_is_missing_is_told_when_the_client_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "payments_async._transport", None)
    with pytest.raises(ConfigurationError, match="cannot be imported") as refused:
        default_transport(SYSTEM, 1.0, 1, None, None)
    assert refused.value.__context__ is None


async def test_on_a_loop_it_is_told_to_each_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "payments_async._transport", None)
    late, attempt = default_transport(SYSTEM, 1.0, 1, None, None), flight()
    for _ in range(2):
        with pytest.raises(ConfigurationError, match="cannot be imported") as refused:
            await late.send(attempt)
        assert refused.value.effect == "none"
    assert not attempt.sent
