"""The guard's question, asked on an event loop of the program's own."""

from __future__ import annotations

import asyncio
import logging
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


def ended(end: object) -> object:
    """What a function returns, or raises."""
    if isinstance(end, BaseException):
        raise end
    return end


def plainly(end: object) -> Any:
    return lambda request: ended(end)


def awaited(end: object) -> Any:
    async def ask(request: object) -> object:
        return ended(end)

    return ask


def plainly_awaited(end: object) -> Any:
    return lambda request: awaited(end)(request)


@pytest.mark.parametrize("asking", [plainly, awaited, plainly_awaited])
@pytest.mark.parametrize("end", [True, False, None, 1, "yes", asyncio.CancelledError()])
async def test_only_true_is_a_yes(asking: Any, end: object) -> None:
    assert await said(asking(end)) is (end is True)


@pytest.mark.parametrize("asking", [plainly, awaited])
@pytest.mark.parametrize("error", [ValueError("account 0244"), StopIteration("account 0244")])
async def test_an_exception_is_a_no_and_only_its_type_is_logged(
    asking: Any, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    assert not await said(asking(error))
    (record,) = caplog.records
    assert (record.levelno, record.exc_info) == (logging.WARNING, None)
    assert "account" not in caplog.text
    assert "which refuses the payout" in record.getMessage()


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
