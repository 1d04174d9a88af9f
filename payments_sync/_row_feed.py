"""Rows from the caller's own code, read in the caller's thread while the loop works.

So a generator may be slow, use a database connection of its thread, or call the client itself.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar, cast

from ._event_loop import asker

if TYPE_CHECKING:
    from payments_async.bulk._loading.load import Input

P = ParamSpec("P")
T = TypeVar("T")

GROUP: Final = 100
"""Rows in one group: a trip between two threads costs more than a row."""

Group = tuple[list[Any], Exception | None]
"""Rows, and the exception that ended them early."""


async def fed(
    func: Callable[Concatenate[Input, P], Coroutine[Any, Any, T]],
    source: Input,
    /,
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """Run a function that reads a source, as a blocking call: code of the caller's runs in its thread."""
    if _is_code(source):
        ask = asker()
        assert ask is not None
        feed = RowFeed(cast(Iterable[Any], source), ask)
        source = (
            aiter(feed) if isinstance(source, Iterator) else feed
        )  # it can be read as often as the source
    return await func(source, *args, **kwargs)


class RowFeed(AsyncIterable[Any]):
    """An asynchronous iterable whose items the caller's thread takes from another iterable."""

    def __init__(self, items: Iterable[Any], ask: Callable[..., Awaitable[Any]]) -> None:
        """`ask` runs a function in that thread."""
        self._items, self._ask = items, ask

    async def __aiter__(self) -> AsyncIterator[Any]:
        groups = _groups(self._items)
        while (found := await self._ask(next, groups, None)) is not None:
            group, error = found
            for item in group:
                yield item
            if error is not None:
                raise error


def _groups(items: Iterable[Any]) -> Iterator[Group]:
    """Groups of items, each read when it is asked for."""
    group: list[Any] = []
    try:
        for item in items:
            group.append(item)
            if len(group) == GROUP:
                yield group, None
                group = []
    except Exception as error:
        yield group, error
    else:
        yield group, None


def _is_code(source: Input) -> bool:
    """Return whether reading a source may run the caller's code: no path, list or frame, not asynchronous."""
    known = isinstance(source, str | os.PathLike | list | tuple) or hasattr(source, "__arrow_c_stream__")
    return isinstance(source, Iterable) and not known
