"""Carries New Relic's trace from a blocking caller's thread to the call on the loop.

Its agent keeps the current trace by thread and by task. Other agents keep it in context variables, which a
call copies with the rest of its caller's context.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Final, TypeVar

T = TypeVar("T")
Call = Callable[..., Coroutine[Any, Any, T]]

HAS_AGENT: Final = "newrelic.agent" in sys.modules
"""Whether New Relic's agent was loaded before this package, as it has to be to see anything."""


def traced(func: Call[T]) -> Call[T]:
    """The coroutine function under its caller's trace; the function itself where there is none."""
    try:
        from newrelic.agent import current_trace
        from newrelic.core.context import ContextOf
    except ImportError:  # an agent of another version, whose parts are elsewhere
        return func
    trace = current_trace()
    return func if trace is None else partial(_under, ContextOf(trace=trace), func)


async def _under(trace: AbstractContextManager[Any], func: Call[T], *args: Any, **kwargs: Any) -> T:
    with trace:
        return await func(*args, **kwargs)
