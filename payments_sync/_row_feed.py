"""Rows from the caller's own code, read in the caller's thread while the loop works.

    caller's thread                             the thread "payments-sync"
    FedCall.wait ◀── a request for a group ──── RowFeed, when its reader needs a row
                 ─── rows, or an exception ───▶

So a generator may be slow, use a database connection of its thread, or call the client itself.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from ._blocking_call import WAIT_SLICE, BlockingCall

if TYPE_CHECKING:
    from payments_async.bulk._loading.load import Input

T = TypeVar("T")

GROUP: Final = 100
"""Rows in one group: a trip between two threads costs more than a row."""

Group = tuple[list[Any], Exception | None]
"""Rows, and the exception that ended them early."""


class RowFeed(AsyncIterable[Any]):
    """An asynchronous iterable whose items the caller's thread takes from another iterable."""

    def __init__(self, items: Iterable[Any]) -> None:
        self._items = items
        self._requests: SimpleQueue[Callable[[], object] | None] = SimpleQueue()

    def serve(self) -> None:
        """Read groups as they are requested, in the caller's thread, until the call has ended."""
        while True:
            try:
                request = self._requests.get(timeout=WAIT_SLICE)
            except Empty:  # a signal may have been missed: see WAIT_SLICE
                continue
            if request is None:
                return
            request()

    def end(self) -> None:
        """Signal that no more groups will be requested."""
        self._requests.put(None)

    async def __aiter__(self) -> AsyncIterator[Any]:
        reading = _Reading(self._items)
        group, error = await self._next_group(reading)
        while group or error:
            for item in group:
                yield item
            if error is not None:
                raise error
            group, error = await self._next_group(reading)

    async def _next_group(self, reading: _Reading) -> Group:
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[Group] = loop.create_future()
        self._requests.put(lambda: loop.call_soon_threadsafe(_answer, answered, reading.group()))
        return await answered


class _Reading:
    """One pass over the caller's items."""

    def __init__(self, items: Iterable[Any]) -> None:
        self._items = items
        self._iterator: Iterator[Any] | None = None

    def group(self) -> Group:
        """The next group, read in the caller's thread; empty at the end."""
        group: list[Any] = []
        try:
            if self._iterator is None:
                self._iterator = iter(self._items)
            for item in self._iterator:
                group.append(item)
                if len(group) == GROUP:
                    break
        except Exception as error:
            return group, error
        return group, None


class FedCall(BlockingCall[T]):
    """A call whose caller reads the rows that it needs, instead of only waiting."""

    __slots__ = ("_feed",)

    def __init__(
        self,
        func: Callable[..., Coroutine[Any, Any, T]],
        source: Input,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> None:
        self._feed = RowFeed(cast(Iterable[Any], source)) if _is_code(source) else None
        given = source if self._feed is None else _repeatable_like(self._feed, source)
        super().__init__(func, (given, *args), kwargs)

    async def run(self, running: dict[BlockingCall[Any], asyncio.Task[None]]) -> None:
        """Run it, on the loop. The caller then stops reading."""
        try:
            await super().run(running)
        finally:
            if self._feed is not None:
                self._feed.end()

    def wait(self) -> None:
        """Read rows until the call has ended."""
        if self._feed is not None:
            self._feed.serve()
        super().wait()


def _is_code(source: Input) -> bool:
    """Return whether reading a source may run the caller's code: no path, list or frame, not asynchronous."""
    known = isinstance(source, str | os.PathLike | list | tuple) or hasattr(source, "__arrow_c_stream__")
    return isinstance(source, Iterable) and not known


def _repeatable_like(feed: RowFeed, source: object) -> AsyncIterable[Any]:
    """Make the feed of a source; it can be read only once when the source can."""
    return aiter(feed) if isinstance(source, Iterator) else feed


def _answer(answered: asyncio.Future[Group], group: Group) -> None:
    if not answered.done():
        answered.set_result(group)
