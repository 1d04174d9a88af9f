"""The way onto the loop, where it is tight: while the loop is ending."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from payments_sync._blocking_call import BlockingCall, CallQueue
from payments_sync._event_loop import Bridge


async def nothing() -> None:
    """Something to run."""


def hop() -> BlockingCall[None]:
    return BlockingCall(nothing, (), {})


async def made() -> CallQueue:
    return CallQueue()


class Waiting(list[BlockingCall[None]]):
    """A queue in which a line closes at the very moment somebody has joined it."""

    def __init__(self, line: CallQueue, *, emptied: bool) -> None:
        super().__init__()
        self._line = line
        self._emptied = emptied

    def append(self, one: BlockingCall[None]) -> None:
        super().append(one)
        self._line.closed = True
        if self._emptied:
            self.clear()


async def test_a_line_wakes_its_loop_once_for_many_hops() -> None:
    line = CallQueue()
    hops = [hop() for _ in range(5)]
    woken: list[object] = []

    class Loop:
        def call_soon_threadsafe(self, callback: object) -> None:
            woken.append(callback)

    line.loop, loop = Loop(), line.loop  # type: ignore[assignment] # only what is used here
    assert {line.post(one) for one in hops} == {True}
    assert len(woken) == 1
    line.loop = loop
    line._empty()
    await asyncio.wait(line._running.values())
    assert {one.wait_briefly() for one in hops} == {True}


async def test_ctrl_c_at_the_moment_of_waking_the_loop_leaves_nobody_waiting() -> None:
    """What others post meanwhile counts on the wake-up that was interrupted."""
    line, mine, others = CallQueue(), hop(), hop()
    real = line.loop

    class Interrupted:
        def call_soon_threadsafe(self, callback: Callable[[], object]) -> None:
            line.loop = real
            assert line.post(others)
            raise KeyboardInterrupt

    line.loop = Interrupted()  # type: ignore[assignment] # only what is used here
    with pytest.raises(KeyboardInterrupt):
        line.post(mine)
    assert await asyncio.to_thread(others.wait_briefly)
    later = hop()
    assert line.post(later)
    assert await asyncio.to_thread(later.wait_briefly)


async def test_a_closed_line_takes_nothing_and_keeps_what_is_left_with_it() -> None:
    line = CallQueue()
    line.closed = True
    kept = hop()
    assert not line.post(kept)
    line.leave(kept)
    assert list(line._hops) == [kept]
    assert kept.task is None


async def test_a_hop_posted_while_the_line_closes_comes_back() -> None:
    line = CallQueue()
    line._hops = Waiting(line, emptied=False)  # type: ignore[assignment] # what of a deque is used
    assert not line.post(hop())
    assert list(line._hops) == []


async def test_a_hop_that_the_ending_loop_has_taken_is_not_posted_again() -> None:
    line = CallQueue()
    line._hops = Waiting(line, emptied=True)  # type: ignore[assignment] # likewise
    assert line.post(hop())


def test_without_its_loop_a_line_neither_runs_nor_blocks() -> None:
    line = asyncio.run(made())
    one = hop()
    assert line.post(one)
    line.cancel(one)
    assert one.wait_briefly()


def test_a_call_that_meets_a_closing_line_goes_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = asyncio.run(made())
    ended.closed = True
    bridge, real = Bridge(nothing), Bridge._line
    lines = [ended]

    async def answer() -> int:
        return 7

    monkeypatch.setattr(Bridge, "_line", lambda self: lines.pop() if lines else real(self))
    assert bridge.call(answer) == 7
    assert lines == []
    bridge.close()
