"""Asks the user's function whether a payout above the limit may be sent.

A plain function may wait for a person, so it never runs on the event loop's thread. It runs where a finder
says: `payments_sync` registers one, for the thread of the blocking caller. Otherwise it runs in a thread of
asyncio's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from inspect import isawaitable, iscoroutinefunction
from typing import Any, Final, Literal

from .._emitter import logger
from .._runtime import Runtime

Ask = Callable[[Any], object]  # the user's function, plain or a coroutine function

Run = Callable[..., Awaitable[object]]
"""Runs a plain function with its arguments in another thread, as `asyncio.to_thread` does."""

finders: Final[list[Callable[[], Run | None]]] = []
"""Each returns what runs a function in the thread that waits for the current task; None if no thread does."""


async def answer(ask: Ask, request: object, *, seconds: float, runtime: Runtime) -> bool:
    """Whether `ask` returned True for the request. Anything else is a no: an exception, or no answer in time.

    A function that is late is left to end by itself, and its answer is ignored.
    """
    run = next(filter(None, (find() for find in finders)), asyncio.to_thread)
    asked = asyncio.ensure_future(_asked(ask, request, run))
    late = asyncio.get_running_loop().create_future()
    timer = runtime.call_later(seconds, partial(late.set_result, None), background=True)
    try:
        await asyncio.wait((asked, late), return_when=asyncio.FIRST_COMPLETED)
    finally:
        timer.cancel()
        asked.cancel()
    return asked.done() and not asked.cancelled() and asked.result() is True


async def _asked(ask: Ask, request: object, run: Run) -> object:
    try:
        said = ask(request) if iscoroutinefunction(ask) else await run(_called, ask, request)
        return await said if isawaitable(said) else said
    except Exception as error:
        return _refusal(error)


def _called(ask: Ask, request: object) -> object:
    try:
        return ask(request)
    except Exception as error:  # here: a future cannot carry a StopIteration
        return _refusal(error)


def _refusal(error: Exception) -> Literal[False]:
    """A no, logged without the exception's text, which may show the request."""
    logger.warning("the guard's question ended with %s, which refuses the payout", type(error).__name__)
    return False
