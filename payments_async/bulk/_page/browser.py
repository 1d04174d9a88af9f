"""The person's browser, if it has a window: one in the terminal would take that, and hold up a run."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import webbrowser
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from ..._loopback.peers import can_tell
from ..._runtime import SYSTEM
from .ticket_form import ticket_form

_IN_TERMINAL: Final = ("browsh", "elinks", "links", "links2", "lynx", "w3m", "www-browser")
_PATIENCE: Final = 1.0
"""Seconds that a command waits to hear whether a browser opened. One that stays in front never says so."""


_ARRIVAL: Final = 10.0
"""Seconds in which the form must come: a browser in a box of its own (Snap, Flatpak, WSL) may not read it."""
_LOOK: Final = 0.1


async def find_browser() -> webbrowser.BaseBrowser | None:
    """Find the person's browser; None without one that has a window."""
    has_window = sys.platform in ("win32", "darwin") or bool(
        {"DISPLAY", "WAYLAND_DISPLAY", "BROWSER"} & os.environ.keys()
    )
    return await asyncio.to_thread(_found) if has_window else None


def _found() -> webbrowser.BaseBrowser | None:
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return None
    return None if os.path.basename(getattr(browser, "name", "")) in _IN_TERMINAL else browser


async def open_page_in(
    browser: webbrowser.BaseBrowser, link: str, is_used: Callable[[], Awaitable[bool]]
) -> bool:
    """Open a page in a browser. False when it is not known to be open: then the link is for the person.

    The link itself is given to the browser where another user who reads it is known, and refused.
    """
    if can_tell():
        return await open_in(browser, link)
    try:
        with ticket_form(link) as file:
            return await open_in(browser, file) and await _comes(is_used)
    except OSError:
        return False


async def _comes(is_used: Callable[[], Awaitable[bool]]) -> bool:
    until = SYSTEM.monotonic() + _ARRIVAL
    while not (used := await is_used()) and SYSTEM.monotonic() < until:
        await SYSTEM.sleep(_LOOK)
    return used


async def open_in(browser: webbrowser.BaseBrowser, address: str) -> bool:
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
