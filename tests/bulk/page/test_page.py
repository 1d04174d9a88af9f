"""Who sees the page of a batch, over real sockets, what it reads and when."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from aiohttp import ClientSession

from payments_async.bulk import Activity, BatchFigures, BulkError, LedgerMissing, PayoutBatch
from payments_async.sandbox import Sandbox
from tests.support.batch_pages import BatchPage, LedgerAddress, RowKeys, serve_page, words_of, write_page
from tests.support.batches import items
from tests.support.desks import Desk, Pay
from tests.support.one_surface import surface as surface
from tests.support.places import EITHER
from tests.support.strangers import STRANGER, ask_as_stranger, needs_root, nobody_is_known

MONEY = "XCD 4.02"
VISIT = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}


@pytest_asyncio.fixture
async def ledger(pay: Pay, service: Sandbox, place: Path | str) -> LedgerAddress:
    service.on("payouts.create", description="row 2").respond("http:422")
    await pay(items(3))
    return LedgerAddress(str(place), "batch")


@pytest_asyncio.fixture
async def page(ledger: LedgerAddress) -> AsyncIterator[BatchPage]:
    async with serve_page(ledger) as page:
        yield page


@pytest_asyncio.fixture
async def session(page: BatchPage) -> AsyncIterator[ClientSession]:
    async with ClientSession(page.address) as session:
        yield session


async def got(
    session: ClientSession, path: str = "/", method: str = "GET", **headers: str
) -> tuple[int, str]:
    async with session.request(method, path, headers=headers, allow_redirects=False) as answer:
        return answer.status, await answer.text()


async def words(session: ClientSession) -> str:
    status, text = await got(session)
    assert status == 200
    return words_of(text)


# Who sees it


@needs_root
async def test_another_user_is_refused_also_with_the_token(page: BatchPage, session: ClientSession) -> None:
    for path in ("/", f"{page._access.root}/"):
        reply = await asyncio.to_thread(ask_as_stranger, urlsplit(page.address).port or 0, path)
        assert (reply.status, "XCD" in reply.text, f"user {STRANGER}" in reply.text) == (403, False, True)
    assert page.link == f"{page.address}/"
    assert (await got(session))[0] == 200, "its own user needs no token"


async def test_where_no_user_is_known_the_token_in_the_address_opens_it(
    page: BatchPage, session: ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody_is_known(monkeypatch)
    root = page._access.root
    assert page.link == f"{page.address}{root}/"
    assert (page._access.secret in repr(page), page._access.secret in page.address) == (False, False)
    for path in ("/", "/nowhere", f"{root}x/", root, "/ü/"):
        status, text = await got(session, path)
        assert (status, "XCD" in text, "token in it is missing" in text) == (403, False, True)
    async with session.get(page.link) as shown:
        headers, policy = shown.headers, shown.headers["Content-Security-Policy"]
        assert (shown.status, MONEY in await shown.text()) == (200, True)
    assert (headers["Cache-Control"], headers["Referrer-Policy"]) == ("no-store", "no-referrer")
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/", {"Host": "evil.example"}, 403),
        ("GET", "/", {"Origin": "https://evil.example"}, 403),
        ("GET", "/", {"Origin": "http://127.0.0.1:1"}, 403),
        ("GET", "/", {"Origin": "null"}, 403),
        ("GET", "/", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403),
        ("GET", "/", {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"}, 403),
        *((method, "/", {}, 405) for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE")),
        ("GET", "/rows/2", {}, 404),
        ("GET", "/", VISIT, 200),
        ("HEAD", "/", {}, 200),
    ],
)
async def test_another_host_another_page_and_another_method_get_nothing(
    session: ClientSession, method: str, path: str, headers: dict[str, str], status: int
) -> None:
    answered, text = await got(session, path, method, **headers)
    assert (answered, MONEY in text) == (status, status == 200 and method == "GET")


# What it reads, and when


class Clock:
    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("payments_async.bulk._page.feed.SYSTEM", clock)
    return clock


@EITHER
async def test_the_page_shows_a_batch_its_certificate_and_its_rows(session: ClientSession) -> None:
    shown = await words(session)
    for text in ("batch complete, 1 rejected", "Certified 2026-01-01", "1 × HTTP 422: ", "2 row-2 "):
        assert text in shown
    assert "2290190112233" not in shown


async def test_it_is_read_once_for_all_that_look_within_a_second_and_a_large_batch_seldom(
    ledger: LedgerAddress, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings, pace = list[float](), PayoutBatch.pace

    async def counted(batch: PayoutBatch) -> Any:
        readings.append(clock.now)
        if len(readings) == 2:
            clock.now += 2.0  # so long does it take
        return await pace(batch)

    monkeypatch.setattr(PayoutBatch, "pace", counted)
    async with serve_page(ledger) as page, ClientSession(page.address) as session:
        for seconds, number in ((0.9, 1), (0.2, 2), (39.0, 2), (2.0, 3)):
            clock.now += seconds
            await asyncio.gather(*(words(session) for _ in range(8)))
            assert len(readings) == number


async def test_an_open_page_gets_the_last_figures_before_its_server_ends(
    desk: Desk, client: Any, ledger: LedgerAddress, clock: Clock
) -> None:
    closing, opened = asyncio.Event(), asyncio.get_running_loop().create_future()

    async def serve() -> None:
        async with serve_page(ledger) as page:
            opened.set_result(page)
            await closing.wait()

    serving = asyncio.ensure_future(serve())
    async with ClientSession((await opened).address) as session:
        assert "complete, 1 rejected" in await words(session)
        async with desk.open(ledger.text, client) as batch:
            await batch.retry_failed(rejected=True)
            await batch.cancel_rest()
        closing.set()
        assert "batch complete" in await words(session)
        assert "1 rejected" not in await words(session), "though it was read within the second"
        await serving


async def test_a_run_says_what_it_does(clock: Clock, page: BatchPage, session: ClientSession) -> None:
    for activity, told in (
        (Activity(doing="reading", listed=200), "reading the service's list, 200 payouts so far"),
        (Activity(doing="following"), "following the payouts"),
        (None, "batch complete, 1 rejected"),
    ):
        page.show(None if activity is None else BatchFigures({}, {}, activity=activity))
        clock.now += 2.0
        assert told in await words(session)


async def test_a_ledger_that_cannot_be_read_is_said_to_and_read_again(
    clock: Clock, session: ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def gone(_: PayoutBatch) -> Any:
        raise LedgerMissing("june.ledger", "was deleted")

    with monkeypatch.context() as patch:
        patch.setattr(PayoutBatch, "status", gone)
        clock.now += 2.0
        status, text = await got(session)
        assert (status, text.startswith("june.ledger: was deleted; ")) == (503, True)
    assert "complete" in await words(session)


async def test_the_page_as_a_file_is_whole_private_and_replaces_nothing_unasked(
    ledger: LedgerAddress, tmp_path: Path
) -> None:
    path = tmp_path / "report.html"
    await write_page(ledger, path, overwrite=False)
    assert path.stat().st_mode & 0o777 == 0o600
    assert "batch complete, 1 rejected" in words_of(path.read_text(encoding="utf-8"))
    with pytest.raises(BulkError, match="exists already"):
        await write_page(ledger, path, overwrite=False)
    await write_page(ledger, path, overwrite=True)
    if not ledger.is_database:
        with pytest.raises(BulkError, match="ledger's own file"):
            await write_page(ledger, ledger.text, overwrite=True)


@EITHER
async def test_a_rows_key_is_found_by_its_reference_also_of_a_later_payout(
    ledger: LedgerAddress, desk: Desk, client: Any
) -> None:
    keys = RowKeys(ledger)
    async with desk.open(ledger.text, client) as batch:
        row = await batch.row(1)
    assert keys.of(row.reference) is None, "before it is read"
    await keys.read()
    found = [keys.of(reference) for reference in (row.reference, f"{row.reference}~g2", "other")]
    assert found == ["row-1", "row-1", None]
    assert "row-1" not in repr(keys)


def test_commands_without_a_page_load_none_of_it_and_the_page_brings_no_simulated_service() -> None:
    program = """
import sys
import payments_async.bulk._page
print(*sorted({"jinja2", "aiohttp.web", "payments_async.sandbox"} & sys.modules.keys()))
from payments_async.bulk._page import site
print(*sorted({"jinja2", "babel", "payments_async.sandbox._sandbox"} & sys.modules.keys()))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
