"""How a blocking batch reaches the loop: while it is open, it stays on the one that it was opened on.

It has a lease of its own, so that its ledger can be closed in order even after its client was. Whoever
interrupts a run ends it as `stop` does; whoever closes a batch waits for what other threads do with it.
"""

from __future__ import annotations

import asyncio
from asyncio import _get_running_loop
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar

from payments_async.bulk import BatchReport
from payments_async.bulk.errors import BulkError
from payments_async.errors import PaymentsError

from ._blocking_call import GRACE, PATIENCE, BlockingCall
from ._event_loop import Bridge
from ._row_feed import FedCall

if TYPE_CHECKING:
    from payments_async.bulk.batch import PayoutBatch as AsyncPayoutBatch
    from payments_async.bulk.loading.load import Input

    from ._blocking_call import CallQueue

P = ParamSpec("P")
T = TypeVar("T")

_CUT: Final = "The run was cut off: what was under way stays in flight, and the next run finds out about it."
_AGAIN: Final = (
    "To go on, run the same program again, with the same ledger, input and batch id: no row is paid twice."
)
_FORKED: Final = (
    "the process was forked while this batch was open, and its ledger and the lock on it are the parent's: "
    "open the batch in one process only, after the fork"
)


class BatchBridge(Bridge):
    """One batch's way to the loop, usable from any thread while the batch is open."""

    __slots__ = ("_client", "_pinned", "_works")

    def __init__(self, twin: AsyncPayoutBatch, client: Bridge | None) -> None:
        self._works = _Works(twin)
        super().__init__(self._works.close)
        self._client = client
        self._pinned: CallQueue | None = None

    def open(self) -> None:
        """Open the ledger on the client's loop, and stay there. Raises BulkError, LedgerError."""
        if self._pinned is not None:
            raise BulkError(_FORKED if self._pinned.closed else "the batch is open already")
        self._refuse_own_loop()
        self._pinned = super()._line()
        try:
            self.call(self._works.open)
        except BaseException:
            self.close()
            raise

    def call(self, func: Callable[P, Coroutine[Any, Any, T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """As a client's, and `close` waits for its end."""
        return super().call(self._works.tracked(func), *args, **kwargs)

    def fed(
        self,
        func: Callable[Concatenate[Input, P], Coroutine[Any, Any, T]],
        source: Input,
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """As `call`, for what reads the caller's rows; code of the caller's is run in the caller's thread."""
        self._refuse_own_loop()
        return self._run(self._line(), FedCall(self._works.tracked(func), source, args, kwargs))

    def drained(
        self,
        drain: float,
        func: Callable[P, Coroutine[Any, Any, T]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """As `call`, for a run, which is not cut off when it is interrupted: it has `drain` seconds to end.

        The exception that interrupts it then leaves with the report in `.result`. Another one cuts it.
        """
        self._refuse_own_loop()
        run = _Run(self._works.tracked(func), args, kwargs, self._works.stop, drain)
        return self._run(self._line(), run)

    def tell(self, order: Callable[P, None], /, *args: P.args, **kwargs: P.kwargs) -> None:
        """Have the loop carry out an order to what runs there; without waiting, and from any thread."""
        line = self._pinned
        if line is None or line.closed:  # nothing runs
            return
        if _get_running_loop() is line.loop:
            order(*args, **kwargs)
        else:
            line.tell(lambda: order(*args, **kwargs))

    def close(self) -> None:
        """End what runs, close the ledger, leave the loop. Nothing in a forked child: it is the parent's."""
        super().close()
        self._pinned = None

    def _run(self, line: CallQueue, hop: BlockingCall[T]) -> T:
        """As a client's. Ctrl-C in a long wait is expected: how this waits is nothing to tell of it."""
        try:
            return super()._run(line, hop)
        except KeyboardInterrupt as stopped:
            raise stopped.with_traceback(None) from None

    def _line(self) -> CallQueue:
        if self._pinned is not None and self._pinned.closed:
            raise BulkError(_FORKED)
        if self._client is not None:
            self._client._line()  # the client is used, so it is the client's to close its connections
        return self._pinned or super()._line()  # when it is not open, the twin knows what can be done


class _Works:
    """On the loop: a batch and what is under way with it. Knows no bridge: a batch can be forgotten, too."""

    def __init__(self, twin: AsyncPayoutBatch) -> None:
        self._twin = twin
        self._tasks: set[asyncio.Task[Any]] = set()
        self._is_open = False

    async def open(self) -> None:
        """Open the ledger."""
        await self._twin.__aenter__()
        self._is_open = True

    def tracked(self, func: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
        """The function, whose end `close` will wait for."""

        async def call(*args: P.args, **kwargs: P.kwargs) -> T:
            task = asyncio.current_task()
            assert task is not None
            self._tasks.add(task)
            try:
                return await func(*args, **kwargs)
            finally:
                self._tasks.discard(task)

        return call

    def stop(self, reason: str) -> None:
        """Have a run end."""
        self._twin.stop(reason)

    async def close(self) -> None:
        """Let what is under way come to its end, or cut it off when this is cancelled; close the ledger."""
        self.stop("the batch was closed")
        try:
            await self._quiet()
        except asyncio.CancelledError:
            for task in self._tasks:
                task.cancel()
            await self._quiet()
            raise
        finally:
            if self._is_open:
                self._is_open = False
                await self._twin.__aexit__(None, None, None)

    async def _quiet(self) -> None:
        if self._tasks:
            await asyncio.wait(set(self._tasks))


class _Run(BlockingCall[T]):
    """A call that is stopped before it is cut."""

    __slots__ = ("_seconds", "_stop")

    def __init__(
        self,
        func: Callable[..., Coroutine[Any, Any, T]],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        stop: Callable[[str], object],
        seconds: float,
    ) -> None:
        super().__init__(func, args, kwargs)
        self._stop, self._seconds = stop, seconds

    def abandon(self, line: CallQueue, stopped: BaseException) -> None:
        """Have it stop, and wait for its end; interrupted again, cut it off and let it note what it knows."""
        try:
            line.tell(self._end)
            ended = self._wait_for(self._seconds + GRACE)
        except BaseException as again:
            self._cut(line, again)
            raise
        if ended:
            self.account(stopped, ended=True)
        else:
            self._cut(line, stopped)

    def account(self, stopped: BaseException, *, ended: bool) -> None:
        """Write on the interrupting exception how the run ended; `.result` is its report, if there is one."""
        error = self._taken() if ended else None
        stopped.outcome = None  # type: ignore[attr-defined] # as for any call: no single request is in doubt
        stopped.result = self._value  # type: ignore[attr-defined] # it rides along
        stopped.add_note(f"{_told(ended, error, self._value)}\n{_AGAIN}")

    def _ended(self, cancelled: asyncio.CancelledError) -> PaymentsError:
        return BulkError(f"{_CUT} {_AGAIN}")

    def _end(self) -> None:
        if self.task is None:
            self.cancel()
        else:
            self._stop("interrupted")

    def _cut(self, line: CallQueue, stopped: BaseException) -> None:
        line.cancel(self)
        self.account(stopped, ended=self.wait_briefly())

    def _wait_for(self, seconds: float) -> bool:
        while seconds > 0:
            if self._done.acquire(timeout=min(seconds, PATIENCE)):
                return True
            seconds -= PATIENCE
        return False


def _told(ended: bool, error: BaseException | None, report: object) -> str:
    if ended and error is None:
        assert isinstance(report, BatchReport)
        counts = [
            f"{rows:,} {state.lower().replace('_', ' ')}" for state, rows in report.counts.items() if rows
        ]
        return f"The run was stopped in order: {', '.join(counts)}. Its report is in .result."
    if isinstance(error, Exception):
        return f"The run had failed ({error if isinstance(error, PaymentsError) else type(error).__name__})."
    return _CUT
