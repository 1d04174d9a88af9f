"""What a call tells while it goes on, and that nobody who listens can break it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from payments_async import OutcomeUnknown, RateLimits, events
from payments_async.sandbox import Sandbox
from tests.support.motion import INTENT, PAYOUT, REPLAYED, payout_answer, play, refusal
from tests.support.scripted import answer, lost

Connect = Callable[..., Any]


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
        *("RequestSent", "GateClosed", "AttemptEnded", "RetryScheduled"),
        *("Throttled", "RequestSent", "AttemptEnded", "RetryScheduled"),
        *("RequestSent", "AttemptEnded", "Replayed"),
    ]
    assert {event.operation for event in heard} == {"payouts.create"}
    assert [event.attempt for event in heard] == [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3]
    sent, closed, ended, again, throttled = heard[:5]
    assert (sent.method, sent.idempotency_key) == ("POST", "key-00001")
    assert 7.0 < closed.seconds <= 8.0
    assert (ended.verdict, ended.reason, ended.status, ended.elapsed) == ("not_executed", "429", 429, 0.0)
    assert (again.delay, again.reason) == (0.0, "429")
    assert throttled.waited == pytest.approx(closed.seconds, abs=0.01)
    assert (heard[6].verdict, heard[6].reason, heard[6].status) == ("in_doubt", "timeout", None)
    assert 0.0 <= heard[7].delay <= 1.0
    assert heard[-1].idempotency_key == "key-00001"


async def test_a_read_tells_no_key(connect: Connect) -> None:
    heard: list[Any] = []
    page = answer(200, {"data": [], "pagination": {}})
    await play(connect, page, on_event=heard.append).client.payouts.list()
    assert kinds(heard) == ["RequestSent", "AttemptEnded"]
    assert (heard[0].method, heard[0].idempotency_key) == ("GET", None)


async def test_waiting_for_the_rate_limit_is_told(connect: Connect) -> None:
    heard: list[Any] = []
    played = play(connect, payout_answer(), limits=RateLimits(writes=1), on_event=heard.append)
    for _ in range(2):
        await played.client.payouts.create(**PAYOUT)
    (throttled,) = [event for event in heard if isinstance(event, events.Throttled)]
    assert 60.0 <= throttled.waited <= 60.1
    assert throttled.attempt == 1


async def test_a_listener_that_raises_breaks_nothing(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(event: events.Event) -> None:
        raise ZeroDivisionError

    played = play(connect, lost(), payout_answer(), on_event=broken)
    assert (await played.client.payouts.create(**PAYOUT)).id == "po_1"
    assert {record.message for record in caplog.records if record.levelno == logging.WARNING} == {
        "on_event raised ZeroDivisionError; the call continues"
    }


async def test_a_sibling_has_a_listener_of_its_own(connect: Connect) -> None:
    first: list[Any] = []
    second: list[Any] = []
    played = play(connect, payout_answer(), on_event=first.append)
    await played.client.with_options(on_event=second.append).payouts.create(**PAYOUT)
    assert (first, kinds(second)) == ([], ["RequestSent", "AttemptEnded"])


async def test_events_go_to_the_log_and_hold_no_secret_and_no_account(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    played = play(connect, lost(), max_retries=1, api_key="sk_sandbox_topsecret")
    with caplog.at_level(logging.DEBUG, logger="payments"), pytest.raises(OutcomeUnknown):
        await played.client.payouts.create(**PAYOUT)
    assert caplog.text.count("RequestSent") == 2
    assert "topsecret" not in caplog.text
    assert "90112233" not in caplog.text


async def test_nothing_is_logged_unless_somebody_listens(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="payments"):
        await play(connect, payout_answer()).client.payouts.create(**PAYOUT)
    assert [record for record in caplog.records if record.name == "payments"] == []


@pytest.mark.parametrize(("seconds", "level"), [("9", "DEBUG"), ("10", "WARNING"), ("60", "WARNING")])
async def test_a_gate_that_closes_for_long_is_a_warning(
    connect: Connect, caplog: pytest.LogCaptureFixture, seconds: str, level: str
) -> None:
    played = play(connect, refusal(429, {"Retry-After": seconds}), payout_answer())
    with caplog.at_level(logging.WARNING, logger="payments"):
        await played.client.payouts.create(**PAYOUT)
    told = [record.getMessage() for record in caplog.records if record.name == "payments"]
    assert len(told) == (level == "WARNING")
    assert all(text.startswith("GateClosed(operation='payouts.create', attempt=1") for text in told)


def test_events_cannot_be_changed() -> None:
    event = events.GateClosed("payouts.create", 1, 5.0)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        event.seconds = 6.0  # type: ignore[misc] # the point


@pytest.mark.fact("events.webhook-url-optional")
@pytest.mark.parametrize("url", [None, "http://127.0.0.1:9/hook"])
async def test_creations_take_a_webhook_url_or_none(
    connect: Connect, sandbox: Sandbox, url: str | None
) -> None:
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

    handler, before = Full(), events.logger.level
    events.logger.addHandler(handler)
    events.logger.setLevel(logging.DEBUG)
    try:
        played = play(connect, payout_answer(), on_event=print)
        assert (await played.client.payouts.create(**PAYOUT)).id
    finally:
        events.logger.removeHandler(handler)
        events.logger.setLevel(before)
