"""Reads the figures of a page while a browser shows it, at most once a second, and streams each change."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final, Protocol

from ..._runtime import SYSTEM
from .._export.row_view import RowView
from .._texts.ledger_address import LedgerAddress
from ..ledger_errors import LedgerError
from .source import PageElsewhere, PageFigures, begun

_EVERY: Final = 1.0
"""Seconds between two readings, and between two pieces of news of a stream, at least."""
_BEAT: Final = 5.0
"""Seconds between two events of a stream, at most: without one for longer the page says so."""
_LAST_LOOK: Final = 3.0
"""Seconds at most that readers have to fetch the last page."""


class PageSource(Protocol):
    """Gives the figures of a batch."""

    @property
    def ledger(self) -> LedgerAddress:
        """The ledger's address, with the batch's name where that is known."""

    @property
    def is_polled(self) -> bool:
        """True if the figures may change without a word."""

    async def snapshot(self) -> PageFigures:
        """Everything that the page shows. Raises LedgerError."""

    async def row(self, name: str | int) -> RowView | None:
        """One row by its key, reference or number. Raises LedgerError."""


class BatchFeed:
    """The figures of a batch for any number of readers."""

    def __init__(self, source: PageSource) -> None:
        self._source = source
        self._streams: set[asyncio.Event] = set()
        self._version = 0
        self._over = asyncio.Event()
        self._reading: asyncio.Task[PageFigures] | None = None
        self._read_at, self._read_version = 0.0, -1

    @property
    def ledger(self) -> LedgerAddress:
        """The ledger whose figures are shown."""
        return self._source.ledger

    def show(self, source: PageSource) -> None:
        """Show another source's figures from now on."""
        self._source, self._reading = source, None
        self.changed()

    def changed(self) -> None:
        """Note that there is news; open pages show it within a second."""
        self._version += 1
        for woken in self._streams:
            woken.set()

    async def end(self) -> None:
        """End the streams, once their readers had time for the last page."""
        self._over.set()
        self.changed()
        until = SYSTEM.monotonic() + _LAST_LOOK
        while self._streams and SYSTEM.monotonic() < until:
            await SYSTEM.sleep(0.02)

    async def snapshot(self) -> PageFigures:
        """The figures, at most a second old. Raises LedgerError."""
        while True:
            reading = self._reading
            if reading is None or (reading.done() and self._is_old(reading)):
                self._read_at, self._read_version = SYSTEM.monotonic(), self._version
                self._reading = reading = begun(self._source.snapshot())
            await asyncio.wait([reading])
            if reading is self._reading:
                return reading.result()

    def _is_old(self, reading: asyncio.Task[PageFigures]) -> bool:
        if reading.exception() is not None or self._over.is_set():
            return True
        is_news = self._source.is_polled or self._version != self._read_version
        return is_news and SYSTEM.monotonic() - self._read_at >= _EVERY

    async def row(self, name: str | int) -> RowView | None:
        """One row by its key, reference or number. Raises LedgerError."""
        return await self._source.row(name)

    async def news(self) -> AsyncIterator[bytes]:
        """Server-sent events: one at once, after a change and every five seconds, at most one a second."""
        woken, shown = asyncio.Event(), None
        self._streams.add(woken)
        try:
            yield b"retry: 1000\n\n"
            while not self._over.is_set():
                woken.clear()
                now = await self._mark()
                yield f"event: {'beat' if now == shown else 'change'}\ndata: {self._version}\n\n".encode()
                shown = now
                if not await _is_set(self._over, _EVERY):
                    await _is_set(woken, _EVERY if self._source.is_polled else _BEAT - _EVERY)
            yield b"event: over\ndata: over\n\n"
            await asyncio.get_running_loop().create_future()  # until the reader has the last page, and leaves
        finally:
            self._streams.discard(woken)

    async def _mark(self) -> object:
        """What differs after a change."""
        if not self._source.is_polled:
            return self._version
        with suppress(LedgerError, PageElsewhere):  # the page says what is wrong
            return await self.snapshot()
        return None


async def _is_set(event: asyncio.Event, seconds: float) -> bool:
    """Wait for an event so long at most."""
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)
    return event.is_set()
