"""What a client sends again, when, and with what (Errors, rule 1; Idempotency)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from payments_async import (
    APIConnectionError,
    AsyncPayments,
    DecodeError,
    OutcomeUnknown,
    PaymentsError,
    RateLimitedError,
    ServerError,
)
from payments_async.sandbox import Sandbox
from tests.support.motion import INTENT, PAYOUT, REPLAYED, jumping, payout_answer, play, refusal
from tests.support.scripted import EMPTY_PAGE, answer, lost, unsent
from tests.support.surfaces import Connect, error_of

PASSING = [lost("reset"), lost("timeout"), unsent("connect"), unsent("pool"), unsent("dns"), lost("protocol")]
PASSING += [refusal(status) for status in (500, 502, 503, 504, 599)]
PASSING += [refusal(429), refusal(429, {"Retry-After": "3"}), answer(201, b"<html>"), answer(200, {})]


@pytest.mark.fact("idempotency.post-retries-keyed", "error.429.no-parallel-retries")
@pytest.mark.parametrize("failure", PASSING, ids=range(len(PASSING)))
async def test_every_repeat_of_a_creation_carries_its_key_and_bytes(connect: Connect, failure: Any) -> None:
    played = play(connect, failure, failure, payout_answer())
    payout = await played.client.payouts.create(**PAYOUT)
    assert payout.id == "po_1"
    assert len(played.keys) == 3
    assert len(set(played.keys)) == 1
    assert len({request.body for request in played.transport.requests}) == 1
    assert {request.headers["Content-Type"] for request in played.transport.requests} == {"application/json"}


@pytest.mark.fact("idempotency.writes-only")
async def test_reads_are_repeated_without_a_key_but_for_one_that_is_unreadable(connect: Connect) -> None:
    played = play(connect, lost(), refusal(503), EMPTY_PAGE, answer(200, b"<html>"))
    assert list(await played.client.payouts.list()) == []
    assert played.keys == [None, None, None]
    with pytest.raises(DecodeError):
        await played.client.payouts.list()
    assert len(played.transport.requests) == 4


@pytest.mark.parametrize("status", [400, 401, 403, 404, 408, 409, 410, 418, 422, 501, 301, 307])
async def test_definite_answers_are_never_asked_for_twice(connect: Connect, status: int) -> None:
    played = play(connect, refusal(status), payout_answer())
    caught = await error_of(PaymentsError, played.client.payouts.create(**PAYOUT))
    assert len(caught.attempts) == len(played.transport.requests) == 1


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_replayed_failure_is_not_asked_for_again(connect: Connect, status: int) -> None:
    played = play(connect, refusal(status, REPLAYED), payout_answer())
    with pytest.raises(OutcomeUnknown):
        await played.client.payouts.create(**PAYOUT)
    assert len(played.transport.requests) == 1
    assert await played.client.payouts.create(**PAYOUT)
    assert played.runtime.slept == []


async def test_back_off_is_spread_and_its_bound_doubles(connect: Connect) -> None:
    waits: list[list[float]] = []
    for seed in range(30):
        played = play(connect, lost(), seed=seed, max_retries=5)
        caught = await error_of(OutcomeUnknown, played.client.payouts.create(**PAYOUT))
        waits.append([attempt.waited for attempt in caught.attempts[1:]])
    for number, bound in enumerate([0.5, 1.0, 2.0, 4.0, 8.0]):
        nth = [row[number] for row in waits]
        assert max(nth) <= bound
        assert min(nth) < bound / 4 < bound / 2 < max(nth)


@pytest.mark.fact("error.429.waits-retry-after")
@pytest.mark.parametrize("headers", [{"Retry-After": "7"}, {"Retry-After": "Thu, 01 Jan 2026 00:00:07 GMT"}])
async def test_a_429_is_waited_out_for_what_it_asks_and_some_jitter(connect: Connect, headers: Any) -> None:
    waits = set()
    for seed in range(5):
        played = play(connect, refusal(429, headers), payout_answer(), seed=seed)
        payout = await played.client.payouts.create(**PAYOUT)
        waits.add(payout.response.attempts[1].waited)
    assert len(waits) == 5
    assert all(7.0 < wait <= 8.1 for wait in waits)


@pytest.mark.fact("error.429.backoff-with-jitter")
async def test_a_429_without_a_time_is_backed_off_from(connect: Connect) -> None:
    rows = []
    for seed in range(20):
        played = play(connect, refusal(429), seed=seed, max_retries=4)
        caught = await error_of(RateLimitedError, played.client.payouts.create(**PAYOUT))
        rows.append([attempt.waited for attempt in caught.attempts[1:]])
    for number, bound in enumerate([1.0, 1.5, 2.5, 4.5]):
        nth = [row[number] for row in rows]
        assert len(set(nth)) == len(nth)
        assert 0.5 <= min(nth) < 0.5 + (bound - 0.5) / 4
        assert 0.5 + (bound - 0.5) * 0.8 < max(nth) <= bound


async def test_the_longest_wait_allowed_still_gets_its_jitter(connect: Connect) -> None:
    played = play(connect, refusal(429, {"Retry-After": "9"}), payout_answer(), max_retry_after=9.0)
    payout = await played.client.payouts.create(**PAYOUT)
    assert 9.0 < payout.response.attempts[1].waited <= 10.0


@pytest.mark.parametrize(
    ("of_client", "of_sibling", "of_call", "requests"),
    [
        ({}, {}, {}, 3),
        ({"max_retries": 2}, {}, {}, 3),
        ({"max_retries": 0}, {}, {}, 1),
        ({"max_retries": 0}, {}, {"max_retries": 3}, 4),
        ({"max_retries": 0}, {"max_retries": 1}, {}, 2),
        ({"max_retries": 0}, {"max_retries": 1}, {"max_retries": 0}, 1),
    ],
)
async def test_retries_are_set_for_a_client_a_sibling_and_a_call(
    connect: Connect, of_client: Any, of_sibling: Any, of_call: Any, requests: int
) -> None:
    played = play(connect, refusal(503), **of_client)
    with pytest.raises(ServerError):
        await played.client.with_options(**of_sibling).payouts.list(**of_call)
    assert len(played.transport.requests) == requests


async def test_an_empty_budget_ends_retries_until_successes_refill_it(connect: Connect) -> None:
    page = EMPTY_PAGE
    played = play(connect, *[lost("timeout")] * 52, *[page] * 11, lost("timeout"), page, max_retries=60)
    caught = await error_of(APIConnectionError, played.client.payouts.list())
    assert len(caught.attempts) == 51
    caught = await error_of(APIConnectionError, played.client.payouts.list())
    assert len(caught.attempts) == 1
    for _ in range(11):
        await played.client.payouts.list()
    assert len((await played.client.payouts.list()).response.attempts) == 2


async def test_waiting_out_429s_costs_nothing_of_the_budget(connect: Connect) -> None:
    played = play(connect, *[refusal(429, {"Retry-After": "1"})] * 120, payout_answer(), max_retries=200)
    payout = await played.client.payouts.create(**PAYOUT)
    assert len(payout.response.attempts) == 121


CALLS: dict[str, Callable[[AsyncPayments], Awaitable[object]]] = {
    "payouts.create": lambda client: client.payouts.create(**PAYOUT),
    "payouts.create, own key": lambda client: client.payouts.create(**PAYOUT, idempotency_key="my-own-key"),
    "payouts.sync": lambda client: client.payouts.sync("po_1"),
    "payouts.list": lambda client: client.payouts.list(),
    "payment_intents.requery": lambda client: client.payment_intents.requery("pi_1"),
    "request": lambda client: client.request("POST", "/transfers", json={}),
}


@pytest.mark.parametrize("name", CALLS)
async def test_a_function_is_asked_for_the_secret_key_once_a_call(connect: Connect, name: str) -> None:
    keys = iter(["sk_sandbox_first"])
    body = {"data": [], "pagination": {}} if name == "payouts.list" else {"data": {"id": "po_1"}}
    played = play(connect, answer(200, body), api_key=lambda: next(keys))
    await CALLS[name](played.client)
    (request,) = played.transport.requests
    assert str(request.headers["Authorization"]) == "Bearer sk_sandbox_first"


@pytest.mark.fact("events.polling-is-secondary")
async def test_a_creation_sends_one_request_alone(connect: Connect, sandbox: Sandbox) -> None:
    client = jumping(connect, sandbox)
    await client.payouts.create(**PAYOUT)
    await client.payment_intents.create(**INTENT)
    await client.checkouts.create(**INTENT)
    sandbox.advance(600)
    assert [request.operation for request in sandbox.requests] == [
        "payouts.create",
        "payment_intents.create",
        "checkouts.create",
    ]
