"""The page of a batch: of `run --page`, and of `watch --page`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from ...bulk._page import BatchPage, serve_page
from ...bulk._texts.ledger_address import LedgerAddress
from ...bulk.errors import BulkError
from .._exit_codes import CommandEnded, Exit
from .command_context import CommandContext

_NO_PORT = "no port of 127.0.0.1 is free for the page"


@asynccontextmanager
async def run_page(ledger: LedgerAddress, context: CommandContext) -> AsyncIterator[BatchPage | None]:
    """Serve the page of a run; on a terminal it stays at the end until Ctrl-C.

    None where it cannot be served: the run goes on, and says why.
    """
    async with AsyncExitStack() as stack:
        try:
            page = await stack.enter_async_context(serve_page(ledger))
        except (BulkError, OSError) as error:
            why = _NO_PORT if isinstance(error, OSError) else str(error)
            context.show.step("Page", f"{why}; the run goes on without", good=False, address=None)
            yield None
            return
        _show_link(page, context)
        yield page
        page.show(None)
        if context.console.is_terminal and not context.interrupts.reason:
            await _until_stopped(page, context)


async def watch_page(ledger: LedgerAddress, context: CommandContext) -> Exit:
    """Serve the page of a batch until Ctrl-C. Raises LedgerError, CommandEnded."""
    try:
        async with serve_page(ledger) as page:
            context.show.heading(ledger.shown)
            _show_link(page, context)
            await _until_stopped(page, context)
    except OSError:
        raise CommandEnded(_NO_PORT, Exit.RESUMABLE) from None
    return Exit.DONE


def _show_link(page: BatchPage, context: CommandContext) -> None:
    context.show.step("Page", "open this link in a browser:", good=None, address=page.address)
    context.show.paragraph(page.link)


async def _until_stopped(page: BatchPage, context: CommandContext) -> None:
    """Serve until Ctrl-C."""
    stopped = asyncio.Event()
    context.show.step("Page", f"stays at {page.address} until Ctrl-C", good=None)
    with context.interrupts.draining(lambda _: stopped.set()):
        await stopped.wait()
