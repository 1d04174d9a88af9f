"""Who sees the page of a batch, over real sockets: the own user; elsewhere tickets and the secret; Origin."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import ClientSession, CookieJar

from payments_async.bulk._page import site
from payments_async.bulk._page.access import PageAccess
from payments_async.bulk._page.server import BatchPageServer
from payments_async.bulk.ledger_errors import LedgerGone
from tests.support.batch_pages import GivenSource, row, served, states
from tests.support.jumping import JumpingRuntime
from tests.support.strangers import STRANGER, ask_as_stranger, needs_root, nobody_is_known

PAGES = ("/", "/rows/41", "/events")


@pytest.fixture
def source() -> GivenSource:
    """A batch that is being paid, with one row."""
    return GivenSource(states()["running"], {"41": row(41), "emp-00041": row(41)})


@pytest_asyncio.fixture
async def page(source: GivenSource) -> AsyncIterator[BatchPageServer]:
    """Its page."""
    async with served(source) as server:
        yield server


@pytest_asyncio.fixture
async def browser(page: BatchPageServer) -> AsyncIterator[ClientSession]:
    """A browser, which keeps the cookies of an address if it gets any."""
    async with ClientSession(page.access.origin, cookie_jar=CookieJar(unsafe=True)) as session:
        yield session


async def asked(
    session: ClientSession,
    path: str,
    headers: dict[str, str] | None = None,
    method: str = "GET",
    data: dict[str, str] | None = None,
) -> tuple[aiohttp.ClientResponse, str]:
    """An answer, and its text; redirects are not followed."""
    async with session.request(method, path, headers=headers, data=data, allow_redirects=False) as answer:
        assert "Set-Cookie" not in answer.headers
        if path.endswith("/events") and answer.status == 200:
            return answer, ""
        return answer, await answer.text()


@needs_root
async def test_another_user_is_refused_also_with_a_ticket_which_stays_good_and_with_the_secret(
    page: BatchPageServer, browser: ClientSession
) -> None:
    ticket = page.access.new_address().removeprefix(page.access.origin)
    for path in (ticket, *PAGES, f"{page.access.rules.root}/", "/assets/page.css", "/api/open"):
        reply = await asyncio.to_thread(ask_as_stranger, page.access.port, path)
        assert (reply.status, "GHS" in reply.text, f"user {STRANGER}" in reply.text) == (403, False, True)
    form = {"Content-Type": "application/x-www-form-urlencoded", "Origin": "null"}
    body = ticket.replace("/?token", "ticket")
    reply = await asyncio.to_thread(ask_as_stranger, page.access.port, "/open", "POST", form, body)
    assert reply.status == 403
    assert page.access.is_open(ticket.partition("=")[2])
    for path in PAGES:  # its own user needs nothing
        assert (await asked(browser, path))[0].status == 200
    opened, _ = await asked(browser, ticket)
    assert (opened.status, opened.headers["Location"]) == (303, "/")


async def test_where_no_user_is_known_a_ticket_opens_it_once_and_the_secret_is_in_the_path(
    page: BatchPageServer, browser: ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody_is_known(monkeypatch)
    root = page.access.rules.root
    for path in (*PAGES, "/nowhere", f"{root}x/", root, "/ü/"):
        refused, text = await asked(browser, path)
        assert (refused.status, "GHS" in text) == (403, False)
        assert "`payments payouts watch june.csv.ledger`" in text

    ticket = page.access.new_address().removeprefix(page.access.origin)
    looked, text = await asked(browser, ticket, method="HEAD")
    assert (looked.status, "Location" in looked.headers, text) == (200, False, "")
    opened, _ = await asked(browser, ticket)
    assert (opened.status, opened.headers["Location"]) == (303, f"{root}/")
    again, _ = await asked(browser, ticket)
    assert again.status == 403
    assert (await asked(browser, "/"))[0].status == 403  # the browser has no cookie, and sends none elsewhere

    shown, text = await asked(browser, f"{root}/")
    assert (shown.status, "GHS 2,797,197.20" in text) == (200, True)
    assert ticket not in text
    headers = shown.headers
    assert (headers["Cache-Control"], headers["Referrer-Policy"]) == ("no-store", "no-referrer")
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy
    links = re.findall(r'(?:href|src)="(/[^"]*)"', text)
    assert f"{root}/rows/1" in [link[: len(root) + 7] for link in links]
    for link in links:
        assert link.startswith(f"{root}/")
        assert (await asked(browser, link))[0].status in (200, 404)
    for path in PAGES:
        assert (await asked(browser, root + path))[0].status == 200

    for path, place in (("/rows/41", "/rows/41"), ("//evil.example/", "/"), ("/events", "/")):
        link = page.access.new_address(path).removeprefix(page.access.origin)
        led, _ = await asked(browser, page.access.origin + link)
        assert (led.status, led.headers["Location"]) == (303, root + place)
        led, _ = await asked(browser, f"{page.access.origin}{root}{link}")  # who is there just goes on
        assert (led.status, led.headers["Location"]) == (303, root + place)


async def test_a_form_in_a_file_opens_it_and_no_form_of_another_page(
    page: BatchPageServer, browser: ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody_is_known(monkeypatch)
    ticket = {"ticket": page.access.new_address().partition("token=")[2]}
    visit = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    for headers in ({"Origin": "https://evil.example"}, {"Origin": "null", "Sec-Fetch-Site": "cross-site"}):
        refused, _ = await asked(browser, "/open", headers, "POST", ticket)
        assert refused.status == 403
    refused, _ = await asked(browser, "/open", {"Origin": "null"} | visit, "POST", {"ticket": "ü"})
    assert refused.status == 403
    opened, _ = await asked(browser, "/open", {"Origin": "null"} | visit, "POST", ticket)
    assert (opened.status, opened.headers["Location"]) == (303, f"{page.access.rules.root}/")
    again, _ = await asked(browser, "/open", {"Origin": "null"} | visit, "POST", ticket)
    assert again.status == 403


async def test_another_host_another_page_and_another_method_get_nothing(
    page: BatchPageServer, browser: ClientSession, source: GivenSource
) -> None:
    own = page.access.origin
    ticket = page.access.new_address()
    refused = [
        {"Host": "evil.example"},
        {"Host": f"evil.example:{page.access.port}"},
        {"Origin": "https://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"},
    ]
    for headers in refused:
        for address in (ticket, f"{own}/", f"{own}{page.access.rules.root}/"):
            answer, text = await asked(browser, address, headers)
            assert (answer.status, "GHS" in text) == (403, False)
    assert page.access.is_open(ticket.partition("token=")[2])  # it is not used up by them
    await asked(browser, ticket, {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"})
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE"):
        answer, _ = await asked(browser, "/", method=method)
        assert answer.status == 405
    local = own.replace("127.0.0.1", "localhost")
    answer, _ = await asked(browser, "/", {"Origin": local, "Host": local.removeprefix("http://")})
    assert answer.status == 200
    for path in ("/assets/page.css", "/assets/page.js", "/assets/icon.svg"):
        answer, _ = await asked(browser, path)
        assert answer.status == 200
    for path, said in (("/rows/42", "no row 42"), ("/nowhere", "no page here"), ("/assets/../view.py", "")):
        answer, text = await asked(browser, path)
        assert (answer.status, said in text) == (404, True)
    source.error = LedgerGone("june.ledger", "was deleted")
    page.feed.show(source)
    answer, text = await asked(browser, "/")
    assert (answer.status, "was deleted" in text) == (503, True)


async def test_commands_of_the_same_user_ask_with_the_secret(
    page: BatchPageServer, browser: ClientSession, source: GivenSource
) -> None:
    root = page.access.rules.root
    for path in ("", f"{root[:-1]}x", "/ü"):
        answer, text = await asked(browser, f"{path}/api/row?name=41")
        assert (answer.status in (403, 404), "amount" in text) == (True, False)
    answer, text = await asked(browser, f"{root}/api/row?name=emp-00041")
    facts = json.loads(text)
    assert (answer.status, facts["amount"], facts["attempts"]["made"]) == (200, "1337.76", 3)
    assert facts["page"] == f"{page.access.origin}/rows/41"
    assert facts["account"]["instrument"]["phone_number"] == "***"
    for path in ("/api/row?name=nobody", "/api/nothing"):
        answer, text = await asked(browser, root + path)
        assert (answer.status, "error" in json.loads(text)) == (404, True)
    _, text = await asked(browser, f"{root}/api/open")
    link = json.loads(text)["url"]
    used = f"{root}/api/used?{urlsplit(link).query.replace('token', 'ticket')}"
    assert json.loads((await asked(browser, used))[1]) == {"used": False}
    await asked(browser, link)
    assert json.loads((await asked(browser, used))[1]) == {"used": True}
    answer, text = await asked(browser, "/rows/41")
    assert (answer.status, "INSUFFICIENT_FUNDS" in text) == (200, True)
    source.error = LedgerGone("june.ledger", "was deleted")
    answer, text = await asked(browser, f"{root}/api/row?name=41")
    assert (answer.status, "was deleted" in text) == (503, True)


async def test_without_jinja_the_page_says_what_to_install(
    browser: ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: object) -> str:
        raise ModuleNotFoundError

    monkeypatch.setattr(site.FILES, "render", missing)
    answer, text = await asked(browser, "/")
    assert answer.status == 503
    assert 'pip install "payments-sdk[sandbox]"' in text


def test_a_ticket_is_valid_for_ten_minutes() -> None:
    runtime = JumpingRuntime()
    access = PageAccess(20_001, runtime=runtime)
    early, late = (access.new_address().partition("token=")[2] for _ in range(2))
    runtime.advance(599.0)
    assert access.use(early)
    assert not access.use(early)
    runtime.advance(2.0)
    assert not access.use(late)


def test_no_secret_is_shown_and_old_tickets_are_void() -> None:
    access = PageAccess(20_001)
    tickets = [access.new_address().partition("token=")[2] for _ in range(40)]
    assert access.rules.secret not in repr(access)
    assert not any(ticket in repr(access) for ticket in tickets)
    assert not access.use(tickets[0])
    assert access.use(tickets[-1])


def test_a_command_names_a_row_s_page_with_a_ticket_where_no_user_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    access = PageAccess(20_001)
    nobody_is_known(monkeypatch)
    address = access.address_of("/rows/7")
    assert address.startswith("http://127.0.0.1:20001/rows/7?token=")
    assert access.use(address.partition("token=")[2])
