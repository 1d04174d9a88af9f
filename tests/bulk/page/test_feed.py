"""What the page reads, and when: once for all who look, at most once a second; news; the last page."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientResponse, ClientSession

from payments_async.bulk import Activity, BatchFigures, LedgerMissing, PayoutBatch
from payments_async.bulk._page import BatchPage, feed, serve_page
from payments_async.bulk._texts.ledger_address import LedgerAddress
from payments_async.sandbox import Sandbox
from tests.support.batch_pages import words_of
from tests.support.batches import items
from tests.support.desks import Desk
from tests.support.places import EITHER


class Clock:
    """Time that a test moves on."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The page's clock. It looks for news after a hundredth of a second of real time."""
    clock, waited = Clock(), feed._waited
    monkeypatch.setattr(feed, "SYSTEM", clock)
    monkeypatch.setattr(feed, "_waited", lambda event, _: waited(event, 0.01))
    return clock


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """One entry for each reading; a test may set how long the next one takes."""
    found: list[float] = []
    series = PayoutBatch.series

    async def counted(batch: PayoutBatch) -> Any:
        found.append(0.0)
        return await series(batch)

    monkeypatch.setattr(PayoutBatch, "series", counted)
    return found


async def words(session: ClientSession, path: str = "/") -> str:
    """The words of a page."""
    async with session.get(path) as answer:
        return words_of(await answer.text())


async def event(stream: ClientResponse, *, beats: bool = False) -> str:
    """The name of the next event of a stream, beats left out unless asked for."""
    while line := await stream.content.readline():
        if line.startswith(b"event: ") and (beats or line != b"event: beat\n"):
            return line.decode().split()[1]
    raise AssertionError("the stream has ended")


@EITHER
async def test_the_page_shows_a_batch_its_certificate_and_its_rows(page: BatchPage) -> None:
    async with ClientSession(page.address) as session:
        shown = await words(session)
        assert "batch complete, 1 rejected" in shown
        assert "Certified 2026-01-01" in shown
        assert "1 × HTTP 422: " in shown
        assert "Rows decided a second" in shown
        row = await words(session, "/rows/2")
        assert "/ row-2" in row
        assert "Reason HTTP 422: " in row
        assert "Instrument phone number ***" in row
        assert "2290190112233" not in shown + row


async def test_it_is_read_once_for_all_that_look_within_a_second(
    ledger: LedgerAddress, clock: Clock, readings: list[float]
) -> None:
    async with serve_page(ledger) as page, ClientSession(page.address) as session:
        await asyncio.gather(*(words(session) for _ in range(8)), words(session, "/rows/1"))
        assert len(readings) == 1
        clock.now += 0.9
        await words(session)
        assert len(readings) == 1
        clock.now += 0.2
        await asyncio.gather(*(words(session) for _ in range(8)))
        assert len(readings) == 2


async def test_a_large_batch_is_read_seldom(
    ledger: LedgerAddress, clock: Clock, readings: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    series = PayoutBatch.series

    async def slow(batch: PayoutBatch) -> Any:
        clock.now += 2.0
        return await series(batch)

    monkeypatch.setattr(PayoutBatch, "series", slow)
    async with serve_page(ledger) as page, ClientSession(page.address) as session:
        for seconds, number in ((39.0, 1), (2.0, 2)):
            clock.now += seconds
            await words(session)
            assert len(readings) == number


async def test_a_stream_has_an_event_at_once_one_for_news_beats_and_one_for_the_end(
    desk: Desk, client: Any, ledger: LedgerAddress, clock: Clock
) -> None:
    closing = asyncio.Event()

    async def serve(opened: Callable[[BatchPage], object]) -> None:
        async with serve_page(ledger) as page:
            opened(page)
            await closing.wait()

    opened = asyncio.get_running_loop().create_future()
    serving = asyncio.ensure_future(serve(opened.set_result))
    page = await opened
    async with ClientSession(page.address) as session, session.get("/events") as stream:
        assert stream.headers["Content-Type"] == "text/event-stream"
        assert await event(stream) == "change"
        clock.now += 6.0
        assert await event(stream, beats=True) == "beat"
        async with desk.open(ledger.text, client) as batch:
            await batch.retry_failed(rejected=True)
            clock.now += 1.0
            assert await event(stream) == "change"
            assert "stopped, can be resumed" in await words(session)
            await batch.cancel_rest()
        closing.set()
        assert await event(stream) == "over"
        assert "complete" in await words(session), "the last figures, though it was read within the second"
        stream.close()  # it has the last page: the end waits no longer
        await serving


async def test_a_run_says_what_it_does(clock: Clock, page: BatchPage) -> None:
    async with ClientSession(page.address) as session:
        for activity, told in (
            (Activity(doing="reading", listed=200), "reading the service's list, 200 payouts so far"),
            (None, "batch complete, 1 rejected"),
        ):
            page.show(None if activity is None else BatchFigures({}, {}, activity=activity))
            clock.now += 2.0
            assert told in await words(session)


async def test_a_ledger_that_cannot_be_read_is_said_to_and_read_again(
    clock: Clock, page: BatchPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def gone(_: PayoutBatch) -> Any:
        raise LedgerMissing("june.ledger", "was deleted")

    async with ClientSession(page.address) as session, session.get("/events") as stream:
        assert await event(stream) == "change"
        with monkeypatch.context() as patch:
            patch.setattr(PayoutBatch, "status", gone)
            clock.now += 2.0
            assert await event(stream) == "change"
            async with session.get("/") as answer:
                assert answer.status == 503
                assert (await answer.text()).startswith("june.ledger: was deleted; ")
        clock.now += 2.0
        assert await event(stream) == "change"
        assert "complete" in await words(session)


async def test_a_visitor_who_leaves_ends_no_reading(
    ledger: LedgerAddress, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    begun, going_on, holders = asyncio.Event(), asyncio.Event(), PayoutBatch.holders
    async with serve_page(ledger) as page:
        feed_of = page._feed

        async def slow(batch: PayoutBatch) -> Any:
            begun.set()
            await going_on.wait()
            return await holders(batch)

        monkeypatch.setattr(PayoutBatch, "holders", slow)
        feed_of._due = 0.0
        first = asyncio.ensure_future(feed_of.figures())
        await begun.wait()
        first.cancel()
        second = asyncio.ensure_future(feed_of.figures())
        going_on.set()
        assert (await second).report.rows == 3
        assert first.cancelled()
    assert not caplog.records


async def test_a_ledger_that_is_not_there_has_no_page(tmp_path: Path) -> None:
    with pytest.raises(LedgerMissing):
        async with serve_page(LedgerAddress(str(tmp_path / "none.ledger"))):
            raise AssertionError("it is served")


async def test_without_jinja_the_page_says_what_to_install(
    ledger: LedgerAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r'pip install "payments-sdk\[sandbox\]"'):
        async with serve_page(ledger):
            raise AssertionError("it is served")


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


async def test_a_run_and_its_page_work_on_one_ledger_at_once(
    desk: Desk, client: Any, service: Sandbox, tmp_path: Path
) -> None:
    path = tmp_path / "july.ledger"
    async with desk.open(path, client) as batch:
        await batch.load(items(40))
        async with (
            serve_page(LedgerAddress(str(path), "batch")) as page,
            ClientSession(page.address) as session,
        ):
            assert "nothing was sent yet" in await words(session)
            seen: list[BatchFigures] = []

            def show(figures: BatchFigures) -> None:
                seen.append(figures)
                page.show(figures)

            report = await batch.run(show)
            page.show(None)
            page._feed._due = 0.0
            assert "batch complete and certified" in await words(session)
    assert seen
    assert (report.exit_code, len(service.books.payouts())) == (0, 40)
