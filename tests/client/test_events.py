"""What a call and a wait tell while they go on, and that nobody who listens can break a call."""

from __future__ import annotations

import asyncio
import gc
import logging
import re
import tracemalloc
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest

from payments_async import (
    AsyncPayments,
    OutcomeUnknown,
    PaymentsError,
    RateLimits,
    WaitTimeout,
    events,
)
from payments_async.sandbox import Sandbox
from tests.conftest import BASE_URL
from tests.support.limit_stores import Fleet
from tests.support.motion import INTENT, PAYOUT, REPLAYED, listed, payout_answer, play, refusal
from tests.support.scripted import ScriptedTransport, lost
from tests.support.simulated import run_simulated
from tests.support.surfaces import Connect


def kinds(heard: list[events.Event]) -> list[str]:
    return [type(event).__name__ for event in heard]


async def test_a_call_tells_each_step_in_order(connect: Connect) -> None:
    heard: list[Any] = []
    played = play(
        connect,
        refusal(429, {"Retry-After": "7"}),
        lost("timeout"),
        payout_answer(headers=REPLAYED),
        on_event=heard.append,
    )
    await played.client.payouts.create(**PAYOUT, idempotency_key="key-00001")
    assert kinds(heard) == [
        *("CallStarted", "RequestSent", "GateClosed", "AttemptEnded", "RetryScheduled"),
        *("Throttled", "RequestSent", "AttemptEnded", "RetryScheduled"),
        *("RequestSent", "AttemptEnded", "Replayed", "CallEnded"),
    ]
    assert {event.operation for event in heard} == {"payouts.create"}
    assert [event.attempt for event in heard] == [0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]
    begun, sent, closed, ended, again, throttled = heard[:6]
    assert (begun.method, begun.template, begun.base_url) == ("POST", "/payouts", BASE_URL)
    assert (sent.method, sent.idempotency_key) == ("POST", "key-00001")
    assert 7.0 < closed.seconds <= 8.0
    assert (ended.verdict, ended.reason, ended.status, ended.elapsed) == ("not_executed", "429", 429, 0.0)
    assert (again.delay, again.reason) == (0.0, "429")
    assert throttled.waited == pytest.approx(closed.seconds, abs=0.01)
    assert (heard[7].verdict, heard[7].reason, heard[7].status) == ("in_doubt", "timeout", None)
    assert 0.0 <= heard[8].delay <= 1.0
    assert heard[-2].idempotency_key == "key-00001"
    over = heard[-1]
    assert (over.effect, over.error, over.status) == ("happened", None, 201)
    assert over.elapsed == pytest.approx(throttled.waited + heard[8].delay, abs=0.1)


@pytest.mark.parametrize(
    ("script", "error", "effect", "status"),
    [
        ([refusal(404)], "NotFoundError", "none", 404),
        ([lost()], "OutcomeUnknown", "unknown", None),
        ([payout_answer(amount="ten")], "DecodeError", "happened", 201),
    ],
)
async def test_the_end_of_a_call_names_its_error_and_effect(
    connect: Connect, script: list[Any], error: str, effect: str, status: int | None
) -> None:
    heard: list[Any] = []
    played = play(connect, *script, on_event=heard.append, max_retries=0)
    with pytest.raises(PaymentsError):
        await played.client.payouts.create(**PAYOUT)
    assert kinds(heard).count("CallEnded") == 1
    assert (heard[-1].error, heard[-1].effect, heard[-1].status) == (error, effect, status)


async def test_a_raising_listener_breaks_nothing(connect: Connect, caplog: pytest.LogCaptureFixture) -> None:
    def broken(event: events.Event) -> None:
        raise ZeroDivisionError

    played = play(connect, lost(), payout_answer(), on_event=broken)
    assert (await played.client.payouts.create(**PAYOUT)).id == "po_1"
    assert {record.message for record in caplog.records if record.levelno == logging.WARNING} == {
        "on_event raised ZeroDivisionError; the call continues"
    }


async def test_events_are_logged_without_secrets(connect: Connect, caplog: pytest.LogCaptureFixture) -> None:
    played = play(connect, lost(), max_retries=1, api_key="sk_sandbox_topsecret")
    with caplog.at_level(logging.DEBUG, logger="payments"), pytest.raises(OutcomeUnknown):
        await played.client.payouts.create(**PAYOUT)
    assert caplog.text.count("RequestSent") == 2
    fields = [vars(record)["payments"] for record in caplog.records]
    assert [each["event"] for each in fields[:3]] == ["CallStarted", "RequestSent", "AttemptEnded"]
    assert (fields[2]["operation"], fields[2]["reason"], fields[2]["call"]) == (
        "payouts.create",
        "reset",
        fields[0]["call"],
    )
    assert "topsecret" not in caplog.text + str(fields)
    assert "90112233" not in caplog.text


@pytest.mark.parametrize(("seconds", "level"), [("9", "DEBUG"), ("10", "WARNING"), ("25", "WARNING")])
async def test_a_gate_that_closes_for_long_is_a_warning(
    connect: Connect, caplog: pytest.LogCaptureFixture, seconds: str, level: str
) -> None:
    played = play(connect, refusal(429, {"Retry-After": seconds}), payout_answer())
    with caplog.at_level(logging.WARNING, logger="payments"):
        await played.client.payouts.create(**PAYOUT)
    told = [record.getMessage() for record in caplog.records if record.name == "payments"]
    assert len(told) == (level == "WARNING")
    closed = r"payouts\.create: the service answered 429, and calls of its limit wait for \d+ s"
    assert all(re.fullmatch(closed, text) for text in told)


@pytest.mark.fact("events.webhook-url-optional")
@pytest.mark.parametrize("url", [None, "http://127.0.0.1:9/hook"])
async def test_creations_take_a_webhook_url(connect: Connect, sandbox: Sandbox, url: str | None) -> None:
    client = connect(sandbox)
    await client.payouts.create(**PAYOUT, webhook_url=url)
    await client.payment_intents.create(**INTENT, webhook_url=url)
    checkout = await client.checkouts.create(**INTENT, webhook_url=url)
    sandbox.pay(checkout.id)
    sandbox.advance(60)
    assert {delivery.url for delivery in sandbox.deliveries} == ({url} if url else set())


async def test_a_log_handler_that_raises_breaks_nothing(connect: Connect) -> None:
    class Full(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise OSError("no space left")

    logger, handler = logging.getLogger("payments"), Full()
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        played = play(connect, payout_answer(), on_event=print)
        assert (await played.client.payouts.create(**PAYOUT)).id
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


async def second_in_a_minute(client: AsyncPayments) -> None:
    await client.payouts.create(**PAYOUT)
    await client.payouts.create(**{**PAYOUT, "reference": "r-2"})


WAITS: dict[str, tuple[Any, dict[str, Any], Callable[[AsyncPayments], Awaitable[Any]], str]] = {
    "rate limit": (
        payout_answer(),
        {"limits": RateLimits(writes=1), "limit_store": None},
        second_in_a_minute,
        "payouts.create waits for the rate limit",
    ),
    "limit store": (
        payout_answer(),
        {},
        second_in_a_minute,
        "payouts.create waits for the limit store: .*cannot be reached|the limit store cannot be used",
    ),
    "payout": (
        listed({"id": "po_1", "status": "pending"}),
        {"limit_store": None},
        lambda client: client.payouts.wait("po_1", deadline=300.0),
        "the payout po_1 is not final yet",
    ),
}
"""{waited for: the service's answer, options, the call, the log's words}; a limit store is away."""


@pytest.mark.parametrize("what", WAITS)
def test_a_wait_is_in_the_log_every_30_seconds(what: str, caplog: pytest.LogCaptureFixture) -> None:
    said, options, wait, told = WAITS[what]
    times = [0.0]

    async def main() -> None:
        async with Fleet(ScriptedTransport(said), **options) as world:

            class Times(logging.Handler):
                def emit(self, record: logging.LogRecord) -> None:
                    if re.search(told, record.getMessage()):
                        times.append(world.runtime.monotonic())

            logging.getLogger("payments").addHandler(handler := Times())
            world.server.down = None if options else "refused"
            try:
                await wait(world.clients[0])
            except PaymentsError:
                assert world.runtime.monotonic() < 310.0
            finally:
                logging.getLogger("payments").removeHandler(handler)
            times.append(world.runtime.monotonic())

    with caplog.at_level(logging.INFO, "payments"):
        run_simulated(main())
    assert times[-1] > 29.0
    assert max(after - before for before, after in pairwise(times)) <= 32.0


AT_ONCE, ROUNDS = 20, 20


async def test_a_long_wait_leaves_nothing_behind(connect: Connect, caplog: pytest.LogCaptureFixture) -> None:
    played = play(connect, listed())

    async def wait(number: int) -> None:
        with pytest.raises(WaitTimeout):
            await played.client.payouts.wait(f"po_{number}", deadline=40.0)
        caplog.clear()

    held = []
    tracemalloc.start()
    for number in range(2 * ROUNDS):
        await asyncio.gather(*(wait(number * AT_ONCE + each) for each in range(AT_ONCE)))
        played.transport.requests.clear()
        played.runtime.slept.clear()
        gc.collect()
        held.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert held[-1] - held[ROUNDS - 1] < 100 * ROUNDS * AT_ONCE
