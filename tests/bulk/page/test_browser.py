"""The person's browser: only one with a window, and never waited for."""

from __future__ import annotations

import asyncio
import os
import re
import stat
import sys
import threading
import urllib.request
import webbrowser
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest

from payments_async.bulk._page import PageElsewhere, address_file, browser, open_elsewhere, ticket_form
from payments_async.bulk._page.browser import find_browser, open_in, open_page_in
from payments_async.bulk._page.serving import open_page
from payments_async.bulk._page.ticket_form import ticket_of
from payments_async.bulk._texts.ledger_address import LedgerAddress
from tests.support.batch_pages import GivenSource, served, states
from tests.support.jumping import JumpingRuntime
from tests.support.strangers import nobody_is_known

ADDRESS = "http://127.0.0.1:20001/?token=x"


class Given(webbrowser.BaseBrowser):
    """A browser that does what a test says."""

    def __init__(self, name: str = "firefox", opening: Callable[[], bool] = bool) -> None:
        super().__init__(name)
        self._opening = opening

    def open(self, url: str, new: int = 0, autoraise: bool = True) -> bool:
        assert url == ADDRESS
        return self._opening()


class Opening(webbrowser.BaseBrowser):
    """A browser that does what a test says with an address."""

    def __init__(self, opening: Callable[[str], bool]) -> None:
        super().__init__("firefox")
        self._opening = opening

    def open(self, url: str, new: int = 0, autoraise: bool = True) -> bool:
        return self._opening(url)


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
    waiting.join(300)  # an exception in a thread fails the test


async def test_where_no_user_is_known_a_browser_gets_a_private_file_whose_form_opens_the_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nobody_is_known(monkeypatch)
    async with served(GivenSource(states()["running"])) as page:
        link = page.access.new_address()
        ticket = link.partition("token=")[2]
        shown: list[str] = []

        def post_the_form(url: str) -> bool:
            file = Path(url2pathname(urlsplit(url).path))
            modes = stat.S_IMODE(file.stat().st_mode), stat.S_IMODE(file.parent.stat().st_mode)
            assert modes == (0o600, 0o700)
            form = file.read_text()
            action, value = re.search(r'action="(.*?)"', form), re.search(r'value="(.*?)"', form)
            assert action is not None
            assert value is not None
            posted = urllib.request.Request(action[1], f"ticket={value[1]}".encode())
            posted.add_unredirected_header("Origin", "null")
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(posted) as answer:
                shown.extend((url, answer.url, answer.read().decode()))
            return True

        async def is_used() -> bool:
            return not page.access.is_open(ticket)

        monkeypatch.setattr(browser, "_PATIENCE", 30.0)
        assert await open_page_in(Opening(post_the_form), link, is_used)
        assert ticket not in shown[0]
        assert shown[1] == f"{page.access.origin}{page.access.rules.root}/"
        assert "GHS 2,797,197.20" in shown[2]
        assert not Path(url2pathname(urlsplit(shown[0]).path)).exists()


async def test_a_browser_that_cannot_read_the_file_leaves_the_link_to_the_person(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nobody_is_known(monkeypatch)
    runtime = JumpingRuntime()
    monkeypatch.setattr(browser, "SYSTEM", runtime)
    began = runtime.monotonic()

    async def is_used() -> bool:
        return False

    assert not await open_page_in(Opening(lambda _: True), ADDRESS, is_used)
    assert 10.0 <= runtime.monotonic() - began < 11.0

    def full(*_: object, **__: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(ticket_form, "write_text", full)
    assert not await open_page_in(Opening(lambda _: True), ADDRESS, is_used)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says which user it is")
async def test_where_the_user_is_known_a_browser_gets_the_link() -> None:
    got: list[str] = []

    async def is_used() -> bool:
        raise AssertionError("nobody needs to know")

    assert await open_page_in(Opening(lambda url: not got.append(url)), ADDRESS, is_used)
    assert got == [ADDRESS]


async def test_the_link_is_for_the_person_when_the_browser_did_not_open_the_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nobody_is_known(monkeypatch)
    monkeypatch.setattr(browser, "SYSTEM", JumpingRuntime())
    monkeypatch.setenv("BROWSER", "given")
    monkeypatch.setattr(webbrowser, "get", lambda: Opening(lambda _: True))
    async with served(GivenSource(states()["running"])) as page:
        link, is_open = await open_page(page)
        assert not is_open
        assert page.access.is_open(ticket_of(link))


async def test_the_page_of_another_process_is_asked_whether_the_browser_opened_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    nobody_is_known(monkeypatch)
    monkeypatch.setattr(browser, "SYSTEM", JumpingRuntime())
    monkeypatch.setenv("BROWSER", "given")
    monkeypatch.setattr(webbrowser, "get", lambda: Opening(lambda _: True))
    ledger = LedgerAddress(str(tmp_path / "l"))
    async with served(GivenSource(states()["running"])) as page:
        address_file.publish(ledger.text, page.access)
        running = PageElsewhere(os.getpid(), page.access.new_address())
        assert await open_elsewhere(ledger, running) == (running.address, False)
        page.access.use(ticket_of(running.address))
        link, is_open = await open_elsewhere(ledger, running)
        assert is_open
        assert page.access.is_open(ticket_of(link))
