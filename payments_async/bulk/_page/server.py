"""The page's socket. Until the first visitor it only listens: no import, no thread, no reading."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import ModuleType

from ..._loopback import listen
from ...models._masking import clean
from .access import PageAccess
from .feed import BatchFeed, PageSource


class BatchPageServer:
    """Serves the page of a batch on the running event loop, from `start` to `close`.

    `on_failure` is called with the reason when a visitor has come and the page cannot be served.
    """

    def __init__(self, source: PageSource, on_failure: Callable[[str], object] = bool) -> None:
        self.feed: BatchFeed = BatchFeed(source)
        self._socket = _listen()
        self.access: PageAccess = PageAccess(self._socket.getsockname()[1] if self._socket else 0)
        self.over: asyncio.Event = asyncio.Event()
        """Set when nobody needs to wait for visitors any longer."""
        self._on_failure = on_failure
        self._end: Callable[[], Awaitable[None]] | None = None
        self._starting: asyncio.Task[None] | None = None

    @property
    def is_open(self) -> bool:
        """True if it can be visited: there was a free port, it has not failed, and it is not closed."""
        return self._socket is not None

    def start(self) -> None:
        """Wait for visitors."""
        if self._socket is not None:
            asyncio.get_running_loop().add_reader(self._socket, self._on_visitor, self._socket)

    def _on_visitor(self, listener: socket.socket) -> None:
        asyncio.get_running_loop().remove_reader(listener)
        self._starting = asyncio.ensure_future(self._serve(listener))

    async def _serve(self, listener: socket.socket) -> None:
        try:
            site = await asyncio.to_thread(_imported)  # a run that pays does not wait for it
            self._end = await site.serve(self.feed, self.access, listener)
        except Exception as error:  # such as a package that was replaced meanwhile: the payouts go on
            self._socket = None
            self._on_failure(f"it cannot be served ({type(error).__name__}: {clean(str(error))})")
            self.over.set()
            listener.close()

    async def close(self) -> None:
        """Let open pages have the last figures, and close the socket. A second call does nothing."""
        listener, self._socket = self._socket, None
        if listener is None:
            return
        if self._starting is None:
            asyncio.get_running_loop().remove_reader(listener)
        else:
            await asyncio.wait([self._starting])
        await self.feed.end()
        if self._end is not None:
            await self._end()
        listener.close()


def _listen() -> socket.socket | None:
    """A free port of this machine. None without one: payouts do not fail because of a page."""
    with suppress(OSError):
        return listen(None)
    return None


def _imported() -> ModuleType:
    """The part that needs aiohttp's server and the templates."""
    from . import site

    return site
