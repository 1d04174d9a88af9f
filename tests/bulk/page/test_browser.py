"""The person's browser: only one with a window, never waited for, and no ticket where others can read it."""

from __future__ import annotations

import asyncio
import re
import sys
import threading
import urllib.request
import webbrowser
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest

from payments_async.bulk._page import BatchPage, browser
from payments_async.bulk._page.access import PageAccess
from payments_async.bulk._page.browser import open_in_browser
from tests.support.jumping import JumpingRuntime
from tests.support.strangers import nobody_is_known


class Given(webbrowser.BaseBrowser):
    """A browser that does what a test says with an address."""

    def __init__(self, opening: Callable[[str], object], name: str = "firefox") -> None:
        super().__init__(name)
        self._opening = opening

    def open(self, url: str, new: int = 0, autoraise: bool = True) -> bool:
        return bool(self._opening(url))


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets the person's browser."""

    def use(opening: Callable[[str], object], name: str = "firefox") -> None:
        monkeypatch.setenv("BROWSER", "given")
        monkeypatch.setattr(webbrowser, "get", lambda: Given(opening, name))

    return use


@pytest.mark.usefixtures("no_window")
async def test_a_browser_in_the_terminal_is_none(
    use: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(_: str) -> None:
        raise AssertionError("it is opened")

    def missing() -> None:
        raise webbrowser.Error

    access = PageAccess(20_001)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(webbrowser, "get", lambda: Given(never))
    assert not await open_in_browser(access), "a machine without a screen"
    for name in ("w3m", "/usr/bin/lynx", "www-browser"):
        use(never, name)
        assert not await open_in_browser(access)
    monkeypatch.setattr(webbrowser, "get", missing)
    assert not await open_in_browser(access)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says which user it is")
async def test_where_the_user_is_known_a_browser_gets_the_link(use: Callable[..., None]) -> None:
    access, got = PageAccess(20_001), list[str]()

    def opening(address: str) -> bool:
        got.append(address)
        return True

    use(opening)
    assert await open_in_browser(access)
    (link,) = got
    assert access.use(link.removeprefix(f"{access.origin}/?token="))


async def test_a_browser_that_does_not_open_is_said_to(
    use: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def misset(_: str) -> bool:
        raise ValueError("BROWSER is no command")

    monkeypatch.setattr(browser, "_PATIENCE", 30.0)
    for opening, is_open in ((lambda _: False, False), (misset, False), (lambda _: True, True)):
        use(opening)
        assert await open_in_browser(PageAccess(20_001)) is is_open


def test_a_browser_that_stays_in_front_is_not_waited_for_and_may_be_closed_after_the_command(
    use: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browser, "_PATIENCE", 0.01)
    closed, threads = threading.Event(), set(threading.enumerate())
    use(lambda _: closed.wait())
    assert asyncio.run(open_in_browser(PageAccess(20_001)))
    (waiting,) = (thread for thread in threading.enumerate() if thread not in threads and thread.daemon)
    closed.set()
    waiting.join(300)
    assert not waiting.is_alive()


async def test_where_no_user_is_known_a_private_file_has_the_ticket(
    page: BatchPage, use: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody_is_known(monkeypatch)
    shown: list[str] = []

    def post_the_form(address: str) -> bool:
        file = Path(url2pathname(urlsplit(address).path))
        assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        form = file.read_text()
        (action,), (ticket,) = re.findall(r'action="(.*?)"', form), re.findall(r'value="(.*?)"', form)
        assert ticket not in address
        posted = urllib.request.Request(action, f"ticket={ticket}".encode())
        posted.add_unredirected_header("Origin", "null")
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(posted) as answer:
            shown.extend((str(file), answer.url, answer.read().decode()))
        return True

    monkeypatch.setattr(browser, "_PATIENCE", 30.0)
    use(post_the_form)
    link, is_open = await page.open()
    assert is_open
    assert page._access.is_open(link.partition("?token=")[2]), "it is for another browser"
    assert shown[1] == f"{page.address}{page._access.rules.root}/"
    assert "XCD 4.02" in shown[2]
    assert not Path(shown[0]).exists()


async def test_a_browser_that_cannot_read_the_file_leaves_the_link_to_the_person(
    use: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError("no space left")

    nobody_is_known(monkeypatch)
    runtime = JumpingRuntime()
    monkeypatch.setattr(browser, "SYSTEM", runtime)
    use(lambda _: True)
    began = runtime.monotonic()
    assert not await open_in_browser(PageAccess(20_001))
    assert 10.0 <= runtime.monotonic() - began < 11.0, "of simulated time"
    monkeypatch.setattr(browser, "write_text", full)
    assert not await open_in_browser(PageAccess(20_001))
