"""Rows from the caller's own code, read where it belongs: in the caller's thread, while the loop goes on.

    caller's thread                             the thread "payments-sync"
    Fed.wait ◀──── a request for a group ────── Feed, as the reader asks for its next row
             ───── rows, or an exception ─────▶

A generator may so take its time, use a database connection of its thread, or call the client itself.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from ._blocking_call import PATIENCE, BlockingCall

if TYPE_CHECKING:
    from payments_async.bulk.loading.load import Input

T = TypeVar("T")

GROUP: Final = 100
"""Rows that are read ahead: a trip between two threads costs more than a row."""


Group = tuple[list[Any], Exception | None]
"""Rows, and what ended them before their time."""


class RowFeed(AsyncIterable[Any]):
    """An iterable for the loop's side, whose items the caller's thread takes from another one."""

    def __init__(self, items: Iterable[Any]) -> None:
        self._items = items
        self._orders: SimpleQueue[Callable[[], object] | None] = SimpleQueue()

    def serve(self) -> None:
        """In the caller's thread: read what is asked for, until the call has ended."""
        while True:
            try:
                order = self._orders.get(timeout=PATIENCE)
            except Empty:  # a signal may have been missed: see PATIENCE
                continue
            if order is None:
                return
            order()

    def end(self) -> None:
        """Nothing more will be asked for."""
        self._orders.put(None)

    async def __aiter__(self) -> AsyncIterator[Any]:
        reading = _Reading(self._items)
        group, error = await self._asked(reading)
        while group or error:
            for item in group:
                yield item
            if error is not None:
                raise error
            group, error = await self._asked(reading)

    async def _asked(self, reading: _Reading) -> Group:
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[Group] = loop.create_future()
        self._orders.put(lambda: loop.call_soon_threadsafe(_answer, answered, reading.group()))
        return await answered


class _Reading:
    """One pass over the caller's items."""

    def __init__(self, items: Iterable[Any]) -> None:
        self._items = items
        self._iterator: Iterator[Any] | None = None

    def group(self) -> Group:
        """The next of them, in the caller's thread; none are left when it is empty."""
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
    """A call whose caller, instead of just waiting, reads the rows that it asks for."""

    __slots__ = ("_feed",)

    def __init__(
        self,
        func: Callable[..., Coroutine[Any, Any, T]],
        source: Input,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> None:
        self._feed = RowFeed(cast(Iterable[Any], source)) if _is_code(source) else None
        given = source if self._feed is None else _as_often(self._feed, source)
        super().__init__(func, (given, *args), kwargs)

    async def run(self, running: dict[BlockingCall[Any], asyncio.Task[None]]) -> None:
        """Run it, on the loop; the caller then reads no more."""
        try:
            await super().run(running)
        finally:
            if self._feed is not None:
                self._feed.end()

    def wait(self) -> None:
        """Read what is asked for, until the call has ended."""
        if self._feed is not None:
            self._feed.serve()
        super().wait()


def _is_code(source: Input) -> bool:
    """Whether to read it may run code of the caller's: it is neither a file, nor a list, nor awaited."""
    return isinstance(source, Iterable) and not isinstance(source, str | os.PathLike | list | tuple)


def _as_often(feed: RowFeed, source: object) -> AsyncIterable[Any]:
    """The feed: to be read once where its source can be read but once."""
    return aiter(feed) if isinstance(source, Iterator) else feed


def _answer(answered: asyncio.Future[Group], group: Group) -> None:
    if not answered.done():
        answered.set_result(group)
