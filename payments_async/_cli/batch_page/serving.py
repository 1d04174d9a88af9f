"""The page for the time of a run: its server, the file beside the ledger, the browser, and the end."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager

import attrs

from ...bulk import AnyBatch
from .._output import Show
from ..payouts.command_context import CommandContext
from ..payouts.ledger_address import LedgerAddress
from ..payouts.progress import ProgressView
from ..payouts.summary import BatchFigures
from . import address_file
from .browser import find_browser, open_page_in
from .server import BatchPageServer
from .source import LedgerSource, Phase, RunSource
from .ticket_form import ticket_of

_PHASES: Mapping[str, Phase] = {"Reading": "reading", "Certifying": "certifying"}


@attrs.frozen
class PageProgress:
    """A view of a run's progress that also shows it on the page."""

    _view: ProgressView
    _page: RunPage

    def read(self, rows: int, number: int = 1) -> None:
        """Show the rows read in this pass."""
        self._page.source.rows_read = rows
        self._page.server.feed.changed()
        self._view.read(rows, number)

    def show(self, figures: BatchFigures, at: float) -> None:
        """Show the figures of this moment, in seconds."""
        self._page.server.feed.changed()
        self._view.show(figures, at)

    def note(self, text: str) -> None:
        """Show a sentence at once."""
        self._view.note(text)


@attrs.frozen
class RunPage:
    """The page of a run."""

    server: BatchPageServer
    source: RunSource
    ledger: LedgerAddress

    @contextmanager
    def progress(self, name: str, view: ProgressView) -> Iterator[ProgressView]:
        """The view of a part of the run, which the page shows too."""
        self.enter(_PHASES.get(name, "working"))
        yield PageProgress(view, self)
        self.server.feed.changed()

    def enter(self, phase: Phase) -> None:
        """Show what the run is doing now."""
        self.source.phase = phase
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


@asynccontextmanager
async def serving(
    ledger: LedgerAddress, name: str, context: CommandContext, *, stays: bool
) -> AsyncIterator[RunPage]:
    """Serve the page of a run on this machine. `stays`: at the end until Ctrl-C, on a terminal."""

    def on_failure(why: str) -> None:
        page.withdraw()
        text = f"{why}; the run goes on. With that put right, `{ledger.command('watch')}` shows the batch"
        context.show.step("Page", text, good=False, address=None, message=text)

    source = RunSource(ledger, os.path.basename(name))
    page, resting = RunPage(BatchPageServer(source, on_failure), source, ledger), LedgerSource(ledger)
    page.server.start()
    try:
        yield page
        resting.ledger, resting.began = source.ledger, source.began
        page.server.feed.show(resting)
        if stays and page.server.is_open and context.console.is_terminal and not context.interrupts.reason:
            await until_stopped(page.server, context)
    finally:
        await page.server.close()
        await resting.close()


async def until_stopped(server: BatchPageServer, context: CommandContext) -> None:
    """Serve until Ctrl-C, or until the page fails."""
    context.show.step("Page", f"stays at {server.access.origin} until Ctrl-C", good=None)
    with context.interrupts.draining(lambda _: server.over.set()):
        await server.over.wait()


async def open_page(server: BatchPageServer, show: Show) -> None:
    """Open the page in the person's browser, if there is one, and show a link for another."""
    if not server.is_open:
        show.step("Page", "there is none: no port of 127.0.0.1 is free", good=False, address=None)
        return
    browser, access = await find_browser(), server.access
    link = access.new_address()

    async def is_used() -> bool:
        return not access.is_open(ticket_of(link))

    is_open = browser is not None and await open_page_in(browser, link, is_used)
    show_link(show, access.new_address(), is_open=is_open, address=access.origin)


def show_link(show: Show, link: str, *, is_open: bool, **facts: object) -> None:
    """Show a link to the page. `is_open`: a browser shows the page already."""
    text = link if is_open else f"open this link in a browser: {link}"
    show.step("Page", text, good=None, wrap=False, **facts)
