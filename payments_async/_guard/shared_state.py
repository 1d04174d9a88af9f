"""What a state that processes share has in each of them: a connection, and one thread that uses it."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, Final, Generic, Protocol, TypeVar

from .._runtime import check_process, renewed_in_child

FAREWELL: Final = 2.0
"""The most seconds for which the end of the process waits for a thread."""
T = TypeVar("T")


class Closable(Protocol):
    """A connection to a database."""

    def close(self) -> None:
        """Close it."""


C = TypeVar("C", bound=Closable)


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
        """Wait until all is done."""
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


class SharedState(Generic[C]):
    """The part that does not depend on the database."""

    def __init__(self) -> None:
        self._connection: C | None = None
        self._thread: StateThread | None = None
        _states.append(self)

    @property
    def thread(self) -> StateThread:
        """Does the work."""
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
        if self._thread is not None:
            self._thread.end()
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


_states: Final[list[SharedState[Any]]] = []
_INHERITED: Final[list[object]] = []

atexit.register(_at_exit)
