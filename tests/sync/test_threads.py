"""Many threads on one client, many clients on one loop."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

from payments_async._http.types import HTTPRequest, HTTPResponse
from payments_async.sandbox import Sandbox
from payments_sync import Payments
from tests.support.scripted import EMPTY_PAGE
from tests.sync.scenes import ADDRESS, KEY, loop_threads, payout


def test_thirty_two_threads_share_one_client(sandbox: Sandbox, client: Payments) -> None:
    references = [f"r-{number}" for number in range(320)]
    together = threading.Barrier(32)

    def pay(mine: list[str]) -> list[str | None]:
        together.wait(300)
        return [client.payouts.create(**payout(reference)).reference for reference in mine]

    with ThreadPoolExecutor(32) as pool:
        answers = [one for some in pool.map(pay, (references[i::32] for i in range(32))) for one in some]
    assert sorted(map(str, answers)) == sorted(references)
    assert sorted(str(entry.reference) for entry in sandbox.books.payouts()) == sorted(references)
    assert len(loop_threads()) == 1


def test_clients_share_one_thread_until_the_last_is_closed(sandbox: Sandbox) -> None:
    first = Payments(sandbox.api_key, base_url=sandbox.base_url)
    second = Payments(sandbox.api_key, base_url=sandbox.base_url)
    first.payouts.list()
    second.payouts.list()
    (thread,) = loop_threads()
    first.close()
    assert loop_threads() == [thread]
    second.close()
    assert loop_threads() == []


def test_first_calls_of_many_threads_take_one_lease(sandbox: Sandbox) -> None:
    client = Payments(sandbox.api_key, base_url=sandbox.base_url)
    together = threading.Barrier(16)

    def read(_: int) -> int:
        together.wait(300)
        return len(client.payouts.list())

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(read, range(16))) == [0] * 16
    client.close()
    assert loop_threads() == []


class Reluctant:
    """A transport that answers only some time after it was closed."""

    def __init__(self) -> None:
        self.flying = threading.Event()
        self._closed = asyncio.Event()

    async def send(self, request: HTTPRequest) -> HTTPResponse:
        request.sent = True
        self.flying.set()
        await self._closed.wait()
        for _ in range(1000):
            await asyncio.sleep(0)
        return EMPTY_PAGE

    async def aclose(self) -> None:
        self._closed.set()


def test_closing_lets_calls_of_other_threads_come_to_their_end() -> None:
    transport = Reluctant()
    client = Payments(KEY, base_url=ADDRESS, transport=transport)
    with ThreadPoolExecutor(1) as pool:
        page = pool.submit(client.payouts.list)
        assert transport.flying.wait(300)
        client.close()
        assert loop_threads() == []
        assert len(page.result()) == 0
