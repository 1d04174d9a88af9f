"""Passes events to the `payments` logger and to the hook; the base of all events.

Imports no other event: most programs make none.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

import attrs

from ._attrs import ValueMixin

LONG: Final = 10.0
"""Seconds: a limiter that is closed for so long is logged at WARNING."""

logger = logging.getLogger("payments")
_OURS: Final = frozenset({"payments_async", "payments_sync"})


def warn_caller(text: str) -> None:
    """Issue a RuntimeWarning that points at the code that called this package."""
    warnings.warn(text, RuntimeWarning, stacklevel=_outside())


def _outside() -> int:
    """The stack level, from the caller, of the first frame outside our packages."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _OURS:
        frame, level = frame.f_back, level + 1
    return level


@attrs.frozen(eq=False, repr=False)
class Event(ValueMixin):
    """Base of all events of a call."""

    operation: str
    """Name of the call, such as `payouts.create`."""
    attempt: int
    """Number of the attempt, 1 for the first; 0 before it."""
    call: int = attrs.field(default=0, kw_only=True)
    """Number of the call in this process: tells apart the events of calls made at the same time."""


Event.__module__ = "payments_async.events"  # where users know it from


class Emitter:
    """Passes events to the logger and to the caller's hook."""

    def __init__(self, listener: Callable[[Event], object] | None) -> None:
        self.listener: Callable[[Event], object] | None = listener

    def warn(self, text: str) -> None:
        """Log at WARNING, with or without a listener."""
        log(logging.WARNING, "%s", text)

    def emit(self, event: Event) -> None:
        """Pass an event of `events` to the log and the hook."""
        is_loud = hasattr(event, "doubt") or getattr(event, "seconds", 0.0) >= LONG  # of a GateClosed
        level = logging.WARNING if is_loud else logging.DEBUG
        if logger.isEnabledFor(level):
            facts = {"event": type(event).__name__, **attrs.asdict(event, recurse=False)}
            log(level, "%s", event, {"payments": facts})
        if self.listener is not None:
            try:
                self.listener(event)
            except Exception as error:
                log(logging.WARNING, "on_event raised %s; the call continues", type(error).__name__)


def log(level: int, text: str, fact: object, extra: Mapping[str, object] | None = None) -> None:
    """Log; an exception of the program's log handlers does not break the call."""
    with suppress(Exception):
        logger.log(level, text, fact, extra=extra)
