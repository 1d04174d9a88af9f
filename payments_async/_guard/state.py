"""Where a guard's sums are kept: what a state in memory, in a file and in a database have in common."""

from __future__ import annotations

import atexit
import threading
from abc import abstractmethod
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager
from queue import SimpleQueue
from typing import Any, Final, TypeVar

from .._runtime import check_process, renewed_in_child
from .clocks import Clocks

FAREWELL: Final = 2.0
"""The most seconds for which the end of the process waits for a thread."""
T = TypeVar("T")
Place = tuple[float, int]
"""How far a state has come: when it began, and the number of its changes."""
Run = Callable[[str, Mapping[str, Any]], Any]
"""Runs a statement with values by name (`:name`); returns a cursor."""


class StateUnavailable(Exception):
    """A state cannot be reached, or does not answer in time. The message names no password."""


class StateThread:
    """Does one piece of work after the other.

    An executor's threads would be waited for at the end of a child that C's `fork` made without them.
    """

    def __init__(self) -> None:
        self._jobs: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="payments-guard", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Have work done after all before it."""
        future: Future[T] = Future()
        self._jobs.put((future, work))
        return future

    def end(self) -> None:
        self._jobs.put(None)
        self._thread.join(FAREWELL)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            future, work = job
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)


class SumsState:
    """A state. One that processes share has a connection, and one thread in each that uses it.

    Raises StateUnavailable where it cannot be used now, ConfigurationError where somebody must put it right.
    """

    place: str  # its name for messages

    def __init__(self) -> None:
        self._connection: Any = None
        self._thread: StateThread | None = None
        _states.append(self)

    @abstractmethod
    def transaction(self, *, keeps: bool) -> AbstractContextManager[Run]:
        """Context of one transaction, which is rolled back unless it `keeps` what it changes."""

    @abstractmethod
    def clocks(self) -> Clocks:
        """The clocks now; within a transaction."""

    def reached(self, account: str) -> Place | None:
        """How far a guard's sums had come, as noted outside of the state; None for no note."""

    def note(self, account: str, place: Place) -> None:
        """Note how far they have come, where that is possible."""

    @property
    def thread(self) -> StateThread:
        if self._thread is None:
            self._thread = StateThread()
        return self._thread

    def close(self) -> None:
        """Close the connection; the next transaction opens another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def end(self) -> None:
        """Do what is left, at the end of the process."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.end()
        self.close()

    def forked(self) -> None:
        """Begin anew in a forked child. What is the parent's is kept, so that it is never closed here."""
        _INHERITED.append((self._connection, self._thread))
        self._connection = self._thread = None


@renewed_in_child
def _after_fork() -> None:
    for state in _states:
        state.forked()


def _at_exit() -> None:
    check_process()
    for state in _states:
        state.end()


_states: Final[list[SumsState]] = []
_INHERITED: Final[list[object]] = []

atexit.register(_at_exit)
