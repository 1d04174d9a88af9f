"""Who sees the page of a batch, over real sockets: the own user; elsewhere tickets and the secret; Origin."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import ClientSession, CookieJar

from payments_async.bulk._page import BatchPage
from payments_async.bulk._page.access import PageAccess
from tests.support.jumping import JumpingRuntime
from tests.support.strangers import STRANGER, ask_as_stranger, needs_root, nobody_is_known

PAGES = ("/", "/rows/2", "/events")
MONEY = "XCD 4.02"
VISIT = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}


@pytest.fixture
def access(page: BatchPage) -> PageAccess:
    """The secrets of the page."""
    return page._access


@pytest_asyncio.fixture
async def browser(page: BatchPage) -> AsyncIterator[ClientSession]:
    """A browser, which keeps the cookies of an address if it gets any."""
    async with ClientSession(page.address, cookie_jar=CookieJar(unsafe=True)) as session:
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
        is_stream = path.endswith("/events") and answer.status == 200
        return answer, "" if is_stream else await answer.text()


@needs_root
async def test_another_user_is_refused_also_with_a_ticket_which_stays_good_and_with_the_secret(
    access: PageAccess, browser: ClientSession
) -> None:
    ticket = access.new_ticket()
    for path in (f"/?token={ticket}", *PAGES, f"{access.rules.root}/", "/assets/page.css"):
        reply = await asyncio.to_thread(ask_as_stranger, access.port, path)
        assert (reply.status, "XCD" in reply.text, f"user {STRANGER}" in reply.text) == (403, False, True)
    form = {"Content-Type": "application/x-www-form-urlencoded", "Origin": "null"}
    body = f"ticket={ticket}"
    assert (await asyncio.to_thread(ask_as_stranger, access.port, "/open", "POST", form, body)).status == 403
    assert access.is_open(ticket)
    for path in PAGES:  # its own user needs nothing
        assert (await asked(browser, path))[0].status == 200
    opened, _ = await asked(browser, f"/?token={ticket}")
    assert (opened.status, opened.headers["Location"]) == (303, "/")


async def test_where_no_user_is_known_a_ticket_opens_it_once_and_the_secret_is_in_the_path(
    page: BatchPage, access: PageAccess, browser: ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody_is_known(monkeypatch)
    root = access.rules.root
    for path in (*PAGES, "/nowhere", f"{root}x/", root, "/ü/"):
        refused, text = await asked(browser, path)
        assert (refused.status, "XCD" in text, "`payments payouts watch " in text) == (403, False, True)

    link = access.link(access.new_ticket()).removeprefix(page.address)
    looked, text = await asked(browser, link, method="HEAD")
    assert (looked.status, "Location" in looked.headers, text) == (200, False, "")
    opened, _ = await asked(browser, link)
    assert (opened.status, opened.headers["Location"]) == (303, f"{root}/")
    assert (await asked(browser, link))[0].status == 403
    assert (await asked(browser, "/"))[0].status == 403  # the browser has no cookie, and sends none elsewhere

    shown, text = await asked(browser, f"{root}/")
    assert (shown.status, MONEY in text, link in text) == (200, True, False)
    headers, policy = shown.headers, shown.headers["Content-Security-Policy"]
    assert (headers["Cache-Control"], headers["Referrer-Policy"]) == ("no-store", "no-referrer")
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy
    links = re.findall(r'(?:href|src)="(/[^"]*)"', text)
    assert f"{root}/rows/2" in links
    for address in links:
        assert address.startswith(f"{root}/")
        assert (await asked(browser, address))[0].status == 200
    for path in PAGES:
        assert (await asked(browser, root + path))[0].status == 200

    for path in ("//evil.example/", "/events"):
        led, _ = await asked(browser, f"{page.address}{path}?token={access.new_ticket()}")
        assert (led.status, led.headers["Location"]) == (303, f"{root}/")
    led, _ = await asked(browser, f"{root}/?token=void")  # who is there just goes on
    assert (led.status, led.headers["Location"]) == (303, f"{root}/")


async def test_a_form_in_a_file_opens_it_and_no_form_of_another_page(
    access: PageAccess, browser: ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody_is_known(monkeypatch)
    ticket = {"ticket": access.new_ticket()}
    for headers in ({"Origin": "https://evil.example"}, {"Origin": "null", "Sec-Fetch-Site": "cross-site"}):
        assert (await asked(browser, "/open", headers, "POST", ticket))[0].status == 403
    assert (await asked(browser, "/open", {"Origin": "null"} | VISIT, "POST", {"ticket": "ü"}))[
        0
    ].status == 403
    opened, _ = await asked(browser, "/open", {"Origin": "null"} | VISIT, "POST", ticket)
    assert (opened.status, opened.headers["Location"]) == (303, f"{access.rules.root}/")
    assert (await asked(browser, "/open", {"Origin": "null"} | VISIT, "POST", ticket))[0].status == 403


async def test_another_host_another_page_and_another_method_get_nothing(
    page: BatchPage, access: PageAccess, browser: ClientSession
) -> None:
    own, ticket = page.address, access.new_ticket()
    refused = [
        {"Host": "evil.example"},
        {"Host": f"evil.example:{access.port}"},
        {"Origin": "https://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"},
    ]
    for headers in refused:
        for address in (access.link(ticket), f"{own}/", f"{own}{access.rules.root}/"):
            answer, text = await asked(browser, address, headers)
            assert (answer.status, "XCD" in text) == (403, False)
    assert access.is_open(ticket), "it is not used up by them"
    assert (await asked(browser, access.link(ticket), VISIT))[0].status == 303
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE"):
        assert (await asked(browser, "/", method=method))[0].status == 405
    local = own.replace("127.0.0.1", "localhost")
    answer, text = await asked(browser, "/", {"Origin": local, "Host": local.removeprefix("http://")})
    assert (answer.status, MONEY in text) == (200, True)
    for path in ("/assets/page.css", "/assets/page.js", "/assets/icon.svg"):
        assert (await asked(browser, path))[0].status == 200
    for path, said in (("/rows/42", "no row 42"), ("/nowhere", "no page here"), ("/assets/../view.py", "")):
        answer, text = await asked(browser, path)
        assert (answer.status, said in text) == (404, True)


@pytest.mark.parametrize(
    ("request_text", "status"),
    [
        ("what?\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://[\r\n\r\n", 403),
        ("POST / HTTP/1.1\r\nHost: [::1]\r\nContent-Length: 4\r\nContent-Encoding: gzip\r\n\r\nnone", 400),
    ],
)
async def test_what_is_wrong_with_a_request_is_answered_and_not_logged(
    access: PageAccess, caplog: pytest.LogCaptureFixture, request_text: str, status: int
) -> None:
    caplog.clear()
    reader, writer = await asyncio.open_connection("127.0.0.1", access.port)
    writer.write(request_text.encode())
    assert f" {status} ".encode() in await reader.readline()
    writer.write_eof()
    await reader.read()  # until the server has closed it
    writer.close()
    assert caplog.records == []


def test_a_ticket_is_valid_for_ten_minutes() -> None:
    runtime = JumpingRuntime()
    access = PageAccess(20_001, runtime=runtime)
    early, late = access.new_ticket(), access.new_ticket()
    runtime.advance(599.0)
    assert [access.use(early), access.use(early)] == [True, False]
    runtime.advance(2.0)
    assert not access.use(late)


def test_no_secret_is_shown_and_old_tickets_are_void() -> None:
    access = PageAccess(20_001)
    tickets = [access.new_ticket() for _ in range(40)]
    assert not [secret for secret in (access.rules.secret, *tickets) if secret in repr(access)]
    assert [access.use(tickets[0]), access.use(tickets[-1])] == [False, True]
