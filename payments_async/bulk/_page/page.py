"""Serves the page of a batch on this machine, or writes it to a file."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import attrs

from ..._extras import needs
from ..._files import AtomicFile
from ..._loopback import HOST, listen
from ..._loopback.access import Access
from ..._loopback.peers import can_tell
from ..._runtime import SYSTEM
from .._files import refuse_existing, refuse_ledger_files
from .._texts.ledger_address import LedgerAddress, open_batch
from ..report import BatchFigures
from .feed import BatchFeed, read_figures


@attrs.frozen
class BatchPage:
    """The page of a batch, which is being served."""

    _feed: BatchFeed
    _access: Access
    address: str
    """The page's address, without the token."""

    @property
    def link(self) -> str:
        """The address that opens it: with the token where the machine does not say whose a connection is."""
        return f"{self.address}/" if can_tell() else f"{self.address}{self._access.root}/"

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
    _require_jinja()
    from ..._loopback import server  # here: commands without a page start without aiohttp's server
    from . import site

    listener = listen(None)
    address, access = f"http://{HOST}:{listener.getsockname()[1]}", Access(SYSTEM.token(32).hex())
    answer = server.answered_by(partial(site.answer, feed, address))
    end = await server.serve(listener, access, answer)
    try:
        yield BatchPage(feed, access, address)
    finally:
        await feed.end()
        await end()


async def write_page(ledger: LedgerAddress, path: str | os.PathLike[str], *, overwrite: bool) -> None:
    """Write the page as it is now to one file (mode 0600), which needs nothing beside it.

    Raises LedgerError, BulkError for a file that is there already, ImportError without the extra, OSError.
    """
    _require_jinja()
    from . import site

    refuse_ledger_files(path, ledger.text)
    if not overwrite:
        refuse_existing(Path(path), "name another file, or replace it with --overwrite")
    async with open_batch(ledger) as batch:
        html = site.html_of(await read_figures(batch, ledger), has_script=False)
    with AtomicFile(Path(path)) as whole:
        whole.file.write(html.encode())


def _require_jinja() -> None:
    try:
        import jinja2  # noqa: F401 - named where it is missing
    except ImportError as missing:
        raise ImportError(needs("the page of a batch needs", "sandbox")) from missing
