"""A cancelled call, and one whose client is closed: its grants, its connection, and what it says of money."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import pytest_asyncio

from payments_async import APIConnectionError, AsyncPayments, OutcomeUnknown, RateLimits, events
from payments_sync import Payments
from tests.conftest import BASE_URL, KEY
from tests.support.motion import PAYOUT, payout_answer, play, refusal
from tests.support.patience import until
from tests.support.rawserver import RawServer, Step
from tests.support.scripted import SilentTransport, lost
from tests.support.surfaces import error_of

IN_DOUBT = (
    "payouts.create was cancelled after it had been sent, and may have been carried out: "
    "its idempotency key is key-00001"
)


def client_on(**options: Any) -> AsyncPayments:
    return AsyncPayments(**{"api_key": KEY, "base_url": BASE_URL, **options})


@pytest.fixture
def heard() -> list[Any]:
    return []


def cancelled(heard: list[Any]) -> list[events.CallCancelled]:
    return [event for event in heard if isinstance(event, events.CallCancelled)]


@pytest.fixture
def silent(server: RawServer) -> RawServer:
    """A service that does not answer."""
    server.scripts["/v1/payouts"] = [Step.HANG]
    return server


@pytest_asyncio.fixture
async def client(silent: RawServer, heard: list[Any]) -> AsyncIterator[AsyncPayments]:
    async with client_on(base_url=silent.url("/v1"), on_event=heard.append) as client:
        yield client


async def cut_off(server: RawServer, call: Coroutine[Any, Any, Any]) -> asyncio.CancelledError:
    task = asyncio.create_task(call)
    await asyncio.to_thread(server.arrivals.get, timeout=300)
    return await end(task)


async def end(task: asyncio.Task[Any]) -> asyncio.CancelledError:
    task.cancel()
    return await error_of(asyncio.CancelledError, task)


def outcome(stopped: BaseException) -> OutcomeUnknown | None:
    found = getattr(stopped, "outcome", None)
    assert found is None or isinstance(found, OutcomeUnknown)
    return found


async def test_a_creation_cancelled_in_line_leaves_no_trace(
    heard: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    played = play(client_on, payout_answer(), limits=RateLimits(writes=1), on_event=heard.append)
    await played.client.payouts.create(**PAYOUT)
    waiting = asyncio.create_task(played.client.payouts.create(**PAYOUT))
    await asyncio.sleep(0)
    assert outcome(await end(waiting)) is None
    assert (len(played.transport.requests), played.client.limits_snapshot()["write"].used) == (1, 1)
    (event,) = cancelled(heard)
    assert (event.operation, event.effect, event.attempt) == ("payouts.create", "none", 0)
    assert caplog.records == []


async def test_the_narrow_grant_is_given_back_when_the_wide_limiter_is_not_passed() -> None:
    limits = RateLimits(reads=1, refund_availability=5)
    played = play(client_on, refusal(404), limits=limits)
    with pytest.raises(Exception, match="404"):
        await played.client.payment_intents.refund_availability("pi_1")
    waiting = asyncio.create_task(played.client.payment_intents.refund_availability("pi_1"))
    await asyncio.sleep(0)
    assert played.client.limits_snapshot()["refund_availability"].used == 2
    await end(waiting)
    assert played.client.limits_snapshot()["refund_availability"].used == 1


async def test_before_anything_was_sent_a_cancelled_creation_had_no_effect(heard: list[Any]) -> None:
    client = client_on(transport=SilentTransport(sends=False), on_event=heard.append)
    task = asyncio.create_task(client.payouts.create(**PAYOUT))
    await until(lambda: heard)
    assert outcome(await end(task)) is None
    assert client.limits_snapshot()["write"].used == 0
    assert cancelled(heard)[0].effect == "none"


async def test_a_listener_that_stops_the_program_leaves_no_grant_behind() -> None:
    class Stop(BaseException):
        """Not for anybody to catch."""

    def stop(event: events.Event) -> None:
        raise Stop

    client = play(client_on, payout_answer(), on_event=stop).client
    with pytest.raises(Stop):
        await client.payouts.create(**PAYOUT)
    assert client.limits_snapshot()["write"].used == 0


async def test_after_it_was_sent_a_cancelled_creation_carries_its_outcome_and_is_logged_with_its_key(
    server: RawServer, client: AsyncPayments, heard: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    stopped = await cut_off(server, client.payouts.create(**PAYOUT, idempotency_key="key-00001"))
    found = outcome(stopped)
    assert found is not None
    assert (found.effect, found.reference, found.idempotency_key) == ("unknown", "r-1", "key-00001")
    assert [(a.verdict, a.reason) for a in found.attempts] == [("in_doubt", "cancelled")]
    (event,) = cancelled(heard)
    assert (event.effect, event.attempt, event.idempotency_key) == ("unknown", 1, "key-00001")
    told = [(record.name, record.levelname, record.getMessage()) for record in caplog.records]
    assert told == [("payments", "WARNING", IN_DOUBT)]
    assert client.limits_snapshot()["write"].used == 1, "it counts for another minute"


async def test_a_cancelled_read_is_not_told(
    server: RawServer, client: AsyncPayments, caplog: pytest.LogCaptureFixture
) -> None:
    assert outcome(await cut_off(server, client.payouts.list())) is None
    assert caplog.records == []


async def test_a_listener_that_stops_the_program_has_the_outcome(caplog: pytest.LogCaptureFixture) -> None:
    def stop(event: events.Event) -> None:
        if isinstance(event, events.RequestSent) and event.attempt == 2:
            raise KeyboardInterrupt

    client = play(client_on, lost(), payout_answer(), on_event=stop).client
    stopped = await error_of(KeyboardInterrupt, client.payouts.create(**PAYOUT, idempotency_key="key-00001"))
    found = outcome(stopped)
    assert found is not None
    assert found.attempts[0].verdict == "in_doubt"
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [IN_DOUBT]


@pytest.mark.parametrize("moment", [events.RetryScheduled, events.GateClosed])
async def test_a_doubt_goes_with_a_cancelled_wait(heard: list[Any], moment: type[Any]) -> None:
    script = (lost(), refusal(429, {"Retry-After": "60"}), payout_answer())
    played = play(client_on, *script, on_event=heard.append)
    task = asyncio.create_task(played.client.payouts.create(**PAYOUT))
    await until(lambda: any(isinstance(event, moment) for event in heard))
    found = outcome(await end(task))
    assert found is not None
    assert found.attempts[0].verdict == "in_doubt"
    assert cancelled(heard)[0].effect == "unknown"


# Closed


async def arrived(server: RawServer) -> None:
    assert await asyncio.to_thread(server.arrivals.get, timeout=300) == "/v1/payouts"


async def test_a_payout_that_was_sent_is_in_doubt_and_not_sent_again(silent: RawServer) -> None:
    async with AsyncPayments(KEY, base_url=silent.url("/v1")) as client:
        call = asyncio.ensure_future(client.payouts.create(**PAYOUT))
        await arrived(silent)
    caught = await error_of(OutcomeUnknown, call)
    assert [(each.reason, each.verdict) for each in caught.attempts] == [("closed", "in_doubt")]
    assert len(silent.requests) == 1


async def test_a_payout_that_waited_for_a_connection_was_never_sent(silent: RawServer) -> None:
    async with AsyncPayments(KEY, base_url=silent.url("/v1"), max_connections=1) as client:
        first = asyncio.ensure_future(client.payouts.list())
        await arrived(silent)
        second = asyncio.ensure_future(client.payouts.create(**PAYOUT))
        await asyncio.sleep(0)
    for call in (first, second):
        caught = await error_of(APIConnectionError, call, match="end all calls before")
        assert (caught.kind, caught.effect) == ("closed", "none")
    assert len(silent.requests) == 1


def test_a_blocking_payout_is_not_sent_again_after_another_thread_closed(silent: RawServer) -> None:
    with ThreadPoolExecutor(1) as threads:
        with Payments(KEY, base_url=silent.url("/v1")) as client:
            call = threads.submit(client.payouts.create, **PAYOUT)
            assert silent.arrivals.get(timeout=300) == "/v1/payouts"
        with pytest.raises(OutcomeUnknown):
            call.result(60)
    assert len(silent.requests) == 1
