"""Who is told of events: the `payments` logger, and the caller's hook.

Apart from `events`: a client that nobody listens to makes none, and need not load their classes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .events import Event

logger: logging.Logger = logging.getLogger("payments")

LONG = 10.0
"""Seconds: a gate closed for so long is worth a warning."""


class Emitter:
    """Hands events to the logger and to the caller's hook."""

    def __init__(self, listener: Callable[[Event], object] | None) -> None:
        self._listener = listener

    @property
    def enabled(self) -> bool:
        """Whether anybody listens; events are made only then."""
        return self._listener is not None or logger.isEnabledFor(logging.DEBUG)

    def warn(self, text: str) -> None:
        """Log what has to be known though nobody listens."""
        _log(logging.WARNING, "%s", text)

    def emit(self, event: Event) -> None:
        """Tell everybody."""
        closed_long = getattr(event, "seconds", 0.0) >= LONG  # only a GateClosed has them
        _log(logging.WARNING if closed_long else logging.DEBUG, "%s", event)
        if self._listener is not None:
            try:
                self._listener(event)
            except Exception as error:
                _log(logging.WARNING, "on_event raised %s; the call goes on", type(error).__name__)


def _log(level: int, text: str, told: object) -> None:
    """Log, and let no handler of the program's break a call that moves money."""
    with suppress(Exception):
        logger.log(level, text, told)
