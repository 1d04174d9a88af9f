"""Headers that are not what they should be, and how long a 429 can make anybody wait (Errors, rule 1)."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from payments_async import RateLimits
from payments_async.errors import LimitReached, RateLimitedError
from tests.support import bodies
from tests.support.bodies import encoded
from tests.support.calls import OPERATIONS, call
from tests.support.jumping import EPOCH, JumpingRuntime
from tests.support.scripted import ScriptedTransport, answer
from tests.support.surfaces import Connect, error_of

pytestmark = pytest.mark.parametrize("surface", ["async"], indirect=True)  # the mirror reads no header itself

PAYOUT = encoded(OPERATIONS["payouts.sync"].body)
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
    runtime = JumpingRuntime(seed=3)
    transport = ScriptedTransport(answer(429, {"message": "Slow down."}, headers), answer(200, PAYOUT))
    client = connect(transport=transport, runtime=runtime)

    payout = await client.payouts.sync("po_1")

    assert payout.id == "po_1"
    assert len(transport.requests) == 2
    assert least <= runtime.monotonic() <= most


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [("121", 121.0), ("31536000", YEAR), ("1795305607000", 1795305607000.0), (http_date(YEAR), YEAR)],
)
async def test_too_long_a_wait_is_refused_at_once(connect: Connect, asked: str, seconds: float) -> None:
    runtime = JumpingRuntime()
    transport = ScriptedTransport(answer(429, {"message": "Slow down."}, {"Retry-After": asked}))
    client = connect(transport=transport, runtime=runtime)
    caught = await error_of(RateLimitedError, client.payouts.sync("po_1"))
    assert caught.retry_after == seconds
    assert caught.effect == "none"
    assert (len(transport.requests), runtime.monotonic()) == (1, 0.0)


async def test_an_hour_of_waiting_closes_the_limit_and_holds_no_caller_up(connect: Connect) -> None:
    runtime = JumpingRuntime()
    transport = ScriptedTransport(answer(429, {}, {"Retry-After": "3600"}), answer(200, PAYOUT))
    client = connect(transport=transport, runtime=runtime, max_retry_after=60.0)
    with pytest.raises(RateLimitedError):
        await client.payouts.sync("po_1")
    caught = await error_of(LimitReached, client.payouts.sync("po_1"), match="429 closed the rate limit")
    assert 3600.0 <= caught.retry_after <= 3601.0
    assert (len(transport.requests), runtime.monotonic()) == (1, 0.0)
    runtime.advance(caught.retry_after)
    assert (await client.payouts.sync("po_1")).id == "po_1"


async def test_one_clients_patience_does_not_shorten_what_the_service_asked_of_all(connect: Connect) -> None:
    transport = ScriptedTransport(answer(429, {}, {"Retry-After": "60"}), answer(200, PAYOUT))
    patient = connect(transport=transport, runtime=(runtime := JumpingRuntime()))
    with pytest.raises(RateLimitedError):
        await patient.with_options(max_retry_after=1.0).payouts.sync("po_1")
    assert (await patient.payouts.sync("po_1")).id == "po_1"
    assert runtime.monotonic() >= 60.0


async def test_a_caller_in_line_does_not_stay_for_a_gate_that_closes_for_long(connect: Connect) -> None:
    runtime = JumpingRuntime()
    transport = ScriptedTransport(answer(200, PAYOUT), answer(429, {}, {"Retry-After": "3000"}))
    limits = RateLimits(reads=1)
    client = connect(transport=transport, runtime=runtime, limits=limits, max_retries=0)

    async def read() -> Any:
        return await client.payment_intents.retrieve_attempt("pi_1", "po_1")

    await read()
    first, second = await asyncio.gather(read(), read(), return_exceptions=True)
    assert {type(first), type(second)} == {RateLimitedError, LimitReached}
    assert runtime.monotonic() < 300.0


@pytest.mark.parametrize("replayed", ["false", "1", "yes", "", "truе"])
async def test_only_true_means_replayed(connect: Connect, replayed: str) -> None:
    body = OPERATIONS["payouts.create"].body
    payout = await call(connect, "payouts.create", body, X_Idempotent_Replayed=replayed)
    assert not payout.response.replayed


async def test_headers_of_an_error_are_kept_and_stay_out_of_its_text(connect: Connect) -> None:
    headers = {"X_Request_Id": "req-9", "X_Payer": bodies.EMAIL, "X_RateLimit_Limit": "٣"}
    caught = await error_of(
        RateLimitedError, call(connect, "payouts.sync", {"message": "No."}, 429, **headers)
    )
    assert caught.request_id == "req-9"
    assert caught.headers["x-payer"] == bodies.EMAIL
    assert caught.limit is None
    assert bodies.EMAIL not in f"{caught!r} {caught}"
