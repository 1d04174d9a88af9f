"""The guard's question, asked on an event loop of the program's own."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar
from typing import Any

import pytest

from payments_async._guard.asking import answer
from payments_async._runtime import SYSTEM
from tests.support.simulated import SimulatedRuntime, run_simulated

USER: ContextVar[str] = ContextVar("user", default="nobody")


async def said(ask: Any) -> bool:
    return await answer(ask, "the request", seconds=3600, runtime=SYSTEM)


async def test_a_function_that_ends_as_if_it_were_cancelled_says_no() -> None:
    def ask(request: object) -> bool:
        raise asyncio.CancelledError

    assert not await said(ask)


async def test_a_plain_function_runs_in_another_thread_and_a_coroutine_function_on_the_loop() -> None:
    seen: list[object] = []
    USER.set("ama")

    def plain(request: object) -> bool:
        seen.extend([request, USER.get(), threading.current_thread() is threading.main_thread()])
        return True

    async def on_the_loop(request: object) -> bool:
        return threading.current_thread() is threading.main_thread()

    assert await said(plain)
    assert seen == ["the request", "ama", False]
    assert await said(on_the_loop)


@pytest.mark.parametrize("stubborn", [False, True])
def test_no_answer_in_time_is_a_no(stubborn: bool) -> None:
    ends: list[str] = []

    async def ask(request: object) -> bool:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            ends.append("cancelled")
            if not stubborn:
                raise
        return True

    async def asked() -> tuple[bool, float]:
        runtime = SimulatedRuntime()
        return await answer(ask, "the request", seconds=30, runtime=runtime), runtime.monotonic()

    assert run_simulated(asked()) == (False, 30.0)
    assert ends == ["cancelled"]


async def test_a_cancelled_call_cancels_its_question() -> None:
    begun, is_over = asyncio.Event(), asyncio.Event()

    async def ask(request: object) -> bool:
        begun.set()
        try:
            return await asyncio.get_running_loop().create_future() is None
        finally:
            is_over.set()

    call = asyncio.create_task(said(ask))
    await begun.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await is_over.wait()
