"""Sending a write again that only its key protects: the service's time decides, whatever our clocks say.

A machine that was paused, or restored from a snapshot, has no clock that saw the time pass.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from payments_async import InvalidRequest, OutcomeUnknown, PreparedRequest
from tests.support.jumping import EPOCH
from tests.support.motion import (
    INTENT,
    PAYOUT,
    doubt,
    methods,
    payout_answer,
    play,
    refusal,
    unresolved,
)
from tests.support.pure_calls import pending
from tests.support.scripted import answer, lost, unsent
from tests.support.surfaces import Connect, error_of

HOUR = 3600.0
MADE = answer(201, {"data": {"id": "pi_1", "amount": {"value": 10.1, "currency": "XOF"}}})


def at(seconds: float, **more: str) -> dict[str, str]:
    """The service's `Date`, so many seconds after our epoch."""
    return {"Date": format_datetime(EPOCH + timedelta(seconds=seconds), usegmt=True), **more}


def time_of(seconds: float, **more: str) -> Any:
    """A page of payouts at a time of the service."""
    return answer(200, {"data": [], "pagination": {"has_more_pages": False}}, at(seconds, **more))


READ_AGAIN: list[tuple[Any, str | None]] = [
    (time_of(0), None),
    (time_of(22.9 * HOUR), None),
    (time_of(-60), None),
    (refusal(403, at(HOUR)), None),
    (refusal(500, at(HOUR)), None),
    (time_of(22 * HOUR, Age="3000"), None),
    (time_of(22 * HOUR, Age="soon"), None),
    (time_of(23 * HOUR), "in use for 23.0 hours"),
    (time_of(22 * HOUR, Age="3600"), "in use for 23.0 hours"),
    (refusal(403, at(25 * HOUR)), "in use for 25.0 hours"),
    (time_of(-61), "61 s earlier than the request's"),
    (answer(200, {"data": [], "pagination": {"has_more_pages": False}}), "does not tell its time"),
    (refusal(403, {"Date": "yesterday"}), "time could not be read"),
    (lost(), "time could not be read"),
    (unsent(), "time could not be read"),
]


@pytest.mark.parametrize(("read", "why"), READ_AGAIN)
@pytest.mark.parametrize("how", ["payment_intents", "checkouts"])
async def test_a_paused_machine_sends_nothing_again_that_the_service_may_have_forgotten(
    connect: Connect, how: str, read: Any, why: str | None
) -> None:
    made = (
        MADE if how == "payment_intents" else answer(201, {"data": {"checkout": {"id": "co_1", "url": "u"}}})
    )
    played = play(connect, lost(), read, made)
    error = await doubt(played, how)
    client = played.client.with_options(max_retries=0)
    if why is None:
        assert (await client.resolve(error)).id
        assert methods(played) == ["POST", "GET", "POST"]
        assert played.keys[0] == played.keys[2]
    else:
        caught = await error_of(OutcomeUnknown, client.resolve(error), match=f"not sent again: .*{why}")
        assert methods(played) == ["POST", "GET"]
        assert caught.prepared is error.prepared
        assert (caught.__cause__ is None) == (getattr(read, "status", None) == 200)
    assert played.transport.requests[1].headers["Cache-Control"] == "no-cache"


@pytest.mark.parametrize(
    ("ours", "now", "goes"), [(-30 * HOUR, 22 * HOUR, True), (10 * HOUR, 24 * HOUR, False)]
)
async def test_time_counts_from_first_answer(connect: Connect, ours: float, now: float, goes: bool) -> None:
    """Our clock was wrong by hours, before and after."""
    played = play(connect, refusal(503, at(0)), time_of(now), MADE if goes else time_of(now))
    played.runtime.step(ours)
    error = await doubt(played, "payment_intents")
    again = (await played.client.resolve(error)).id if goes else None
    if not goes:
        caught = await unresolved(played, error, r"in use for 24\.0 hours")
        await unresolved(played, caught, r"in use for 24\.0 hours")
    assert (again is not None) == goes
    assert methods(played).count("POST") == 1 + goes


FIRST: dict[str, tuple[Callable[[Any, Any], Any] | None, str]] = {
    "sent": (lambda client, prepared: client.send(prepared), "POST"),
    "sent by a sibling": (lambda client, prepared: client.with_options(timeout=9.0).send(prepared), "POST"),
    "resolved": (lambda client, prepared: client.resolve(prepared), "GET POST"),
    "of the caller's own key": (lambda client, prepared: client.send(prepared), "GET POST"),
    "of a process that forked": (None, ""),
}
"""{what was done with a request just prepared: how, and what it sends}."""


@pytest.mark.parametrize("first", FIRST)
async def test_only_what_was_just_prepared_and_surely_not_sent_needs_no_time(
    connect: Connect, first: str
) -> None:
    act, methods_of_first = FIRST[first]
    script = {"": [], "POST": [lost()], "GET POST": [time_of(0), lost()]}[methods_of_first]
    played = play(connect, *script, time_of(25 * HOUR), max_retries=0)
    own = {"idempotency_key": "order-seven"} if "own" in first else {}
    prepared = played.client.payment_intents.prepare(**INTENT, **own)
    if act is None:
        pending.pending_of(played.runtime).forget_parents()
    else:
        await error_of(OutcomeUnknown, act(played.client, prepared))
    await error_of(OutcomeUnknown, played.client.send(prepared), match=r"in use for 25\.0 hours")
    assert methods(played) == [*methods_of_first.split(), "GET"]


async def test_the_deadline_of_a_send_holds_for_the_question_too(connect: Connect) -> None:
    def slow(_: Any) -> Any:
        played.runtime.advance(7.0)
        return time_of(0)

    stored = play(connect).client.payment_intents.prepare(**INTENT).to_json()
    played = play(connect, slow, MADE)
    assert (await played.client.send(PreparedRequest.from_json(stored), deadline=10.0)).id == "pi_1"
    assert [request.timeout for request in played.transport.requests] == [10.0, 3.0]


async def test_a_wrong_option_of_a_send_is_told_before_anything_is_asked(connect: Connect) -> None:
    stored = play(connect).client.payment_intents.prepare(**INTENT).to_json()
    played = play(connect, time_of(0))
    with pytest.raises(InvalidRequest, match="deadline: must be a positive number"):
        await played.client.send(PreparedRequest.from_json(stored), deadline=-1.0)
    assert methods(played) == []


async def test_a_reference_protects_for_ever_and_nothing_is_asked(connect: Connect) -> None:
    played = play(connect, lost(), payout_answer())
    error = await doubt(played)
    stored = PreparedRequest.from_json(error.prepared.to_json())  # type: ignore[union-attr] # not pickled
    await played.client.resolve(error)
    await played.client.send(stored)
    assert methods(played) == ["POST"] * 3


LIMITED = refusal(429, {"Retry-After": "7200"})


@pytest.mark.parametrize(("read", "goes"), [(time_of(2 * HOUR), True), (time_of(25 * HOUR), False)])
async def test_a_retry_hours_later_asks_too(connect: Connect, read: Any, goes: bool) -> None:
    played = play(connect, lost(), LIMITED, read, MADE, max_retry_after=3 * HOUR)
    if goes:
        assert (await played.client.payment_intents.create(**INTENT)).id == "pi_1"
    else:
        caught = await error_of(
            OutcomeUnknown,
            played.client.payment_intents.create(**INTENT),
            match=r"reset, 429; not sent again: .*25\.0 hours",
        )
        assert [attempt.reason for attempt in caught.attempts] == ["reset", "429"]
        snapshot = played.client.limits_snapshot()
        assert snapshot["write"].used == 0
    assert methods(played) == ["POST", "POST", "GET", *["POST"] * goes]


@pytest.mark.parametrize(("first", "creation"), [(LIMITED, INTENT), (lost(), PAYOUT)])
async def test_a_late_retry_without_need_asks_nothing(connect: Connect, first: Any, creation: Any) -> None:
    has_reference = creation is PAYOUT
    played = play(
        connect, first, LIMITED, payout_answer() if has_reference else MADE, max_retry_after=3 * HOUR
    )
    resource = played.client.payouts if has_reference else played.client.payment_intents
    assert (await resource.create(**creation)).id
    assert methods(played) == ["POST"] * 3


@pytest.mark.parametrize("surface", ["async"], indirect=True)
async def test_a_caller_cancelled_while_a_late_retry_asks_knows_the_doubt(connect: Connect) -> None:
    def hang(_: Any) -> Any:
        asked.set()
        raise asyncio.CancelledError

    asked = asyncio.Event()
    played = play(connect, lost(), LIMITED, hang, max_retry_after=3 * HOUR)
    task = asyncio.ensure_future(played.client.payment_intents.create(**INTENT))
    await asked.wait()
    task.cancel()
    caught = await error_of(asyncio.CancelledError, task)
    assert caught.outcome.attempts[0].verdict == "in_doubt"  # type: ignore[attr-defined] # added
    assert played.client.limits_snapshot()["write"].used == 0


async def test_requests_never_sent_are_forgotten(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending, "_MOST_UNSENT", 1)
    played = play(connect, time_of(0), MADE)
    first, second = (played.client.payment_intents.prepare(**INTENT) for _ in range(2))
    for prepared in (first, second):
        await played.client.send(prepared)
    assert methods(played) == ["GET", "POST", "POST"]
