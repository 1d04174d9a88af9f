"""The person's browser, if it has a window: one in the terminal would take that, and hold up a run.

Every user of the machine can read a browser's command line. Where the machine does not say which user a
connection is from, that line names a private file, and the ticket is in the file.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import webbrowser
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from ..._files import write_text
from ..._loopback.peers import can_tell
from ..._runtime import SYSTEM
from .access import PageAccess

OPEN: Final = "/open"
"""The path that takes the file's form."""
_FORM: Final = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>Payouts</title>
<form method="post" action="{action}"><input type="hidden" name="ticket" value="{ticket}">
<button>Open the page of the batch</button></form><script>document.forms[0].submit()</script>
"""
_IN_TERMINAL: Final = ("browsh", "elinks", "links", "links2", "lynx", "w3m", "www-browser")
_PATIENCE: Final = 1.0
"""Seconds that a command waits to hear whether a browser opened. One that stays in front never says so."""
_ARRIVAL: Final = 10.0
"""Seconds in which the form must come: a browser in a box of its own (Snap, Flatpak, WSL) may not read it."""
_LOOK: Final = 0.1


async def open_in_browser(access: PageAccess) -> bool:
    """Open the page in the person's browser. False when it is not known to be open."""
    browser, ticket = await asyncio.to_thread(_find_browser), access.new_ticket()
    if browser is None:
        return False
    if can_tell():  # another user who reads the link is known, and refused
        return await _opens(browser, access.link(ticket))
    form = _FORM.format(action=access.origin + OPEN, ticket=ticket)
    with suppress(OSError), TemporaryDirectory(prefix="payments-page-", ignore_cleanup_errors=True) as folder:
        file = Path(folder) / "open.html"
        write_text(file, form, durable=False)
        return await _opens(browser, file.as_uri()) and await _is_used(access, ticket)
    return False


def _find_browser() -> webbrowser.BaseBrowser | None:
    has_window = sys.platform in ("win32", "darwin") or bool(
        {"DISPLAY", "WAYLAND_DISPLAY", "BROWSER"} & os.environ.keys()
    )
    if not has_window:
        return None
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return None
    return None if os.path.basename(getattr(browser, "name", "")) in _IN_TERMINAL else browser


async def _is_used(access: PageAccess, ticket: str) -> bool:
    until = SYSTEM.monotonic() + _ARRIVAL
    while access.is_open(ticket) and SYSTEM.monotonic() < until:
        await SYSTEM.sleep(_LOOK)
    return not access.is_open(ticket)


async def _opens(browser: webbrowser.BaseBrowser, address: str) -> bool:
    """Open an address in a browser. False when it says within a second that it has not."""
    loop = asyncio.get_running_loop()
    answer = loop.create_future()

    def work() -> None:
        is_open = False
        with suppress(Exception):  # BROWSER may hold anything: a run of payouts does not end by that
            is_open = browser.open(address)
        with suppress(RuntimeError):  # the command has ended
            loop.call_soon_threadsafe(answer.set_result, is_open)

    threading.Thread(target=work, daemon=True).start()  # the end of a run does not wait for a browser
    await asyncio.wait([answer], timeout=_PATIENCE)
    return answer.result() if answer.done() else True
