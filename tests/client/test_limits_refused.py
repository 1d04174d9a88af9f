"""What one 429 does to everybody else of its limit, and to nobody of another (Errors, rule 1)."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from payments_async import RateLimitedError, RateLimits
from payments_async.sandbox import Sandbox, SandboxLimits, VirtualClock
from tests.support.jumping import JumpingRuntime
from tests.support.motion import PAYOUT, jumping, payout_answer, play, refusal
from tests.support.scripted import EMPTY_PAGE
from tests.support.surfaces import Connect

SYNCED = payout_answer(200, id=None)


class Crowded:
    """Refuses the first `refused` requests, and notes when each came and how many were under way with it."""

    def __init__(self, runtime: JumpingRuntime, refused: int) -> None:
        self.runtime = runtime
        self.refused = refused
        self.arrivals: list[tuple[float, int]] = []
        self.under_way = 0

    async def send(self, request: Any) -> Any:
        request.sent = True
        self.under_way += 1
        self.arrivals.append((self.runtime.monotonic(), self.under_way))
        number = len(self.arrivals)
        await self.runtime.sleep(1.0)
        self.under_way -= 1
        return refusal(429, {"Retry-After": "10"}) if number <= self.refused else EMPTY_PAGE

    async def aclose(self) -> None:
        """Nothing is open."""


async def test_a_429_holds_back_every_caller_and_lets_one_probe_go_first(connect: Connect) -> None:
    runtime = JumpingRuntime()
    service = Crowded(runtime, refused=1)
    client = connect(transport=service, runtime=runtime)
    first = asyncio.create_task(client.payouts.list())
    while not service.arrivals:  # noqa: ASYNC110 - the blocking client's calls are on threads
        await asyncio.sleep(0)
    await first
    crowd = [client.payouts.list() for _ in range(8)]
    await asyncio.gather(*crowd)
    assert service.arrivals[1][0] >= 11.0
    assert [under_way for _, under_way in service.arrivals[:2]] == [1, 1]


async def test_while_the_probe_is_out_nobody_else_goes(connect: Connect) -> None:
    runtime = JumpingRuntime()
    service = Crowded(runtime, refused=9)
    client = connect(transport=service, runtime=runtime, max_retries=9)
    await asyncio.gather(*(client.payouts.list() for _ in range(8)))
    refused = [moment for moment, _ in service.arrivals[:9]]
    later = service.arrivals[8:]
    assert later[0][1] == 1, "the probe went alone"
    assert later[0][0] >= refused[0] + 11.0
    assert later[1][0] >= later[0][0] + 11.0, "it was refused, and so everybody waited once more"
    assert later[1][1] == 1
    assert all(moment >= later[1][0] + 1.0 for moment, _ in later[2:])


async def test_a_429_of_one_class_does_not_touch_the_others(connect: Connect) -> None:
    played = play(connect, refusal(429, {"Retry-After": "60"}), payout_answer(), max_retries=0)
    with pytest.raises(RateLimitedError):
        await played.client.payouts.list()
    await played.client.payouts.create(**PAYOUT)
    assert played.runtime.monotonic() == 0.0
    closed = {kind for kind, part in played.client.limits_snapshot().items() if part.closed_for}
    assert closed == {"read"}


@pytest.mark.parametrize(("longest", "closed_for"), [(90.0, 90.0), (5_000.0, 3_600.0)])
async def test_a_retry_after_beyond_an_hour_is_a_mistake_and_closes_the_limit_no_longer_than_a_caller_waits(
    connect: Connect, longest: float, closed_for: float
) -> None:
    absurd = refusal(429, {"Retry-After": "1000000000"})
    played = play(connect, absurd, payout_answer(), max_retry_after=longest)
    with pytest.raises(RateLimitedError) as caught:
        await played.client.payouts.create(**PAYOUT)
    assert caught.value.retry_after == 1e9
    assert str(caught.value).endswith("over the rate limit: wait"), "for no time that cannot be meant"
    await played.client.payouts.create(**PAYOUT)
    assert closed_for <= played.runtime.monotonic() < closed_for + 2


async def test_a_429_about_refund_availability_leaves_the_other_reads_alone(connect: Connect) -> None:
    played = play(connect, refusal(429, {"Retry-After": "60"}), EMPTY_PAGE, max_retries=0)
    with pytest.raises(RateLimitedError):
        await played.client.payment_intents.refund_availability("pi_1")
    await played.client.payouts.list()
    assert played.runtime.monotonic() == 0.0
    closed = {kind for kind, part in played.client.limits_snapshot().items() if part.closed_for}
    assert closed == {"refund_availability"}


async def test_a_live_operations_429_closes_its_record_first(connect: Connect) -> None:
    played = play(connect, refusal(429, {"Retry-After": "60"}), SYNCED, max_retries=0)
    with pytest.raises(RateLimitedError):
        await played.client.payouts.sync("po_1")
    await played.client.payouts.sync("po_2")
    assert played.runtime.monotonic() == 0.0
    await played.client.payouts.sync("po_1")
    assert played.runtime.monotonic() > 60.0


async def test_a_second_records_429_closes_the_live_operations_altogether(connect: Connect) -> None:
    refused = refusal(429, {"Retry-After": "60"})
    played = play(connect, refused, refused, SYNCED, max_retries=0)
    for record in ("po_1", "po_2"):
        with pytest.raises(RateLimitedError):
            await played.client.payouts.sync(record)
    await played.client.payouts.sync("po_3")
    assert played.runtime.monotonic() > 60.0


async def test_a_replayed_429_is_old_news_and_closes_nothing(connect: Connect) -> None:
    headers = {"Retry-After": "60", "X-Idempotent-Replayed": "true"}
    played = play(connect, refusal(429, headers), payout_answer(), max_retries=0)
    with pytest.raises(Exception, match="no definite answer"):
        await played.client.payouts.create(**PAYOUT)
    await played.client.payouts.create(**PAYOUT)
    assert played.runtime.monotonic() == 0.0


@pytest.mark.fact(
    "error.429", "error.429.header-limit", "error.429.header-remaining", "error.429.header-retry-after"
)
async def test_a_429_of_the_service_is_told_with_its_figures(connect: Connect) -> None:
    with Sandbox(limits=SandboxLimits(reads=2), clock=VirtualClock.frozen()) as sandbox:
        client = connect(sandbox, max_retries=0)
        for _ in range(2):
            await client.payouts.list()
        with pytest.raises(RateLimitedError) as caught:
            await client.payouts.list()
    error = caught.value
    assert (error.status, error.limit, error.remaining, error.retry_after) == (429, 2, 0, 60.0)
    assert isinstance(error.message, str)
    assert (error.effect, error.attempts[0].verdict) == ("none", "not_executed")


@pytest.mark.fact("error.429.waits-retry-after")
@pytest.mark.parametrize("profile", ["observed", "hostile"])
async def test_the_services_own_429_is_waited_out_unnoticed(connect: Connect, profile: str) -> None:
    limits = SandboxLimits(writes=3, window="sliding")
    # The present time: a Retry-After that is a date counts from the HTTP server's own Date.
    clock = VirtualClock.frozen(time.time())
    with Sandbox(profile=profile, limits=limits, clock=clock) as sandbox:
        client = jumping(connect, sandbox, limits=RateLimits(writes=1_000))
        for number in range(5):
            await client.payouts.create(**{**PAYOUT, "reference": f"r-{number}"})
        assert len(sandbox.books.payouts()) == 5
        refused = [index for index, request in enumerate(sandbox.requests) if request.status == 429]
        assert len(refused) == 1
        (index,) = refused
        # A date has no fractions of a second.
        assert sandbox.requests[index + 1].at - sandbox.requests[index].at >= 59.0
