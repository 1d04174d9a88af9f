"""The rate limits, kept by every call, and what one 429 does to the others (Rate limits; Errors, rule 1)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from payments_async import LimitReached, PaymentsError, RateLimitedError, RateLimits
from payments_async.sandbox import Sandbox, SandboxLimits, VirtualClock
from tests.support.jumping import EPOCH
from tests.support.motion import INTENT, PAYOUT, jumping, payout_answer, play, refusal
from tests.support.scripted import EMPTY_PAGE, ScriptedTransport, answer
from tests.support.surfaces import Connect, error_of, make_client

FIGURES = {"write": 60_000, "read": 10_000, "diagnostic": 6_000, "refund_availability": 100}
CALLS: dict[str, tuple[Callable[[Any], Any], set[str]]] = {
    "checkouts.create": (lambda c: c.checkouts.create(**INTENT), {"write"}),
    "payment_intents.create": (lambda c: c.payment_intents.create(**INTENT), {"write"}),
    "payouts.create": (lambda c: c.payouts.create(**PAYOUT), {"write"}),
    "checkouts.retrieve": (lambda c: c.checkouts.retrieve("cs_1"), {"read"}),
    "payment_intents.list": (lambda c: c.payment_intents.list(), {"read"}),
    "retrieve_attempt": (lambda c: c.payment_intents.retrieve_attempt("pi_1", "pa_1"), {"read"}),
    "payouts.list": (lambda c: c.payouts.list(), {"read"}),
    "methods.status": (lambda c: c.methods.status("mtn_bj", "BJ"), {"read"}),
    "refund_availability": (
        lambda c: c.payment_intents.refund_availability("pi_1"),
        {"read", "refund_availability"},
    ),
    "requery": (lambda c: c.payment_intents.requery("pi_1"), {"diagnostic"}),
    "inspect_attempt": (lambda c: c.payment_intents.inspect_attempt("pi_1", "pa_1"), {"diagnostic"}),
    "sync": (lambda c: c.payouts.sync("po_1"), {"diagnostic"}),
    "inspect": (lambda c: c.payouts.inspect("po_1"), {"diagnostic"}),
}
FACTS = {kind: f"limit.{kind}s" for kind in ("write", "read", "diagnostic")}
FACTS["refund_availability"] = "limit.refund-availability"


@pytest.mark.parametrize(
    ("call", "classes"),
    [
        pytest.param(*row, id=name, marks=pytest.mark.fact(*(FACTS[kind] for kind in sorted(row[1]))))
        for name, row in CALLS.items()
    ],
)
async def test_every_operation_draws_on_the_budget_the_interface_names(
    connect: Connect, call: Any, classes: set[str]
) -> None:
    client = play(connect, refusal(404)).client
    with pytest.raises(PaymentsError):
        await call(client)
    snapshot = client.limits_snapshot()
    assert {kind: part.limit for kind, part in snapshot.items()} == FIGURES
    assert {kind for kind, part in snapshot.items() if part.used} == classes


@pytest.mark.fact("limit.one-minute-windows", "limit.writes.shared")
async def test_creations_of_every_kind_share_the_minutes_budget(connect: Connect) -> None:
    limits = SandboxLimits(writes=3, window="sliding")
    with Sandbox(limits=limits, clock=VirtualClock.frozen()) as sandbox:
        client = jumping(connect, sandbox, limits=RateLimits(writes=3))
        for _ in range(3):
            await client.checkouts.create(**INTENT)
            await client.payment_intents.create(**INTENT)
            await client.payouts.create(**{**PAYOUT, "reference": None})
        moments = [request.at for request in sandbox.requests]
        assert {request.status for request in sandbox.requests} == {201}
    assert 120.0 <= moments[-1] - moments[0] <= 125.0
    assert all(later - earlier >= 60.0 for earlier, later in zip(moments, moments[3:], strict=False))


@pytest.mark.fact("limit.diagnostics-per-record")
async def test_the_thirteenth_live_operation_on_a_record_waits_and_other_records_do_not(
    connect: Connect,
) -> None:
    played = play(connect, payout_answer(200, id=None))
    for _ in range(6):
        await played.client.payouts.sync("po_1")
        await played.client.payouts.inspect("po_1")
    assert played.runtime.monotonic() == 0.0
    await played.client.payouts.sync("po_2")
    assert played.runtime.monotonic() == 0.0
    await played.client.payouts.sync("po_1")
    assert played.runtime.monotonic() >= 60.0


@pytest.mark.fact("limit.refund-availability")
async def test_refund_availability_is_paced_at_a_hundred_a_minute_unless_raised(connect: Connect) -> None:
    page = answer(200, {"data": {"is_refundable": False}})
    for limits, longest in [(None, 70.0), (RateLimits(refund_availability=10_000), 0.0)]:
        played = play(connect, page, limits=limits)
        for _ in range(101):
            await played.client.payment_intents.refund_availability("pi_1")
        assert longest - 10.0 <= played.runtime.monotonic() <= longest


async def test_an_async_and_a_blocking_client_of_one_key_share_its_limits(connect: Connect) -> None:
    options = {"api_key": "sk_sandbox_both", "base_url": "http://127.0.0.1:9/v1", "on_limit": "raise"}
    limits, transport = RateLimits(writes=2), play(connect, payout_answer()).transport
    clients = [make_client(face, **options, limits=limits, transport=transport) for face in ("async", "sync")]
    for client in clients:
        await client.payouts.create(**PAYOUT)
    for client in clients:
        with pytest.raises(LimitReached):
            await client.payouts.create(**PAYOUT)
        assert client.limits_snapshot()["write"].used == 2
        await client.aclose()


async def test_raising_instead_of_waiting_sends_nothing(connect: Connect) -> None:
    played = play(connect, payout_answer(), limits=RateLimits(writes=1), on_limit="raise")
    await played.client.payouts.create(**PAYOUT)
    played.runtime.advance(10.0)
    with pytest.raises(LimitReached) as caught:
        await played.client.payouts.create(**PAYOUT)
    assert caught.value.retry_after == pytest.approx(50.0, abs=0.1)
    assert (caught.value.effect, caught.value.attempts) == ("none", ())
    assert len(played.transport.requests) == 1
    played.runtime.advance(caught.value.retry_after)
    await played.client.payouts.create(**PAYOUT)


async def test_raising_instead_of_waiting_holds_for_the_services_429_too(connect: Connect) -> None:
    played = play(connect, refusal(429, {"Retry-After": "4"}), payout_answer())
    client = played.client.with_options(on_limit="raise")
    with pytest.raises(RateLimitedError) as refused:
        await client.payouts.create(**PAYOUT)
    assert refused.value.retry_after == 4.0
    with pytest.raises(LimitReached) as closed:
        await client.payouts.create(**PAYOUT)
    assert 4.0 < closed.value.retry_after <= 5.0


async def test_a_snapshot_says_what_is_used_and_what_is_closed(connect: Connect) -> None:
    played = play(connect, refusal(429, {"Retry-After": "8"}), limits=RateLimits(writes=30), max_retries=0)
    before = played.client.limits_snapshot()["write"]
    assert (before.limit, before.used, before.available, before.closed_for) == (30, 0, 12, 0.0)
    with pytest.raises(RateLimitedError):
        await played.client.payouts.create(**PAYOUT)
    after = played.client.limits_snapshot()["write"]
    assert (after.used, after.available) == (1, 0)
    assert 8.0 < after.closed_for <= 9.0


async def test_clients_of_one_service_share_limits_however_its_address_is_written(connect: Connect) -> None:
    spellings = ("https://pay.test/v1", "https://Pay.test.:443/v1/", "https://pay.test:/v1")
    transport = ScriptedTransport(payout_answer())
    clients = [connect(transport=transport, base_url=spelling) for spelling in spellings]
    for client in clients:
        await client.payouts.create(**PAYOUT)
    assert [client.limits_snapshot()["write"].used for client in clients] == [3, 3, 3]


SYNCED = payout_answer(200, id=None)


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


async def test_a_live_operations_429_closes_its_record_and_another_records_closes_them_all(
    connect: Connect,
) -> None:
    refused = refusal(429, {"Retry-After": "60"})
    played = play(connect, refused, SYNCED, SYNCED, refused, refused, SYNCED, max_retries=0)
    with pytest.raises(RateLimitedError):
        await played.client.payouts.sync("po_1")
    await played.client.payouts.sync("po_2")
    assert played.runtime.monotonic() == 0.0
    await played.client.payouts.sync("po_1")
    assert (opened := played.runtime.monotonic()) > 60.0
    for record in ("po_3", "po_4"):
        with pytest.raises(RateLimitedError):
            await played.client.payouts.sync(record)
    await played.client.payouts.sync("po_5")
    assert played.runtime.monotonic() > opened + 60.0


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


# How long one 429 makes anybody wait


YEAR = 365 * 24 * 3600


def http_date(seconds: float) -> str:
    return (EPOCH + timedelta(seconds=seconds)).strftime("%a, %d %b %Y %H:%M:%S GMT")


WAITS: list[tuple[dict[str, str], float, float]] = [
    ({"Retry-After": "0"}, 0.0, 0.2),
    ({"Retry-After": "7"}, 7.0, 8.0),
    ({"Retry-After": " 1.5 "}, 1.5, 1.9),
    ({"Retry-After": "120"}, 120.0, 121.0),
    ({"Retry-After": http_date(30)}, 30.0, 31.0),
    ({"Retry-After": http_date(90), "Date": http_date(60)}, 30.0, 31.0),
    ({"Retry-After": http_date(30).replace("GMT", "-0000")}, 30.0, 31.0),
    ({"Retry-After": http_date(30).removesuffix(" GMT")}, 30.0, 31.0),
    ({"Retry-After": http_date(-YEAR)}, 0.0, 0.2),
    *(
        ({"Retry-After": unreadable}, 0.5, 1.0)
        for unreadable in ("", "-5", "٣", "1e3", "9" * 21, "Mon, 01 Jan 0001 00:00:00 +2459", "a" * 100_000)
    ),
    ({}, 0.5, 1.0),
]


@pytest.mark.parametrize(("headers", "least", "most"), WAITS)
async def test_a_429_makes_the_client_wait_as_long_as_it_says_and_no_longer(
    connect: Connect, headers: dict[str, str], least: float, most: float
) -> None:
    played = play(connect, refusal(429, headers), SYNCED, seed=3)
    assert await played.client.payouts.sync("po_1")
    assert len(played.transport.requests) == 2
    assert least <= played.runtime.monotonic() <= most


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [("121", 121.0), ("31536000", YEAR), ("1795305607000", 1795305607000.0), (http_date(YEAR), YEAR)],
)
async def test_too_long_a_wait_is_refused_at_once(connect: Connect, asked: str, seconds: float) -> None:
    played = play(connect, refusal(429, {"Retry-After": asked}))
    caught = await error_of(RateLimitedError, played.client.payouts.sync("po_1"))
    assert (caught.retry_after, caught.effect) == (seconds, "none")
    assert (len(played.transport.requests), played.runtime.monotonic()) == (1, 0.0)


async def test_an_hour_of_waiting_closes_the_limit_and_holds_no_caller_up(connect: Connect) -> None:
    played = play(connect, refusal(429, {"Retry-After": "3600"}), SYNCED, max_retry_after=60.0)
    with pytest.raises(RateLimitedError):
        await played.client.payouts.sync("po_1")
    caught = await error_of(
        LimitReached, played.client.payouts.sync("po_1"), match="429 closed the rate limit"
    )
    assert 3600.0 <= caught.retry_after <= 3601.0
    assert (len(played.transport.requests), played.runtime.monotonic()) == (1, 0.0)
    played.runtime.advance(caught.retry_after)
    assert await played.client.payouts.sync("po_1")


async def test_one_clients_patience_does_not_shorten_what_the_service_asked_of_all(connect: Connect) -> None:
    played = play(connect, refusal(429, {"Retry-After": "60"}), SYNCED)
    with pytest.raises(RateLimitedError):
        await played.client.with_options(max_retry_after=1.0).payouts.sync("po_1")
    assert await played.client.payouts.sync("po_1")
    assert played.runtime.monotonic() >= 60.0


@pytest.mark.parametrize("surface", ["async"], indirect=True)
async def test_a_caller_in_line_does_not_stay_for_a_gate_that_closes_for_long(connect: Connect) -> None:
    refused = refusal(429, {"Retry-After": "3000"})
    played = play(connect, EMPTY_PAGE, refused, limits=RateLimits(reads=1), max_retries=0)
    await played.client.payouts.list()
    both = (played.client.payouts.list() for _ in range(2))
    first, second = await asyncio.gather(*both, return_exceptions=True)
    assert {type(first), type(second)} == {RateLimitedError, LimitReached}
    assert played.runtime.monotonic() < 300.0
