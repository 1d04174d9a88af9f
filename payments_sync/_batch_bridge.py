"""Runs the work of a blocking batch on the loop that the batch was opened on.

A batch has a lease of its own, so that its ledger can be closed in order even after its client was. An
interrupted run ends as after `stop`. Closing a batch waits for what other threads do with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar

from payments_async.bulk import BatchReport
from payments_async.bulk._protocol.outcomes import CREATED
from payments_async.bulk.batch import PayoutBatch as AsyncBatch
from payments_async.bulk.errors import BulkError
from payments_async.errors import PaymentsError

from ._blocking_call import GRACE, BlockingCall
from ._event_loop import Bridge
from ._row_feed import fed

if TYPE_CHECKING:
    from payments_async.bulk._loading.load import Input

    from ._blocking_call import CallQueue

P = ParamSpec("P")
T = TypeVar("T")

_CUT: Final = (
    "The run was cut off: rows under way stay in flight, and the next run finds out what became of them."
)
_AGAIN: Final = (
    "To resume, run the same program again with the same ledger, input and batch id: no row is paid twice."
)
_FORKED: Final = (
    "the process was forked while this batch was open, and its connections are the parent's: "
    "open the batch after the fork"
)


class BatchBridge(Bridge):
    """Runs the calls of a batch on the loop, from any thread, while it is open."""

    __slots__ = ("_batch", "_client", "_pinned")

    def __init__(self, twin: AsyncBatch, client: Bridge | None = None) -> None:
        self._batch = _OpenBatch(twin)
        super().__init__(self._batch.close)
        self._client = client
        self._pinned: CallQueue | None = None

    def open(self) -> None:
        """Open the ledger on the client's loop, and keep to that loop. Raises BulkError, LedgerError."""
        self._refuse_own_loop()
        if self._pinned is not None:
            raise BulkError(_FORKED if self._pinned.closed else "it is open already")
        self._pinned = super()._queue()
        try:
            self.call(self._batch.open)
        except BaseException:
            self.close()
            raise

    def call(self, func: Callable[P, Coroutine[Any, Any, T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """As `Bridge.call`; `close` also waits for its end."""
        return super().call(self._batch.tracked(func), *args, **kwargs)

    def call_with_rows(
        self,
        func: Callable[Concatenate[Input, P], Coroutine[Any, Any, T]],
        source: Input,
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """As `call`, for a function that reads rows: the caller's code runs in the caller's thread."""
        return self.call(partial(fed, func, source), *args, **kwargs)

    def call_and_drain(
        self,
        drain: float,
        func: Callable[P, Coroutine[Any, Any, T]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """As `call`, for a run: an interruption stops it in order, with `drain` seconds to end.

        The interrupting exception then has the report in `.result`. A second one cuts the run off.
        """
        self._refuse_own_loop()
        run = _StoppableCall(self._batch.tracked(func), args, kwargs, self._batch.stop, drain)
        return self._run(self._queue(), run)

    def call_soon(self, func: Callable[P, None], /, *args: P.args, **kwargs: P.kwargs) -> None:
        """Run a plain function on the loop, from any thread, without waiting for it."""
        queue = self._pinned
        if queue is not None and not queue.closed:  # else nothing runs
            queue.call_soon(partial(func, *args, **kwargs))

    def close(self) -> None:
        """Stop what runs, close the ledger, end the lease. Does nothing in a forked child."""
        super().close()
        self._pinned = None

    def _run(self, queue: CallQueue, call: BlockingCall[T]) -> T:
        """As `Bridge._run`, but the traceback of Ctrl-C, which is expected here, is short."""
        try:
            return super()._run(queue, call)
        except KeyboardInterrupt as stopped:
            raise stopped.with_traceback(None) from None

    def _queue(self) -> CallQueue:
        if self._pinned is not None and self._pinned.closed:
            raise BulkError(_FORKED)
        if self._client is not None:
            self._client._queue()  # so that closing the client closes its connections
        return self._pinned or super()._queue()  # one that is not open refuses by itself what it cannot do


class _OpenBatch:
    """A batch and its tasks, on the loop. It does not refer to the bridge, which can so be collected."""

    def __init__(self, twin: AsyncBatch) -> None:
        self._twin = twin
        self._tasks: set[asyncio.Task[Any]] = set()
        self._is_open = False

    async def open(self) -> None:
        """Open the ledger."""
        await self._twin.__aenter__()
        self._is_open = True

    def tracked(self, func: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
        """The function, for whose end `close` waits."""

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
        """Stop a run in order."""
        self._twin.stop(reason)

    async def close(self) -> None:
        """Wait for what is under way, or cancel it when this is cancelled; then close the ledger."""
        self.stop("the batch was closed")
        try:
            await self._wait_for_tasks()
        except asyncio.CancelledError:
            for task in self._tasks:
                task.cancel()
            await self._wait_for_tasks()
            raise
        finally:
            if self._is_open:
                self._is_open = False
                await self._twin.__aexit__(None, None, None)

    async def _wait_for_tasks(self) -> None:
        if self._tasks:
            await asyncio.wait(set(self._tasks))


class _StoppableCall(BlockingCall[T]):
    """A call that can be stopped in order before it is cancelled."""

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

    def cancel_and_wait(self, queue: CallQueue, stopped: BaseException) -> None:
        """Stop the run and wait. A second interruption cancels it; it still records what it knows."""
        try:
            queue.call_soon(self._end)
            ended = self.wait_briefly(self._seconds + GRACE)
        except BaseException as again:
            self._cut(queue, again)
            raise
        if ended:
            self.annotate(stopped, ended=True)
        else:
            self._cut(queue, stopped)

    def annotate(self, stopped: BaseException, *, ended: bool) -> None:
        """Note the run's end on the interrupting exception. `.result` is its report, if there is one."""
        error = self._taken() if ended else None
        stopped.outcome = None  # type: ignore[attr-defined] # no single request is in doubt
        stopped.result = self._value  # type: ignore[attr-defined] # as on a CancelledError
        stopped.add_note(f"{_run_note(ended, error, self._value)}\n{_AGAIN}")

    def _ended(self, cancelled: asyncio.CancelledError) -> PaymentsError:
        return BulkError(f"{_CUT} {_AGAIN}")

    def _end(self) -> None:
        if self.task is None:
            self.cancel()
        else:
            self._stop("interrupted")

    def _cut(self, queue: CallQueue, stopped: BaseException) -> None:
        queue.cancel(self)
        self.annotate(stopped, ended=self.wait_briefly())


def _run_note(ended: bool, error: BaseException | None, report: object) -> str:
    if ended and error is None and isinstance(report, BatchReport):
        return f"The run was stopped in order: {_figures(report)}. Its report is in .result."
    if isinstance(error, Exception):
        return f"The run had failed ({error if isinstance(error, PaymentsError) else type(error).__name__})."
    return _CUT


def _figures(report: BatchReport) -> str:
    """Figures of a batch."""
    counts = {word: rows for word, rows in report.counts.items() if word not in ("asked", *CREATED)}
    return ", ".join(f"{rows:,} {word.replace('_', ' ')}" for word, rows in counts.items() if rows)
