"""The guard's question, asked in the thread of the blocking caller."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from payments_async.errors import ConfigurationError
from tests.guard.test_asking import answer, said
from tests.support.simulated import SystemRuntime, Timer
from tests.sync.conftest import BlockingCall, Bridge, CallQueue
from tests.sync.scenes import interrupt_main_thread, loop_threads, note, nothing


@pytest.fixture
def bridge() -> Iterator[Bridge]:
    bridge = Bridge(nothing)
    yield bridge
    bridge.close()


class Expiring(SystemRuntime):
    """A runtime whose timers run when a test calls `expire`, from any thread; or at once."""

    def __init__(self, *, at_once: bool = False) -> None:
        super().__init__()
        self._at_once = at_once

    def call_later(self, delay: float, callback: Callable[[], object], *, background: bool = False) -> Timer:
        loop = asyncio.get_running_loop()
        self.expire = lambda: loop.call_soon_threadsafe(callback)
        return super().call_later(0 if self._at_once else 3600, callback)


def test_a_plain_function_runs_in_the_callers_own_thread(bridge: Bridge) -> None:
    threads: list[int] = []

    def ask(request: object) -> bool:
        threads.append(threading.get_ident())
        return request == "the request"

    assert bridge.call(said, ask)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(bridge.call, said, ask).result()
        other = pool.submit(threading.get_ident).result()
    assert threads == [threading.get_ident(), other]


def test_a_call_may_ask_twice_and_the_function_may_make_a_call(bridge: Bridge) -> None:
    async def twice() -> list[bool]:
        return [await said(lambda request: bridge.call(said, lambda request: True)), await said(lambda _: 1)]

    assert bridge.call(twice) == [True, False]


def elsewhere(request: object) -> bool:
    """Whether it runs neither in the main thread nor on the twin's loop."""
    return threading.current_thread() not in (threading.main_thread(), *loop_threads())


def test_a_question_outside_a_blocking_call_runs_in_a_thread_of_asyncios(bridge: Bridge) -> None:
    async def in_a_task_of_its_own() -> bool:
        return await asyncio.create_task(said(elsewhere))

    assert bridge.call(in_a_task_of_its_own)
    assert asyncio.run(said(elsewhere)), "on another loop"


def test_a_late_answer_is_ignored_and_the_caller_gets_the_calls_end(bridge: Bridge) -> None:
    runtime, refused = Expiring(), threading.Event()

    async def call() -> str:
        is_yes = await answer(ask, "the request", seconds=1, runtime=runtime)
        refused.set()
        return "sent" if is_yes else "refused"

    def ask(request: object) -> bool:
        runtime.expire()
        return refused.wait(300)

    assert bridge.call(call) == "refused"


def test_ctrl_c_while_the_function_runs_is_one_during_the_wait(bridge: Bridge) -> None:
    ends: list[str] = []

    async def call() -> None:
        try:
            await said(ask)
        except asyncio.CancelledError:
            ends.append("cancelled")
            raise

    def ask(request: object) -> bool:
        interrupt_main_thread()
        return threading.Event().wait(300)

    with pytest.raises(KeyboardInterrupt) as stopped:
        bridge.call(call)
    assert ends == ["cancelled"]
    assert note(stopped.value) == "The call was stopped before it could move money; it can be made again."
    assert stopped.value.outcome is None  # type: ignore[attr-defined] # what the bridge adds


async def test_questions_that_nobody_saw_in_time_are_not_asked_and_their_call_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queue, runtime, asked = CallQueue(), Expiring(at_once=True), list[object]()
    monkeypatch.setattr("payments_sync._event_loop._loop_thread.queue", queue)

    async def twice() -> list[bool]:
        return [await answer(asked.append, n, seconds=1, runtime=runtime) for n in range(2)]

    call = BlockingCall(twice, (), {})
    queue.post(call)
    queue._empty()
    await asyncio.wait(queue._running.values())
    await asyncio.to_thread(call.wait)
    assert call.result() == [False, False]
    assert call.question is not None
    call.question()  # as a caller does that sees it between its expiry and the call's end
    assert asked == []


async def test_a_question_is_not_taken_for_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("payments_sync._blocking_call.GRACE", 0.01)
    call = BlockingCall(nothing, (), {})
    answered = call.ask(CallQueue(), bool)
    assert not call.wait_briefly()
    assert not answered.done()


def test_an_answer_from_another_process_ends_the_call(
    bridge: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(request: object) -> bool:
        monkeypatch.setattr("payments_sync._blocking_call.os", SimpleNamespace(getpid=lambda: 0))
        return True

    with pytest.raises(ConfigurationError, match="the call is the parent's") as stopped:
        bridge.call(said, ask)
    assert "before it could move money" in note(stopped.value)
