"""The queue onto the loop, while the loop is ending."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from tests.sync.conftest import BlockingCall, Bridge, CallQueue
from tests.sync.scenes import nothing


def call() -> BlockingCall[None]:
    return BlockingCall(nothing, (), {})


async def made() -> CallQueue:
    return CallQueue()


class Waiting(list[BlockingCall[None]]):
    """Calls of a queue that closes just as one is appended."""

    def __init__(self, queue: CallQueue, *, emptied: bool) -> None:
        super().__init__()
        self._queue = queue
        self._emptied = emptied

    def append(self, one: BlockingCall[None]) -> None:
        super().append(one)
        self._queue.closed = True
        if self._emptied:
            self.clear()


async def test_a_queue_wakes_its_loop_once_for_many_calls() -> None:
    queue = CallQueue()
    calls = [call() for _ in range(5)]
    woken: list[object] = []

    loop = queue.loop
    queue.loop = SimpleNamespace(call_soon_threadsafe=woken.append)  # type: ignore[assignment] # only what is used here
    assert {queue.post(one) for one in calls} == {True}
    assert len(woken) == 1
    queue.loop = loop
    queue._empty()
    await asyncio.wait(queue._running.values())
    assert {one.wait_briefly() for one in calls} == {True}


async def test_ctrl_c_at_the_moment_of_waking_the_loop_leaves_no_call_waiting() -> None:
    """What others post meanwhile counts on the wake-up that was interrupted."""
    queue, mine, others = CallQueue(), call(), call()
    real = queue.loop

    class Interrupted:
        def call_soon_threadsafe(self, callback: Callable[[], object]) -> None:
            queue.loop = real
            assert queue.post(others)
            raise KeyboardInterrupt

    queue.loop = Interrupted()  # type: ignore[assignment] # only what is used here
    with pytest.raises(KeyboardInterrupt):
        queue.post(mine)
    assert await asyncio.to_thread(others.wait_briefly)
    later = call()
    assert queue.post(later)
    assert await asyncio.to_thread(later.wait_briefly)


async def test_a_closed_queue_takes_nothing_and_keeps_what_is_left_with_it() -> None:
    queue = CallQueue()
    queue.closed = True
    kept = call()
    assert not queue.post(kept)
    queue.post_unwaited(kept)
    assert list(queue._calls) == [kept]
    assert kept.task is None


async def test_a_call_posted_while_the_queue_closes_comes_back() -> None:
    queue = CallQueue()
    queue._calls = Waiting(queue, emptied=False)  # type: ignore[assignment] # what of a deque is used
    assert not queue.post(call())
    assert list(queue._calls) == []


async def test_a_call_that_the_ending_loop_has_taken_is_not_posted_again() -> None:
    queue = CallQueue()
    queue._calls = Waiting(queue, emptied=True)  # type: ignore[assignment] # likewise
    assert queue.post(call())


def test_without_its_loop_a_queue_neither_runs_nor_blocks() -> None:
    queue = asyncio.run(made())
    one = call()
    assert queue.post(one)
    queue.cancel(one)
    assert one.wait_briefly()


def test_a_call_that_meets_a_closing_queue_goes_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = asyncio.run(made())
    ended.closed = True
    bridge, real = Bridge(nothing), Bridge._queue
    queues = [ended]

    async def answer() -> int:
        return 7

    monkeypatch.setattr(Bridge, "_queue", lambda self: queues.pop() if queues else real(self))
    assert bridge.call(answer) == 7
    assert queues == []
    bridge.close()
