"""The person's browser, if it has a window: one in the terminal would take that, and hold up a run."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import webbrowser
from contextlib import suppress
from typing import Final

_IN_TERMINAL: Final = ("browsh", "elinks", "links", "links2", "lynx", "w3m", "www-browser")
_PATIENCE: Final = 1.0
"""Seconds that a command waits to hear whether a browser opened. One that stays in front never says so."""


async def open_in_browser(address: str) -> bool:
    """Open an address in the person's browser. False when it is not known to be open.

    Every user of the machine can read the browser's command line, and so the address.
    """
    browser = await asyncio.to_thread(_find_browser)
    if browser is None:
        return False
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
