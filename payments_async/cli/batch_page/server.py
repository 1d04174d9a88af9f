"""The page's socket. Until the first visitor it only listens: no import, no thread, no reading."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import ModuleType

from ..._loopback import listen
from .access import PageAccess
from .feed import BatchFeed, PageSource


class BatchPageServer:
    """Serves the page of a batch on the running event loop, from `start` to `close`."""

    def __init__(self, source: PageSource) -> None:
        self.feed: BatchFeed = BatchFeed(source)
        self._socket = listen(None)
        self.access: PageAccess = PageAccess(self._socket.getsockname()[1])
        self._end: Callable[[], Awaitable[None]] | None = None
        self._starting: asyncio.Task[None] | None = None

    @property
    def is_visited(self) -> bool:
        """True if somebody has come."""
        return self._starting is not None

    def start(self) -> None:
        """Wait for visitors."""
        asyncio.get_running_loop().add_reader(self._socket, self._on_visitor)

    def _on_visitor(self) -> None:
        asyncio.get_running_loop().remove_reader(self._socket)
        self._starting = asyncio.ensure_future(self._serve())

    async def _serve(self) -> None:
        http_server = await asyncio.to_thread(_imported)  # a run that pays does not wait for it
        self._end = await http_server.serve(self.feed, self.access, self._socket)

    async def close(self) -> None:
        """Let open pages have the last figures, and close the socket. A second call does nothing."""
        if self._socket.fileno() < 0:
            return
        if self._starting is None:
            asyncio.get_running_loop().remove_reader(self._socket)
        else:
            await asyncio.wait([self._starting])
        await self.feed.end()
        if self._end is not None:
            await self._end()
        self._socket.close()


def _imported() -> ModuleType:
    """The part that needs aiohttp's server, and for pages the sandbox's templates."""
    from . import http_server

    return http_server
