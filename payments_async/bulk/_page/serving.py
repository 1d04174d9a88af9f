"""The page for the time of a run: its server, the file beside the ledger; and opening it in a browser."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import attrs

from .._texts.ledger_address import LedgerAddress
from ..batch import AnyBatch
from . import address_file
from .browser import find_browser, open_page_in
from .server import BatchPageServer
from .source import LedgerSource, PageElsewhere, Phase, RunSource
from .ticket_form import ticket_of


@attrs.frozen
class RunPage:
    """The page of a run."""

    server: BatchPageServer
    source: RunSource
    ledger: LedgerAddress
    _resting: LedgerSource

    def enter(self, phase: Phase) -> None:
        """Show what the run is doing now."""
        self.source.phase = phase
        self.changed()

    def read(self, rows: int) -> None:
        """Show the rows read so far."""
        self.source.rows_read = rows
        self.changed()

    def changed(self) -> None:
        """Note that there is news."""
        self.server.feed.changed()

    @asynccontextmanager
    async def of(self, batch: AnyBatch) -> AsyncIterator[None]:
        """Show this batch, whose ledger is open: commands find the page by the file beside it."""
        self.source.batch, self.source.began = batch, batch.now()
        if self.server.is_open and not self.ledger.is_database:
            address_file.publish(self.ledger.text, self.server.access)
        try:
            yield
        finally:
            self.withdraw()
            await self.source.end()

    def withdraw(self) -> None:
        """Remove the file beside the ledger, if this run holds that."""
        if self.source.batch is not None and not self.ledger.is_database:
            address_file.withdraw(self.ledger.text)

    def rest(self) -> None:
        """Show the batch from its ledger: the run is over."""
        self._resting.ledger, self._resting.began = self.source.ledger, self.source.began
        self.server.feed.show(self._resting)


@asynccontextmanager
async def run_page(
    ledger: LedgerAddress, name: str, on_failure: Callable[[str], object]
) -> AsyncIterator[RunPage]:
    """Serve the page of a run. `on_failure` is called with the reason when it cannot be served."""

    def failed(why: str) -> None:
        page.withdraw()
        on_failure(why)

    source, resting = RunSource(ledger, os.path.basename(name)), LedgerSource(ledger)
    page = RunPage(BatchPageServer(source, failed), source, ledger, resting)
    page.server.start()
    try:
        yield page
    finally:
        await page.server.close()
        await resting.close()


async def open_page(server: BatchPageServer) -> tuple[str, bool]:
    """Open a page in the person's browser. Returns a link for another, and whether one shows it already."""
    browser, access = await find_browser(), server.access
    link = access.new_address()

    async def is_used() -> bool:
        return not access.is_open(ticket_of(link))

    is_open = browser is not None and await open_page_in(browser, link, is_used)
    return access.new_address(), is_open


async def open_elsewhere(ledger: LedgerAddress, page: PageElsewhere) -> tuple[str, bool]:
    """The same with the page that the run of another process serves."""
    browser, link = await find_browser(), page.address

    async def is_used() -> bool:
        answer = await address_file.ask_running(
            ledger.text, page.pid, "/api/used", ticket=ticket_of(page.address)
        )
        return answer is not None and answer.get("used") is True

    is_open = browser is not None and await open_page_in(browser, link, is_used)
    if is_open:
        link = (await address_file.ask_running(ledger.text, page.pid, "/api/open") or {}).get("url", link)
    return link, is_open
