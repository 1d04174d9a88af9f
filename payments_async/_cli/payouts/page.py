"""The page of a batch: of `run`, of `run --open`, and `payments payouts watch`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager

import attrs

from ...bulk import BatchFigures
from ...bulk._page import (
    BatchPageServer,
    LedgerSource,
    PageElsewhere,
    Phase,
    RunPage,
    open_elsewhere,
    open_page,
    run_page,
)
from ...bulk._texts.ledger_address import LedgerAddress
from ...bulk.ledger_errors import LedgerLocked
from .._exit_codes import CommandEnded, Exit
from .._output import Show
from .command_context import CommandContext
from .progress import ProgressView

_PHASES: Mapping[str, Phase] = {"Reading": "reading", "Certifying": "certifying"}


@attrs.frozen
class PageProgress:
    """A view of a run's progress that also shows it on the page."""

    _view: ProgressView
    _page: RunPage

    def read(self, rows: int, number: int = 1) -> None:
        """Show the rows read in this pass."""
        self._page.read(rows)
        self._view.read(rows, number)

    def show(self, figures: BatchFigures, at: float) -> None:
        """Show the figures of this moment, in seconds."""
        self._page.changed()
        self._view.show(figures, at)

    def note(self, text: str) -> None:
        """Show a sentence at once."""
        self._view.note(text)


@asynccontextmanager
async def serving(
    ledger: LedgerAddress, name: str, context: CommandContext, *, stays: bool
) -> AsyncIterator[tuple[RunPage, CommandContext]]:
    """Serve the page of a run on this machine: the page, and a context that shows progress there too.

    `stays`: at the end until Ctrl-C, on a terminal.
    """

    def on_failure(why: str) -> None:
        text = f"{why}; the run goes on. With that put right, `{ledger.command('watch')}` shows the batch"
        context.show.step("Page", text, good=False, address=None, message=text)

    @contextmanager
    def on_page(name: str, view: ProgressView) -> Iterator[ProgressView]:
        page.enter(_PHASES.get(name, "working"))
        yield PageProgress(view, page)
        page.changed()

    async with run_page(ledger, name, on_failure) as page:
        yield page, attrs.evolve(context, on_page=on_page)
        page.rest()
        if stays and page.server.is_open and context.console.is_terminal and not context.interrupts.reason:
            await _until_stopped(page.server, context)


async def _until_stopped(server: BatchPageServer, context: CommandContext) -> None:
    """Serve until Ctrl-C, or until the page fails."""
    context.show.step("Page", f"stays at {server.access.origin} until Ctrl-C", good=None)
    with context.interrupts.draining(lambda _: server.over.set()):
        await server.over.wait()


async def show_page(server: BatchPageServer, show: Show) -> None:
    """Open the page in the person's browser, if there is one, and show a link for another."""
    if not server.is_open:
        show.step("Page", "there is none: no port of 127.0.0.1 is free", good=False, address=None)
        return
    _show_link(show, *await open_page(server), address=server.access.origin)


def _show_link(show: Show, link: str, is_open: bool, **facts: object) -> None:
    """Show a link to the page. `is_open`: a browser shows the page already."""
    text = "it is open in your browser:" if is_open else "open this link in a browser:"
    show.step("Page", text, good=None, wrap=True, **facts)
    show.paragraph(link)


async def watch(ledger: LedgerAddress, context: CommandContext) -> Exit:
    """Open the page of the run that holds the ledger; else serve one until Ctrl-C. Raises LedgerError."""
    source = LedgerSource(ledger)
    try:
        await source.snapshot()
        context.show.heading(ledger.label)
    except PageElsewhere as running:
        link, is_open = await open_elsewhere(ledger, running)
        context.show.heading(ledger.label, f"process {running.pid} works on it and serves its page")
        _show_link(context.show, link, is_open)
        return Exit.DONE
    except LedgerLocked as locked:
        problem = f"{ledger.shown}: in use by process {locked.pid}, which serves no page, or not yet"
        raise CommandEnded(f"{problem}; ask again", Exit.RESUMABLE) from None
    failures: list[str] = []
    server = BatchPageServer(source, failures.append)
    if not server.is_open:
        await source.close()
        raise CommandEnded("no port of 127.0.0.1 is free for the page", Exit.RESUMABLE)
    server.start()
    try:
        await show_page(server, context.show)
        await _until_stopped(server, context)
    finally:
        await server.close()
        await source.close()
    if failures:
        raise CommandEnded(
            f"the page: {failures[0]}; put that right, or install the package again", Exit.REFUSED
        )
    return Exit.DONE
