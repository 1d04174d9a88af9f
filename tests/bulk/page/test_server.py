"""The page's server: silent until somebody looks, read at most once a second; news; the last page."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import ClientResponse, ClientSession

from payments_async.bulk._page import feed
from payments_async.bulk._page.server import BatchPageServer
from payments_async.bulk._page.source import PageFigures
from payments_async.bulk.ledger_errors import LedgerMissing
from tests.support.batch_pages import GivenSource, served, states


@pytest.fixture(autouse=True)
def _faster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "_EVERY", 0.2)


@asynccontextmanager
async def visitor(page: BatchPageServer) -> AsyncIterator[ClientSession]:
    """A browser that shows the page."""
    async with ClientSession(page.access.origin) as session:
        async with session.get(page.access.new_address().removeprefix(page.access.origin)) as answer:
            assert answer.status == 200
        yield session


async def event(stream: ClientResponse, *, beats: bool = False) -> str:
    """The name of the next event of a stream, beats left out unless asked for."""
    while line := await stream.content.readline():
        if line.startswith(b"event: ") and (beats or line != b"event: beat\n"):
            return line.decode().split()[1]
    raise AssertionError("the stream has ended")


async def test_it_is_read_once_for_all_that_look_within_a_second_and_again_after_news() -> None:
    source = GivenSource(states()["starting"])
    async with served(source) as page, visitor(page) as session:

        async def look() -> str:
            async with session.get("/") as answer:
                return await answer.text()

        await asyncio.gather(*(look() for _ in range(8)))
        assert source.readings == 1
        assert "GHS 0.00" in await look()
        source.now = states()["running"]
        page.feed.changed()
        while "GHS 2,797,197.20" not in await look():
            assert source.readings == 1
        assert source.readings == 2


async def test_a_stream_has_an_event_at_once_one_for_news_and_one_for_the_end() -> None:
    source = GivenSource(states()["running"])
    async with served(source) as page, visitor(page) as session, session.get("/events") as stream:
        assert stream.headers["Content-Type"] == "text/event-stream"
        assert await event(stream) == "change"
        page.feed.changed()
        page.feed.changed()
        assert await event(stream) == "change"
        source.now = states()["complete"]
        closing = asyncio.ensure_future(page.close())
        assert await event(stream) == "over"
        async with session.get("/") as last:
            assert "complete and certified" in await last.text()
        stream.close()  # it has the last page: the end waits no longer
        await closing


async def test_a_stream_without_news_has_beats(monkeypatch: pytest.MonkeyPatch) -> None:
    assert feed._BEAT < 12, "the page says then that there is no news"
    monkeypatch.setattr(feed, "_BEAT", 0.3)
    source = GivenSource(states()["running"])
    async with served(source) as page, visitor(page) as session, session.get("/events") as stream:
        found = [await event(stream, beats=True) for _ in range(3)]
        page.feed.changed()
        assert [*found, await event(stream)] == ["change", "beat", "beat", "change"]


async def test_figures_that_change_without_a_word_are_read_again_while_somebody_looks() -> None:
    source = GivenSource(states()["stopped"], is_polled=True)
    async with served(source) as page, visitor(page) as session, session.get("/events") as stream:
        assert await event(stream) == "change"
        source.now = states()["running"]
        assert await event(stream) == "change"
        source.error = LedgerMissing("june.csv.ledger", "is gone")  # the page says so
        assert await event(stream) == "change"


async def test_figures_of_a_source_that_was_replaced_meanwhile_are_not_shown() -> None:
    begun, going_on = asyncio.Event(), asyncio.Event()

    class Slow(GivenSource):
        async def snapshot(self) -> PageFigures:
            begun.set()
            await going_on.wait()
            return await super().snapshot()

    shown = feed.BatchFeed(Slow(states()["running"]))
    reading = asyncio.ensure_future(shown.snapshot())
    await begun.wait()
    shown.show(GivenSource(states()["complete"]))
    going_on.set()
    assert (await reading).phase == "ended"


def test_a_run_that_nobody_watches_loads_none_of_it_and_no_visit_brings_the_simulated_service() -> None:
    program = """
import asyncio, sys
from payments_async._cli.payouts import run
from payments_async.bulk._page import feed, server
from payments_async.bulk._page.source import PageFigures
from payments_async.bulk.ledger_errors import LedgerMissing
from payments_async.bulk._page.server import BatchPageServer

async def main():
    page = BatchPageServer(None)
    page.start()
    await page.close()

asyncio.run(main())
print(*sorted({"jinja2", "aiohttp.web", "payments_async.sandbox"} & sys.modules.keys()))
from payments_async.bulk._page import site  # the first visitor
print(*sorted({"jinja2", "babel", "payments_async.sandbox._sandbox"} & sys.modules.keys()))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize(
    ("request_text", "status"),
    [
        ("what?\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://[\r\n\r\n", 403),
        ("POST / HTTP/1.1\r\nHost: [::1]\r\nContent-Length: 4\r\nContent-Encoding: gzip\r\n\r\nnone", 400),
    ],
)
async def test_what_is_wrong_with_a_request_is_answered_and_not_logged(
    caplog: pytest.LogCaptureFixture, request_text: str, status: int
) -> None:
    async with served(GivenSource(states()["running"])) as page:
        reader, writer = await asyncio.open_connection("127.0.0.1", page.access.port)
        writer.write(request_text.encode())
        assert f" {status} ".encode() in await reader.readline()
        writer.write_eof()
        await reader.read()  # until the server has closed it
        writer.close()
    assert caplog.records == []
