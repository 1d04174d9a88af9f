"""One transport and many event loops: each has its own connections, and takes them along when it ends."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop

from payments_async._http.transport import Deadlines
from tests.http.conftest import MakeTransport, _transport
from tests.http.requests import AiohttpTransport, connector_of, idle_connections_lost, make_request, opened_by
from tests.support.rawserver import RawServer, Step
from tests.support.simulated import SimulatedRuntime, run_simulated

ROOT = Path(__file__).parents[2]


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def new_loop(request: pytest.FixtureRequest) -> Callable[[], asyncio.AbstractEventLoop]:
    factory: Callable[[], asyncio.AbstractEventLoop] = request.param
    return factory


async def calls(transport: AiohttpTransport, server: RawServer, number: int = 2) -> None:
    for _ in range(number):
        assert (await transport.send(make_request(server.url("/")))).body == b"{}"


def test_a_transport_is_made_without_a_loop_and_works_in_one_loop_after_another(
    server: RawServer, make_transport: MakeTransport, new_loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    transport = make_transport()
    assert transport._loops == {}
    for _ in range(3):
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(calls(transport, server))
            runner.run(calls(transport, server))
    gc.collect()  # an unclosed session or socket would warn here
    assert (server.connections, len(transport._loops)) == (3, 1)


def test_loops_in_several_threads_do_not_share_connections(
    server: RawServer, make_transport: MakeTransport
) -> None:
    transport = make_transport()
    together = threading.Barrier(4, timeout=300)

    async def work() -> None:
        await calls(transport, server, 1)
        await asyncio.to_thread(together.wait)
        await calls(transport, server, 1)

    threads = [threading.Thread(target=asyncio.run, args=(work(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert (server.connections, len(server.requests)) == (4, 8)


def test_a_loop_closed_without_ceremony_is_forgotten(
    server: RawServer, make_transport: MakeTransport
) -> None:
    transport = make_transport()
    careless = asyncio.new_event_loop()
    careless.run_until_complete(calls(transport, server))
    server.hang_up()
    careless.run_until_complete(
        idle_connections_lost(transport)
    )  # so that no open socket is left to the loop
    careless.run_until_complete(careless.shutdown_default_executor())
    careless.close()
    asyncio.run(calls(transport, server))
    gc.collect()
    assert careless not in transport._loops


async def test_closing_ends_the_connections_and_a_later_call_opens_new_ones(
    server: RawServer, transport: AiohttpTransport
) -> None:
    server.scripts["/slow"] = [Step.HANG]
    await transport.aclose()
    await calls(transport, server)
    await transport.aclose()
    await transport.aclose()
    await calls(transport, server)
    assert server.connections == 2


@pytest.mark.parametrize("in_a_cycle", [False, True])
async def test_a_transport_that_is_dropped_closes_its_connections(
    in_a_cycle: bool, server: RawServer, make_transport: MakeTransport
) -> None:
    transport = make_transport()
    await calls(transport, server)
    opened = opened_by(transport)
    if in_a_cycle:
        transport.itself = transport  # type: ignore[attr-defined] # as a traceback's frame would hold it
    del transport
    gc.collect()  # an unclosed session or connector would warn here
    await asyncio.sleep(0)
    assert opened.closing is not None
    await opened.closing
    assert opened.session.closed
    assert opened not in _transport._OPEN


DROP = """
import asyncio, sys
from payments_async._runtime import SYSTEM
from payments_async._http.transport import AiohttpTransport
from payments_async._http.types import HTTPRequest

async def forgotten(transport):
    await asyncio.sleep(9)

async def main():
    asyncio.get_running_loop().slow_callback_duration = 30  # debug mode speaks of a busy machine
    transport = AiohttpTransport(runtime=SYSTEM)
    call = lambda: transport.send(HTTPRequest("GET", sys.argv[1], {}, None, 60))
    await asyncio.gather(call(), call())
    if sys.argv[2] == "by a task that the loop cancels":
        task = asyncio.ensure_future(forgotten(transport))
        await asyncio.sleep(0)
    if sys.argv[2] == "before the end":
        del transport, call
        await asyncio.sleep(0.005)

asyncio.run(main())
"""


@pytest.mark.parametrize("when", ["before the end", "at the end", "by a task that the loop cancels"])
def test_a_transport_dropped_without_closing_is_closed_by_its_loop_without_a_word(
    when: str, server: RawServer
) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", DROP, server.url("/"), when],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


async def test_closed_loops_are_forgotten_while_other_threads_open_and_forget_theirs(
    server: RawServer, make_transport: MakeTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    transport = make_transport()
    await calls(transport, server)
    opened = opened_by(transport)
    other, closed = asyncio.new_event_loop(), asyncio.new_event_loop()
    closed.close()

    def meanwhile() -> bool:
        transport._loops[other] = transport._loops.pop(closed)
        return True

    monkeypatch.setattr(closed, "is_closed", meanwhile)
    transport._loops[closed] = opened
    await transport._drop_closed()
    assert set(transport._loops) == {asyncio.get_running_loop(), other}
    monkeypatch.undo()
    other.close()
    await transport.aclose()


async def test_what_a_child_inherits_is_neither_used_nor_closed(
    server: RawServer, make_transport: MakeTransport
) -> None:
    transport = make_transport()
    await calls(transport, server)
    connector = connector_of(opened_by(transport))
    _transport._after_fork()  # what a child's first call does
    assert transport._loops == {}
    await calls(transport, server)
    assert server.connections == 2
    await transport.aclose()
    connector._closed = False
    await connector.close()


# Deadlines of attempts, on simulated time


async def attempt(deadlines: Deadlines, seconds: float, work: float) -> tuple[str, float]:
    """What became of `work` seconds of work, and when."""
    task = deadlines.start(seconds)
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(work)
    return deadlines.stop(task), asyncio.get_running_loop().time()


@pytest.mark.parametrize(
    ("seconds", "cancelled_at", "closed_at", "ended", "requests"),
    [
        (7, None, None, ("undisturbed", 6), 0),
        (5, None, None, ("overdue", 5), 0),  # its own cancellation is taken back
        (0, None, None, ("overdue", 0), 0),
        (-1, None, None, ("overdue", 0), 0),
        (7, None, 1, ("closed", 1), 0),
        (5, 1, None, ("cancelled", 1), 1),
        (5, 5, None, ("cancelled", 5), 1),  # at the same moment: the other's wins
        (7, 1, 1, ("cancelled", 1), 1),
        (5, 0, None, ("cancelled", 0), 1),  # before the attempt: it arrives where the task next waits
    ],
)
def test_six_seconds_of_work_end_at_their_deadline_or_by_a_cancellation(
    seconds: float,
    cancelled_at: float | None,
    closed_at: float | None,
    ended: tuple[str, float],
    requests: int,
) -> None:
    async def work() -> tuple[tuple[str, float], int]:
        task, deadlines = asyncio.current_task(), Deadlines(SimulatedRuntime())
        assert task is not None
        if closed_at is not None:
            asyncio.get_running_loop().call_later(closed_at, deadlines.close)
        if cancelled_at == 0:
            task.cancel()
        elif cancelled_at is not None:
            asyncio.get_running_loop().call_later(cancelled_at, task.cancel)
        return await attempt(deadlines, seconds, 6), task.cancelling()

    async def main() -> tuple[tuple[str, float], int]:
        return await asyncio.ensure_future(work())

    assert run_simulated(main()) == (ended, requests)


def test_all_attempts_share_one_timer() -> None:
    async def main() -> int:
        runtime = SimulatedRuntime()
        deadlines = Deadlines(runtime)
        await asyncio.gather(*(attempt(deadlines, 30, 0.1 + number / 1000) for number in range(200)))
        return runtime.timers

    assert run_simulated(main()) == 1
