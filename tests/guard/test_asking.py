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


def plainly(value: object) -> Any:
    return lambda request: value


def awaited(value: object) -> Any:
    async def ask(request: object) -> object:
        return value

    return ask


def raising(error: BaseException) -> Any:
    def ask(request: object) -> object:
        raise error

    return ask


def raising_later(error: BaseException) -> Any:
    async def ask(request: object) -> object:
        raise error

    return ask


@pytest.mark.parametrize("asking", [plainly, awaited, lambda value: lambda request: awaited(value)(request)])
@pytest.mark.parametrize("value", [True, False, None, 1, "yes"])
async def test_only_true_is_a_yes(asking: Any, value: object) -> None:
    assert await said(asking(value)) is (value is True)


async def test_the_function_gets_the_request() -> None:
    assert await said(lambda request: request == "the request")


@pytest.mark.parametrize("asking", [raising, raising_later])
@pytest.mark.parametrize("error", [ValueError("account 0244"), StopIteration("account 0244")])
async def test_an_exception_is_a_no_and_only_its_type_is_logged(
    asking: Any, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    assert not await said(asking(error))
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "account" not in caplog.text
    assert "which refuses the payout" in record.getMessage()
    assert record.exc_info is None


@pytest.mark.parametrize("asking", [raising, raising_later])
async def test_a_question_that_cancels_itself_is_a_no(asking: Any) -> None:
    assert not await said(asking(asyncio.CancelledError()))


async def test_a_plain_function_runs_in_another_thread_in_the_callers_context() -> None:
    seen: list[object] = []
    USER.set("ama")

    def ask(request: object) -> bool:
        seen.extend([USER.get(), threading.current_thread() is threading.main_thread()])
        return True

    assert await said(ask)
    assert seen == ["ama", False]


async def test_a_coroutine_function_runs_on_the_loop() -> None:
    loop = asyncio.get_running_loop()

    async def ask(request: object) -> bool:
        return asyncio.get_running_loop() is loop

    assert await said(ask)


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
    begun, ended = asyncio.Event(), asyncio.Event()

    async def ask(request: object) -> bool:
        begun.set()
        try:
            return await asyncio.get_running_loop().create_future() is None
        finally:
            ended.set()

    call = asyncio.create_task(said(ask))
    await begun.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await ended.wait()
