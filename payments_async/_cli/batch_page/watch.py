"""`payments payouts watch`: the page of a batch, of the run that works on it or read from its ledger."""

from __future__ import annotations

from ...bulk.ledger_errors import LedgerLocked
from .._exit_codes import CommandEnded, Exit
from ..payouts.command_context import CommandContext
from ..payouts.ledger_address import LedgerAddress
from .address_file import ask_running
from .browser import find_browser, open_page_in
from .server import BatchPageServer
from .serving import open_page, show_link, until_stopped
from .source import LedgerSource, PageElsewhere
from .ticket_form import ticket_of


async def watch(ledger: LedgerAddress, context: CommandContext) -> Exit:
    """Open the page of the run that holds the ledger; else serve one until Ctrl-C. Raises LedgerError."""
    source = LedgerSource(ledger)
    try:
        await source.snapshot()
        context.show.heading(ledger.label)
    except PageElsewhere as found:
        return await _open_running(source, found, context)
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
        await open_page(server, context.show)
        await until_stopped(server, context)
    finally:
        await server.close()
        await source.close()
    if failures:
        raise CommandEnded(
            f"the page: {failures[0]}; put that right, or install the package again", Exit.REFUSED
        )
    return Exit.DONE


async def _open_running(source: LedgerSource, found: PageElsewhere, context: CommandContext) -> Exit:
    """Open the page that the run of another process serves, and show a link for another browser."""
    browser, link, ledger = await find_browser(), found.address, source.ledger.text

    async def is_used() -> bool:
        answer = await ask_running(ledger, found.pid, "/api/used", ticket=ticket_of(found.address))
        return answer is not None and answer.get("used") is True

    is_open = browser is not None and await open_page_in(browser, link, is_used)
    if is_open:
        link = (await ask_running(ledger, found.pid, "/api/open") or {}).get("url", link)
    context.show.heading(source.ledger.label, f"process {found.pid} works on it and serves its page")
    show_link(context.show, link, is_open=is_open)
    return Exit.DONE
