"""One test body, both surfaces: the async client as it is, the blocking one made awaitable on a thread.

A test takes the `connect` fixture, makes clients with it and awaits every call; it runs twice, as
`[async]` and as `[sync]`. Methods that are plain on the async client (`prepare`) are plain on both.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable
from collections.abc import Awaitable as Awaited
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

import pytest

import payments_async
from payments_async.bulk import PayoutBatch
from payments_async.client import AsyncPayments

E = TypeVar("E", bound=BaseException)
Connect = Callable[..., Any]
"""What the `connect` fixture gives: makes a client of the surface under test."""


class Awaitable:
    """A blocking client or resource whose blocking methods are awaited, each on a thread."""

    def __init__(self, blocking: Any, twin: type[Any]) -> None:
        self._blocking = blocking
        self._twin = twin

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._blocking, name)
        twin = getattr(self._twin, {"close": "aclose"}.get(name, name), None)
        if inspect.isclass(twin):  # a resource
            return Awaitable(value, twin)
        if inspect.isasyncgenfunction(twin):
            return _generator(value)
        if inspect.iscoroutinefunction(inspect.unwrap(twin) if callable(twin) else twin):
            return partial(asyncio.to_thread, value)
        if name == "with_options":
            return lambda **options: Awaitable(value(**options), self._twin)
        return value

    def __repr__(self) -> str:
        return repr(self._blocking)

    async def aclose(self) -> None:
        await asyncio.to_thread(self._blocking.close)

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self._blocking.__enter__)
        return self

    async def __aexit__(self, *raised: object) -> None:
        await asyncio.to_thread(self._blocking.__exit__, *raised)


async def error_of(kind: type[E] | tuple[type[E], ...], call: Awaited[Any], match: str | None = None) -> E:
    with pytest.raises(kind, match=match) as caught:
        await call
    return caught.value


def _generator(method: Callable[..., Any]) -> Callable[..., AsyncIterator[Any]]:
    async def walk(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        items = method(*args, **kwargs)
        end = object()
        try:
            while (item := await asyncio.to_thread(next, items, end)) is not end:
                yield item
        finally:
            await asyncio.to_thread(items.close)

    return walk


def make_batch(surface: str, place: Path | str, client: Any = None, **options: Any) -> Any:
    """A batch of that surface, in a file or a database, on a client of it, to be awaited in any case."""
    if surface == "async":
        return PayoutBatch.open(place, client, **options)
    from payments_sync import bulk

    return Awaitable(bulk.PayoutBatch.open(place, client and client._blocking, **options), PayoutBatch)


def make_client(surface: str, *args: Any, **options: Any) -> Any:
    """A client of that surface, to be awaited in any case."""
    if surface == "async":
        return payments_async.AsyncPayments(*args, **options)
    import payments_sync

    return Awaitable(payments_sync.Payments(*args, **options), AsyncPayments)
