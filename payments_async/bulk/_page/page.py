"""Serves the page of a batch on this machine, and opens it in the person's browser."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import attrs

from ..._extras import needs
from ..._loopback import listen
from .._texts.ledger_address import LedgerAddress, open_batch
from ..report import BatchFigures
from .access import PageAccess
from .browser import open_in_browser
from .feed import BatchFeed


@attrs.frozen
class BatchPage:
    """The page of a batch, which is being served."""

    _feed: BatchFeed
    _access: PageAccess

    @property
    def address(self) -> str:
        """The page's address, without a ticket."""
        return self._access.origin

    async def open(self) -> tuple[str, bool]:
        """Open it in the person's browser. Returns a link for another, and whether one shows it already."""
        is_open = await open_in_browser(self._access)
        return self._access.link(self._access.new_ticket()), is_open

    def show(self, figures: BatchFigures | None) -> None:
        """Show what this process is doing: the `on_progress` of its run. None once it is over."""
        self._feed.show(None if figures is None else figures.activity)


@asynccontextmanager
async def serve_page(ledger: LedgerAddress) -> AsyncIterator[BatchPage]:
    """Serve the page of a batch until the block ends; then open pages still get the last figures.

    It reads the ledger alone, so that any number of processes may work on the batch meanwhile. Raises
    LedgerError, BulkError, ImportError without the extra, and OSError where no port is free.
    """
    async with open_batch(ledger) as batch:
        feed = BatchFeed(batch, ledger)
        await feed.figures()
        async with served(feed) as page:
            yield page


@asynccontextmanager
async def served(feed: BatchFeed) -> AsyncIterator[BatchPage]:
    """Serve the page that is made of these figures. Raises ImportError and OSError."""
    try:
        import jinja2  # noqa: F401 - named where it is missing
    except ImportError as missing:
        raise ImportError(needs("the page of a batch needs", "sandbox")) from missing
    from ..._loopback import server  # here: commands without a page start without aiohttp's server
    from . import site

    listener = listen(None)
    access = PageAccess(listener.getsockname()[1])
    answer = server.answered_by(partial(site.answer, feed, access))
    end = await server.serve(listener, access.rules, answer)
    try:
        yield BatchPage(feed, access)
    finally:
        await feed.end()
        await end()
