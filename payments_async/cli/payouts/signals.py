"""SIGTERM and Ctrl-C while a batch is worked on: the first ends it in order, the second at once."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import attrs

_NAMES: Final = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}


@attrs.define(eq=False)
class Interrupts:
    """What signals do to the task that listens for them (`listening`)."""

    _task: asyncio.Task[object]
    _loop: asyncio.AbstractEventLoop
    _drain: Callable[[str], object] | None = None
    _drained: bool = False
    _is_cut: bool = False
    reason: str | None = None
    """The first signal; None when there was none."""

    @contextmanager
    def draining(self, drain: Callable[[str], object]) -> Iterator[None]:
        """While inside, the first signal calls `drain` with its name; the next one cancels the task."""
        self._drain = drain
        try:
            yield
        finally:
            self._drain = None

    def came(self, name: str) -> None:
        """A signal came."""
        self.reason = self.reason or name
        if self._drain is not None and not self._drained:
            self._drained = True
            self._drain(name)
        elif not self._is_cut:
            self._is_cut = True
            self._task.cancel()

    def caught(self) -> bool:
        """Whether a cancellation that has just been caught was a signal's; then it is over."""
        return self._is_cut and self._task.uncancel() == 0

    @contextmanager
    def asking(self) -> Iterator[None]:
        """While a person is asked, which holds the loop up: both signals raise KeyboardInterrupt."""
        self.close()
        before = {number: signal.signal(number, signal.default_int_handler) for number in _NAMES}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        self.open()  # not after an interrupt: a loop may still have it in store, and it was acted on

    def open(self) -> None:
        """Begin to listen."""
        for number, name in _NAMES.items():
            self._loop.add_signal_handler(number, self.came, name)

    def close(self) -> None:
        """Listen no more. A second call does nothing."""
        for number in _NAMES:
            self._loop.remove_signal_handler(number)


@contextmanager
def listening() -> Iterator[Interrupts]:
    """Take SIGTERM and SIGINT for the running task."""
    task = asyncio.current_task()
    assert task is not None
    interrupts = Interrupts(task, asyncio.get_running_loop())
    interrupts.open()
    try:
        yield interrupts
    finally:
        interrupts.close()
