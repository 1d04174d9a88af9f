"""The person's browser: only one with a window, and never waited for."""

from __future__ import annotations

import asyncio
import threading
import webbrowser
from collections.abc import Callable

import pytest

from payments_async.cli.batch_page import browser
from payments_async.cli.batch_page.browser import find_browser, open_in

ADDRESS = "http://127.0.0.1:20001/?token=x"


class Given(webbrowser.BaseBrowser):
    """A browser that does what a test says."""

    def __init__(self, name: str = "firefox", opening: Callable[[], bool] = bool) -> None:
        super().__init__(name)
        self._opening = opening

    def open(self, url: str, new: int = 0, autoraise: bool = True) -> bool:
        assert url == ADDRESS
        return self._opening()


async def test_a_browser_in_the_terminal_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[webbrowser.BaseBrowser] = []

    def get() -> webbrowser.BaseBrowser:
        if not found:
            raise webbrowser.Error
        return found.pop()

    monkeypatch.setattr(webbrowser, "get", get)
    monkeypatch.setattr(browser.sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    found.append(Given())
    assert await find_browser() is None, "a machine without a screen"
    monkeypatch.setenv("BROWSER", "given")
    assert await find_browser() is not None
    assert await find_browser() is None, "there is none"
    for name in ("w3m", "/usr/bin/lynx", "www-browser"):
        found.append(Given(name))
        assert await find_browser() is None


async def test_a_browser_that_stays_in_front_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser, "_PATIENCE", 0.01)
    closed = threading.Event()
    assert await open_in(Given(opening=closed.wait), ADDRESS)
    closed.set()


async def test_a_browser_that_does_not_open_is_said_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser, "_PATIENCE", 30.0)

    def missing() -> bool:
        raise OSError

    def misset() -> bool:
        raise ValueError("BROWSER is no command")

    for opening in (lambda: False, missing, misset):
        assert not await open_in(Given(opening=opening), ADDRESS)
    assert await open_in(Given(opening=lambda: True), ADDRESS)


def test_a_browser_that_is_closed_after_the_command_disturbs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser, "_PATIENCE", 0.01)
    closed, threads = threading.Event(), set(threading.enumerate())
    asyncio.run(open_in(Given(opening=closed.wait), ADDRESS))
    (waiting,) = (each for each in threading.enumerate() if each not in threads and each.daemon)
    closed.set()
    waiting.join(30)  # an exception in a thread fails the test
