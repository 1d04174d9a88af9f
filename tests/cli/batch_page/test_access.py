"""Who sees the page of a batch, over real sockets: tickets, the cookie, the token, Host and Origin."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import ClientSession, CookieJar

from payments_async.bulk.ledger_errors import LedgerGone
from payments_async.cli.batch_page import site
from payments_async.cli.batch_page.access import PageAccess
from payments_async.cli.batch_page.server import BatchPageServer
from tests.support.batch_pages import GivenSource, row, served, states
from tests.support.jumping import JumpingRuntime

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


@asynccontextmanager
async def browser(page: BatchPageServer) -> AsyncIterator[ClientSession]:
    """Somebody with cookies; redirects are not followed."""
    jar = CookieJar(unsafe=True)  # cookies of an address
    async with ClientSession(page.access.origin, cookie_jar=jar) as session:
        yield session


async def asked(
    session: ClientSession, path: str, headers: dict[str, str] | None = None, method: str = "GET"
) -> tuple[aiohttp.ClientResponse, str]:
    """An answer, and its text."""
    async with session.request(method, path, headers=headers, allow_redirects=False) as answer:
        return answer, await answer.text()


async def test_a_ticket_opens_the_page_once_and_the_cookie_keeps_it_open(page: BatchPageServer) -> None:
    ticket = page.access.new_address().removeprefix(page.access.origin)
    async with browser(page) as mine, browser(page) as other:
        refused, text = await asked(mine, "/")
        assert (refused.status, "`payments payouts watch june.csv.ledger`" in text) == (403, True)

        opened, _ = await asked(mine, ticket)
        assert (opened.status, opened.headers["Location"]) == (303, "/")
        cookie = opened.headers["Set-Cookie"]
        assert re.fullmatch(r"payments_page_\d+=[0-9a-f]{64}; HttpOnly; SameSite=Strict; Path=/", cookie)
        shown, text = await asked(mine, "/")
        assert (shown.status, "GHS 2,797,197.20" in text) == (200, True)
        assert ticket not in text
        headers = shown.headers
        assert (headers["Cache-Control"], headers["Referrer-Policy"]) == ("no-store", "no-referrer")
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert "unsafe" not in policy

        again, _ = await asked(mine, ticket)  # a second click on the link, in the browser that has the cookie
        assert (again.status, "Set-Cookie" in again.headers) == (303, False)
        for path, place in (("/rows/41", "/rows/41"), ("//evil.example/", "/"), ("/events", "/")):
            led, _ = await asked(mine, page.access.origin + ticket.replace("/?", f"{path}?"))
            assert (led.status, led.headers["Location"]) == (303, place)
        stolen, _ = await asked(other, ticket)
        assert (stolen.status, "Set-Cookie" in stolen.headers) == (403, False)
        for path in PAGES:
            answer, text = await asked(other, path)
            assert (answer.status, "GHS" in text) == (403, False)


async def test_another_host_another_page_and_another_method_get_nothing(page: BatchPageServer) -> None:
    ticket = page.access.new_address().removeprefix(page.access.origin)
    own = page.access.origin
    refused = [
        {"Host": "evil.example"},
        {"Host": f"evil.example:{page.access.port}"},
        {"Origin": "https://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"},
    ]
    async with browser(page) as mine:
        for headers in refused:  # and the ticket is not used up by them
            answer, text = await asked(mine, ticket, headers)
            assert (answer.status, "Set-Cookie" in answer.headers, "GHS" in text) == (403, False, False)
        await asked(mine, ticket, {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"})
        for headers in refused:
            answer, text = await asked(mine, "/", headers)
            assert (answer.status, "GHS" in text) == (403, False)
        for method in ("POST", "PUT", "DELETE", "OPTIONS"):
            answer, _ = await asked(mine, "/", method=method)
            assert answer.status == 405
        local = own.replace("127.0.0.1", "localhost")
        answer, _ = await asked(mine, "/", {"Origin": local, "Host": local.removeprefix("http://")})
        assert answer.status == 200
        for path in ("/assets/page.css", "/assets/page.js", "/assets/icon.svg"):
            answer, _ = await asked(mine, path)
            assert answer.status == 200
        for path, said in (
            ("/rows/42", "no row 42"),
            ("/nowhere", "no page here"),
            ("/assets/../view.py", ""),
        ):
            answer, text = await asked(mine, path)
            assert (answer.status, said in text) == (404, True)


async def test_commands_of_the_same_user_ask_with_the_token(
    page: BatchPageServer, source: GivenSource
) -> None:
    mine = {"Authorization": f"Bearer {page.access.token}"}
    async with browser(page) as session:
        for headers in ({}, {"Authorization": "Bearer x"}, {"Authorization": "Bearer ü"}):
            answer, text = await asked(session, "/api/row?name=41", headers)
            assert (answer.status, "GHS" in text) == (403, False)
        answer, text = await asked(session, "/api/row?name=emp-00041", mine)
        facts = json.loads(text)
        assert (answer.status, facts["amount"], facts["attempts"]["made"]) == (200, "1337.76", 3)
        assert facts["page"] == f"{page.access.origin}/rows/41"
        assert facts["account"]["instrument"]["phone_number"] == "***"
        for path in ("/api/row?name=nobody", "/api/nothing"):
            answer, text = await asked(session, path, mine)
            assert (answer.status, "error" in json.loads(text)) == (404, True)
        _, text = await asked(session, "/api/open", mine)
        await asked(session, json.loads(text)["url"].removeprefix(page.access.origin))
        answer, text = await asked(session, "/rows/41")
        assert (answer.status, "INSUFFICIENT_FUNDS" in text) == (200, True)
        source.error = LedgerGone("june.ledger", "was deleted")
        answer, text = await asked(session, "/api/row?name=41", mine)
        assert (answer.status, "was deleted" in text) == (503, True)
        page.feed.show(source)
        answer, text = await asked(session, "/")
        assert (answer.status, "was deleted" in text) == (503, True)


async def test_without_jinja_the_page_says_what_to_install(
    page: BatchPageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: object) -> str:
        raise ModuleNotFoundError

    monkeypatch.setattr(site.FILES, "render", missing)
    async with browser(page) as session:
        await asked(session, page.access.new_address().removeprefix(page.access.origin))
        answer, text = await asked(session, "/")
    assert answer.status == 503
    assert 'pip install "payments-sdk[sandbox]"' in text


def test_a_ticket_is_valid_for_ten_minutes() -> None:
    runtime = JumpingRuntime()
    access = PageAccess(20_001, runtime=runtime)
    early, late = (access.new_address().partition("token=")[2] for _ in range(2))
    runtime.advance(599.0)
    assert access.cookie_for(early) is not None
    runtime.advance(2.0)
    assert access.cookie_for(late) is None


def test_no_secret_is_shown_and_old_tickets_are_void() -> None:
    access = PageAccess(20_001)
    tickets = [access.new_address().partition("token=")[2] for _ in range(40)]
    assert access.token not in repr(access)
    assert not any(ticket in repr(access) for ticket in tickets)
    assert access.cookie_for(tickets[0]) is None
    cookie = access.cookie_for(tickets[-1])
    assert cookie is not None
    assert cookie.partition(";")[0].partition("=")[2] not in repr(access)
    assert access.is_visitor({"cookie": f"other=1; {cookie.partition(';')[0]}"})
    for text in ("", "payments_page_20001=", "payments_page_20002=x", "payments_page_20001=ü", "=;,,"):
        assert not access.is_visitor({"cookie": text})
