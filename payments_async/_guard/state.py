"""Where a guard's sums are kept: what a state in memory, in a file and in a database have in common."""

from __future__ import annotations

import asyncio
import atexit
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from queue import SimpleQueue
from typing import Any, Final, TypeVar

from .._runtime import Runtime, check_process, renewed_in_child
from ..errors import ConfigurationError, LimitStoreUnavailable
from .clocks import Clocks, clocks_of

FAREWELL: Final = 2.0
"""The most seconds for which the end of the process waits for a thread."""
PATIENCE: Final = 5.0  # seconds after which a state that is away refuses
RETRY: Final = 0.25  # seconds until a state that is away is tried again
T = TypeVar("T")
Run = Callable[..., Any]
"""Runs a statement with values by name (`:name`); returns a cursor."""


class StateUnavailable(Exception):
    """A state cannot be reached, or does not answer in time. The message names no password."""


class SumsState:
    """A state. One that processes share has a connection, and one thread in each that uses it.

    Raises StateUnavailable where it cannot be used now, ConfigurationError where somebody must put it right.
    """

    place: str  # its name for messages
    lock: AbstractContextManager[Any] = nullcontext()
    """Held in each transaction."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._connection: Any = None
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()  # loops of several threads may use it first at one moment
        self._jobs: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        _states.append(self)

    @contextmanager
    def transaction(self, *, keeps: bool) -> Iterator[Run]:
        """Context of one transaction, which is rolled back unless it `keeps` what it changes.

        A failure ends it with its connection.
        """
        with self.lock:
            try:
                self._begin()
                yield self._run
                self._connection.execute("COMMIT" if keeps else "ROLLBACK")
            except BaseException as error:
                self.close()
                raise self._told(error) from None

    @abstractmethod
    def _begin(self) -> None:
        """Begin a transaction, on a new connection where there is none, and make tables that are missing."""

    @abstractmethod
    def _run(self, statement: str, **values: Any) -> Any:
        """Run a statement, as `Run` does."""

    def _told(self, error: BaseException) -> BaseException:
        """The error that callers see for one within a transaction."""
        return error

    def clocks(self) -> Clocks:
        """The clocks now; within a transaction."""
        return clocks_of(self._runtime)

    def reached(self, account: str) -> int:
        """How far a guard's sums had come, as noted outside of the state; 0 for no note."""
        return 0

    def note(self, account: str, serial: int) -> None:
        """Note how far they have come, where that is possible."""

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Have work done in the state's thread, after all before it.

        An executor's threads would be waited for at the end of a child that C's `fork` made without them.
        """
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=_do_all, args=(self._jobs,), name="payments-guard", daemon=True
                )
                self._thread.start()
        future: Future[T] = Future()
        self._jobs.put((future, work))
        return future

    def tell(self, work: Callable[[], object]) -> None:
        """Have work done soon, whose outcome nobody waits for."""
        self.submit(work)

    async def ask(self, work: Callable[[], T], seconds: float) -> T:
        """Have work done within so many seconds; while the state is away, again.

        Raises LimitStoreUnavailable, ConfigurationError for a state that is wrong, and TimeoutError where
        less time was given than a state may take.
        """
        why = ""
        with suppress(TimeoutError):
            async with asyncio.timeout(min(seconds, PATIENCE)):
                while True:
                    try:
                        return await asyncio.wrap_future(self.submit(work))
                    except StateUnavailable as error:
                        why = str(error)
                    except ConfigurationError as error:
                        raise ConfigurationError(f"the guard's sums cannot be read: {error}") from None
                    await self._runtime.sleep(RETRY)
        if not why and seconds < PATIENCE:
            raise TimeoutError
        text = f"the guard's sums cannot be read: {why or 'it did not answer'}"
        raise LimitStoreUnavailable(text, retry_after=PATIENCE)

    def close(self) -> None:
        """Close the connection; the next transaction opens another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def end(self) -> None:
        """Do what is left, at the end of the process."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._jobs.put(None)
            thread.join(FAREWELL)
        self.close()

    def forked(self) -> None:
        """Begin anew in a forked child. What is the parent's is kept, so that it is never closed here."""
        _INHERITED.append((self._connection, self._jobs))
        self._connection = self._thread = None
        self._jobs, self._starting = SimpleQueue(), threading.Lock()


def _do_all(jobs: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None]) -> None:
    """Do one piece of work after the other."""
    while (job := jobs.get()) is not None:
        future, work = job
        if not future.set_running_or_notify_cancel():
            continue
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)


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
