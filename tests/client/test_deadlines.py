"""Deadlines cover pacing, attempts and back-off; what may be sent for a time only is withheld after it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from payments_async import APIConnectionError, DeadlineExceeded, OutcomeUnknown, PaymentsError, RateLimits
from payments_async.sandbox import Sandbox, SandboxLimits, VirtualClock
from tests.support.batches import in_process, runtime_of
from tests.support.motion import PAYOUT, Played, payout_answer, play, refusal
from tests.support.scripted import EMPTY_PAGE, lost, unsent
from tests.support.surfaces import Connect, error_of


def slow(connect: Connect, seconds: float, *script: Any, **options: Any) -> Played:
    """A client of a service that takes so long for each step."""

    def taking(step: Any) -> Callable[[Any], Any]:
        def take(request: Any) -> Any:
            played.runtime.advance(seconds)
            return step(request) if callable(step) else step

        return take

    played = play(connect, *map(taking, script), **options)
    return played


@pytest.mark.parametrize("how", ["client", "call", "sibling"])
async def test_a_deadline_ends_the_retries_of_a_read(connect: Connect, how: str) -> None:
    options = {"deadline": 5.0} if how == "client" else {}
    played = slow(connect, 2.0, refusal(503), max_retries=50, **options)
    client = played.client.with_options(deadline=5.0) if how == "sibling" else played.client
    caught = await error_of(
        DeadlineExceeded, client.payouts.list(**({"deadline": 5.0} if how == "call" else {}))
    )
    assert 2 <= len(caught.attempts) <= 3
    assert (caught.effect, caught.__cause__.status) == ("none", 503)
    assert played.runtime.monotonic() < 6.0 + 2.0


async def test_a_back_off_beyond_the_deadline_is_not_begun(connect: Connect) -> None:
    ends = []
    for seed in range(10):
        played = play(connect, unsent(), seed=seed, max_retries=10)
        with pytest.raises(DeadlineExceeded):
            await played.client.payouts.create(**PAYOUT, deadline=2.0)
        ends.append(played.runtime.monotonic())
    assert max(ends) < 2.0


async def test_each_attempt_gets_what_is_left_of_the_deadline(connect: Connect) -> None:
    played = slow(connect, 6.0, lost("timeout"), timeout=10.0, max_retries=50)
    with pytest.raises(OutcomeUnknown):
        await played.client.payouts.create(**PAYOUT, deadline=15.0)
    timeouts = [request.timeout for request in played.transport.requests]
    assert timeouts[0] == 10.0
    assert timeouts[1:] == sorted(timeouts[1:], reverse=True)
    assert all(0 < timeout < 9.0 for timeout in timeouts[1:])


@pytest.mark.parametrize(("options", "timeout"), [({}, 30.0), ({"timeout": 7}, 7)])
async def test_an_attempt_has_a_timeout(connect: Connect, options: Any, timeout: float) -> None:
    played = play(connect, EMPTY_PAGE, **options)
    await played.client.payouts.list()
    await played.client.payouts.list(timeout=3)
    assert [request.timeout for request in played.transport.requests] == [timeout, 3]


async def test_a_deadline_covers_the_wait_for_the_rate_limit(connect: Connect) -> None:
    heard: list[Any] = []
    played = play(connect, payout_answer(), limits=RateLimits(writes=1), on_event=heard.append)
    await played.client.payouts.create(**PAYOUT)
    heard.clear()
    caught = await error_of(DeadlineExceeded, played.client.payouts.create(**PAYOUT, deadline=20.0))
    assert (caught.effect, caught.attempts) == ("none", ())
    assert played.runtime.monotonic() == pytest.approx(20.0, abs=0.1)
    assert len(played.transport.requests) == 1
    assert [type(event).__name__ for event in heard] == ["CallStarted", "Throttled", "CallEnded"]
    assert heard[1].waited == pytest.approx(20, abs=0.1)


BUSY = refusal(429, {"Retry-After": "60"})


@pytest.mark.parametrize(
    ("script", "error", "attempts"),
    [
        ([BUSY], DeadlineExceeded, ["429"]),
        ([lost(), BUSY], OutcomeUnknown, ["reset", "429"]),
        ([lost("timeout")], OutcomeUnknown, ["timeout", "timeout"]),
    ],
    ids=["in the wait after a 429", "in that wait after a doubt", "after something was sent"],
)
async def test_a_call_ends_at_its_deadline_with_what_is_known(
    connect: Connect, script: list[Any], error: type[PaymentsError], attempts: list[str]
) -> None:
    played = slow(connect, 8.0, *script, max_retries=50)
    caught = await error_of(error, played.client.payouts.create(**PAYOUT, deadline=20.0))
    assert [attempt.reason for attempt in caught.attempts][:2] == attempts
    assert len(played.transport.requests) == len(caught.attempts)


async def test_a_clock_that_jumps_past_the_deadline_sends_nothing_more(connect: Connect) -> None:
    """The machine slept: what was scheduled in time wakes up late."""
    played = play(connect, unsent(), payout_answer())
    runtime = played.runtime
    on_time = runtime.sleep

    async def late(seconds: float) -> None:
        await on_time(seconds)
        runtime.advance(3600.0)

    runtime.sleep = late  # type: ignore[method-assign] # this clock oversleeps
    with pytest.raises(DeadlineExceeded):
        await played.client.payouts.create(**PAYOUT, deadline=60.0)
    assert len(played.transport.requests) == 1
    assert played.client.limits_snapshot()["write"].used == 0


async def test_an_answer_that_came_late_still_counts(connect: Connect) -> None:
    played = slow(connect, 3600.0, payout_answer())
    assert (await played.client.payouts.create(**PAYOUT, deadline=60.0)).id == "po_1"


async def test_permission_that_ends_at_the_rate_limiter_withholds_the_request() -> None:
    """A bulk worker's lease can end while its call waits."""
    service = Sandbox(clock=VirtualClock.frozen(), limits=SandboxLimits.off())
    async with in_process(service, limits=RateLimits(writes=1)) as client:
        clock = runtime_of(client)
        until = clock.monotonic() + 2.5
        prepared = [client.payouts.prepare(**{**PAYOUT, "reference": f"r-{n}"}) for n in range(8)]
        options: dict[str, Any] = {"priority": "bulk", "may_send": lambda: clock.monotonic() < until}
        calls = [client._internal.send(each, {}, **options) for each in prepared]
        ended = await asyncio.gather(*calls, return_exceptions=True)
        failures = [error for error in ended if isinstance(error, APIConnectionError)]
        assert 0 < len(failures) < 8
        assert sum(request.operation == "payouts.create" for request in service.requests) == 8 - len(failures)
        for error in failures:
            assert (error.kind, error.effect, error.idempotency_key is None) == ("withheld", "none", False)
            assert [(each.verdict, each.reason) for each in error.attempts] == [("not_sent", "withheld")]
            assert "nothing was sent: send it only while you may" in str(error)
