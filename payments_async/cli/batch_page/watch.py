"""`payments payouts watch`: the page of a batch, of the run that works on it or read from its ledger."""

from __future__ import annotations

from ...bulk.ledger_errors import LedgerLocked
from .._exit_codes import CommandEnded, Exit
from ..payouts.ledger_address import LedgerAddress
from ..payouts.session import CommandContext
from .address_file import ask_running
from .server import BatchPageServer
from .serving import open_in_browser, open_page, until_stopped
from .source import LedgerSource


async def watch(ledger: LedgerAddress, context: CommandContext) -> Exit:
    """Open the page of the run that holds the ledger; else serve one until Ctrl-C. Raises LedgerError."""
    source = LedgerSource(ledger)
    try:
        await source.snapshot()
    except LedgerLocked as locked:
        return await _open_running(ledger, locked, context)
    server = BatchPageServer(source)
    server.start()
    try:
        context.show.heading(ledger.label)
        await open_page(server, context.show)
        await until_stopped(server, context)
    finally:
        await server.close()
    return Exit.DONE


async def _open_running(ledger: LedgerAddress, locked: LedgerLocked, context: CommandContext) -> Exit:
    """Open the page that the run of another process serves."""
    found = await ask_running(ledger.text, locked.pid, "/api/open")
    if found is None or "url" not in found:
        problem = f"{locked}, which serves no page (or has just ended)"
        raise CommandEnded(f"{problem}; ask again", Exit.RESUMABLE)
    address = str(found["url"])
    is_open = await open_in_browser(address)
    context.show.heading(ledger.label, f"process {locked.pid} works on it and serves its page")
    again = await ask_running(ledger.text, locked.pid, "/api/open") if is_open else found
    context.show.step("Page", str((again or found)["url"]), good=None, address=address.partition("?")[0])
    return Exit.DONE
