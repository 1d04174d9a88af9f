"""A session as a stream of events: one with the step it is at, one with each other step, and then the end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web

from payments_async.sandbox import Sandbox, VirtualClock
from tests.sandbox.checkout.test_pages import BALANCE, Payer, visit
from tests.sandbox.raw_requests import Api


class Tab:
    """A browser's tab that follows a session."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response

    async def next(self) -> str:
        """The data of the next event, comments passed over; empty at the end."""
        async for line in self.response.content:
            name, _, value = line.decode().strip().partition(": ")
            if name == "data":
                return value
        return ""


@pytest_asyncio.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox(clock=VirtualClock.frozen()) as sandbox:
        yield sandbox


@pytest.fixture
def payer(sandbox: Sandbox) -> Payer:
    return visit(Api(sandbox, sandbox.api_key))


@asynccontextmanager
async def following(sandbox: Sandbox, path: str) -> AsyncIterator[Tab]:
    async with aiohttp.ClientSession() as browser, browser.get(f"{sandbox.origin}{path}/events") as response:
        assert response.status == 200
        assert response.headers["Content-Type"] == "text/event-stream"
        assert response.headers["Cross-Origin-Resource-Policy"] == "same-origin"
        yield Tab(response)


async def test_every_tab_gets_each_step_until_the_end(sandbox: Sandbox, payer: Payer) -> None:
    async with following(sandbox, payer.path()) as first, following(sandbox, payer.path()) as second:
        for tab in (first, second):
            assert await tab.next() == "0-open"
        payer.pay("sandbox_bank")
        for tab in (first, second):
            assert await tab.next() == "1-action"
        payer.answer("bank")
        for tab in (first, second):
            assert [await tab.next(), await tab.next()] == ["1-paid", ""]


@pytest.mark.parametrize(
    ("scenario", "steps"),
    [
        ("complete after=5s", ["1-waiting", "1-paid", ""]),
        ("failover:1 after=5s", ["1-waiting", "2-waiting", "2-paid", ""]),
        ("hang", ["1-waiting", "1-unknown", "1-expired", ""]),
    ],
)
async def test_what_time_alone_changes_is_sent_when_it_happens(
    sandbox: Sandbox, scenario: str, steps: list[str]
) -> None:
    payer = visit(Api(sandbox, sandbox.api_key), scenario)
    payer.pay(BALANCE)
    async with following(sandbox, payer.path()) as tab:
        for step in steps:
            assert await tab.next() == step
            sandbox.advance(5 if scenario != "hang" else 3600 if step == "1-unknown" else 60)


async def test_events_of_other_sessions_are_not_sent(sandbox: Sandbox, payer: Payer) -> None:
    async with following(sandbox, payer.path()) as tab:
        assert await tab.next() == "0-open"
        for _ in range(3):
            other = visit(Api(sandbox, sandbox.api_key))
            other.pay(BALANCE)
        payer.pay("sandbox_bank")
        assert await tab.next() == "1-action"


@pytest.mark.parametrize("ended", ["reset", "unknown"])
async def test_the_stream_of_a_session_that_is_gone_says_so_and_ends(
    sandbox: Sandbox, payer: Payer, ended: str
) -> None:
    if ended == "unknown":
        async with following(sandbox, "/checkout/cs_unknown") as tab:
            assert [await tab.next(), await tab.next()] == ["gone", ""]
        return
    async with following(sandbox, payer.path()) as tab:
        assert await tab.next() == "0-open"
        sandbox.reset()
        assert [await tab.next(), await tab.next()] == ["gone", ""]


async def test_who_leaves_before_the_first_word_is_no_error_in_the_log(
    sandbox: Sandbox, payer: Payer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def left(*_: object) -> None:
        raise aiohttp.ClientConnectionResetError

    monkeypatch.setattr(web.StreamResponse, "write", left)
    async with following(sandbox, payer.path()) as tab:
        assert await tab.next() == ""
    assert caplog.records == []


def test_a_stream_is_read_over_http_alone(sandbox: Sandbox, payer: Payer) -> None:
    with pytest.raises(ValueError, match="is a live stream; read it over HTTP"):
        sandbox.handle("GET", payer.path("/events"))


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT"])
def test_only_a_get_opens_a_stream(sandbox: Sandbox, payer: Payer, method: str) -> None:
    assert sandbox.handle(method, payer.path("/events")).status == 404
