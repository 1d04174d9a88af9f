"""Threads: many on one client, one that runs an event loop, and threads replaced by greenlets."""

from __future__ import annotations

import _thread
import asyncio
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest

from payments_async.errors import ConfigurationError
from payments_async.events import Event
from payments_async.sandbox import Sandbox
from payments_sync import Payments
from tests.support.scripted import EMPTY_PAGE, HTTPRequest, HTTPResponse
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


def test_threads_make_use_and_close_clients_of_other_keys_at_once(sandbox: Sandbox) -> None:
    client = Payments(sandbox.api_key, base_url=sandbox.base_url)
    keys = [sandbox.new_key() for _ in range(16)]
    made = [client.with_options(api_key=key) for key in keys]  # here, and closed elsewhere
    client.payouts.list()
    together = threading.Barrier(16)

    def pay(number: int) -> None:
        together.wait(300)
        for each in (made[number], client.with_options(api_key=keys[number])) * 2:
            each.payouts.create(**payout(None))
            each.close()

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(pay, range(16)))
        assert len(loop_threads()) == 1
        pool.submit(client.close).result()
    assert loop_threads() == []
    assert [len(sandbox._core.world.tenants[key].payouts) for key in keys] == [4] * 16


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


def test_inside_a_running_loop_it_works_and_warns_once(
    client: Payments, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("payments_sync._event_loop._warned", False)

    async def cell() -> list[str | None]:
        client.payouts.create(**payout("r-1"))
        client.payouts.create(**payout("r-2"))
        return [one.reference for one in client.payouts.iterate()]

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert asyncio.run(cell()) == ["r-2", "r-1"]
    (warning,) = caught
    assert warning.category is RuntimeWarning
    assert "await AsyncPayments" in str(warning.message)
    assert warning.filename == __file__


def test_called_on_its_own_loop_it_raises_instead_of_waiting_for_itself(sandbox: Sandbox) -> None:
    refused: list[str] = []

    def on_event(_: Event) -> None:
        calls = (
            client.payouts.list,
            client.close,
            lambda: list(client.payouts.iterate()),
            other.payouts.list,
        )
        for call in calls:
            with pytest.raises(ConfigurationError) as failure:
                call()
            assert failure.value.effect == "none"
            refused.append(str(failure.value))

    other = Payments(sandbox.api_key, base_url=sandbox.base_url)
    client = Payments(sandbox.api_key, base_url=sandbox.base_url, on_event=on_event)
    assert len(client.payouts.list()) == 0
    client.close()
    assert len(refused) == 4 * 4, "four calls at each of the four events of a call"
    assert "its own event loop" in refused[0]


@pytest.mark.parametrize("library", ["gevent", "eventlet"])
def test_the_refusal_examines_who_starts_threads_when_the_first_call_is_made(
    library: str, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start_new_thread() -> None:
        """Stands in for one that starts a greenlet."""

    start_new_thread.__module__ = f"{library}.thread"
    with Payments(sandbox.api_key, base_url=sandbox.base_url) as client:
        with monkeypatch.context() as patched:
            patched.setattr(_thread, "start_new_thread", start_new_thread)
            with pytest.raises(ConfigurationError, match=f"^{library} has replaced") as refused:
                client.payouts.list()
        assert refused.value.effect == "none"
        assert len(client.payouts.list()) == 0
