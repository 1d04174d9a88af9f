"""Finding out what became of a creation when the wall clock was set meanwhile, or another process asks.

Two questions: whether the key may still be used, and whether enough time has passed to believe a refusal.
"""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from payments_async import OutcomeUnknown, PreparedRequest, UnprocessableError
from tests.support.motion import OURS, doubt, listed, methods, payout_answer, play, refusal, sent, unresolved
from tests.support.scripted import lost
from tests.support.surfaces import Connect, error_of

MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
SERVICE_TIME = datetime(2026, 1, 1, tzinfo=UTC)
NOTHING_LISTED, LISTED = listed(), listed(OURS)


def at(seconds: float) -> dict[str, str]:
    """The service's `Date`, so many seconds after the first one."""
    return {"Date": format_datetime(SERVICE_TIME + timedelta(seconds=seconds), usegmt=True)}


def in_another_process(error: OutcomeUnknown) -> OutcomeUnknown:
    """The error as a pickle carries it, with the request that was stored beside it."""
    assert error.prepared is not None
    stored = error.prepared.to_json()
    twin: OutcomeUnknown = pickle.loads(pickle.dumps(error))
    twin.prepared = PreparedRequest.from_json(stored)
    return twin


@pytest.mark.parametrize(
    ("first", "passed", "step", "second", "is_certain"),
    [
        # set forward: the first request is still at work, and is carried out a moment later
        *((lost(), 0, seconds, refusal(422), False) for seconds in (20 * MINUTE, 20 * HOUR)),
        # set back
        (lost(), 16 * MINUTE, -15.9 * MINUTE, refusal(422), True),
        # of a copied machine: it has the session of the one that sent, and has run longer since the copying
        (refusal(503, at(0)), 16 * MINUTE, 0, refusal(422, at(MINUTE)), False),
    ],
)
async def test_a_refusal_is_certain_when_every_clock_says_so(
    connect: Connect, first: Any, passed: float, step: float, second: Any, is_certain: bool
) -> None:
    played = play(connect, first, second, NOTHING_LISTED, payout_answer())
    error = await doubt(played)
    played.runtime.advance(passed)
    played.runtime.step(step)
    if is_certain:
        assert (await error_of(UnprocessableError, played.client.resolve(error))).effect == "none"
    else:
        assert isinstance((await unresolved(played, error)).__cause__, UnprocessableError)


@pytest.mark.parametrize("how", ["payouts", "payment_intents"])
@pytest.mark.parametrize(
    ("passed", "step"),
    [(23 * HOUR, -22 * HOUR), (HOUR, 22 * HOUR), (MINUTE, -2 * MINUTE)],
    ids=["monotonic", "wall", "went back"],
)
async def test_the_key_is_as_old_as_any_clock_says(
    connect: Connect, how: str, passed: float, step: float
) -> None:
    played = play(connect, lost(), NOTHING_LISTED)
    error = await doubt(played, how)
    played.runtime.advance(passed)
    played.runtime.step(step)
    await unresolved(played, error)
    assert methods(played).count("POST") == 1


@pytest.mark.parametrize(
    ("then", "now", "is_certain"),
    [
        *(({}, now, False) for now in ({}, at(HOUR))),
        *((at(0), now, False) for now in ({}, at(14 * MINUTE))),
        (at(HOUR), at(0), False),
        (at(0), at(16 * MINUTE), True),
    ],
)
async def test_in_another_process_only_the_services_time_proves_that_enough_has_passed(
    connect: Connect, then: dict[str, str], now: dict[str, str], is_certain: bool
) -> None:
    error = in_another_process(await doubt(play(connect, refusal(503, then))))
    played = play(connect, refusal(422, now), NOTHING_LISTED)
    played.runtime.advance(HOUR)
    kind = UnprocessableError if is_certain else OutcomeUnknown
    caught = await error_of(kind, played.client.resolve(error))
    assert isinstance(caught if is_certain else caught.__cause__, UnprocessableError)


async def test_the_time_that_the_call_itself_took_counts(connect: Connect) -> None:
    """The clock went back an hour while the request was out for two."""

    def slow(request: Any) -> Any:
        played.runtime.advance(22.5 * HOUR)
        played.runtime.step(-22.5 * HOUR)
        return lost()(request)

    played = play(connect, slow)
    error = await doubt(played, "payment_intents")
    played.runtime.advance(HOUR)
    await unresolved(played, error)
    assert len(sent(played)) == 1


async def test_a_key_does_not_get_younger_from_one_doubt_to_the_next(connect: Connect) -> None:
    played = play(connect, lost())
    error = await doubt(played, "payment_intents")
    for passed in (22 * HOUR, 2 * HOUR):
        played.runtime.advance(passed)
        played.runtime.step(-passed)
        posts = len(sent(played))
        caught = await unresolved(played, error)
        error = caught
    assert len(sent(played)) == posts


@pytest.mark.parametrize("where", ["here", "another process", "another process, with Date", "stored"])
async def test_asking_often_does_not_keep_a_refusal_from_being_certain(connect: Connect, where: str) -> None:
    """Tries that were refused are at work no more: only the earlier ones need their time."""
    given: Any = await doubt(played := play(connect, refusal(503, at(0) if "Date" in where else {})))
    if where != "here":
        given, played = in_another_process(given), play(connect, refusal(422))
    given = given.prepared if where == "stored" else given
    for minute in range(0, 15, 3):
        dated = at(minute * MINUTE) if "Date" in where else {}
        played.transport._script[:] = [refusal(422, dated), NOTHING_LISTED]
        caught = await unresolved(played, given)
        given = caught
        assert "(attempts: 422)" in str(given)
        played.runtime.advance(3 * MINUTE + 1)
    played.transport._script[:] = [refusal(422, at(15 * MINUTE + 5)), NOTHING_LISTED]
    with pytest.raises(UnprocessableError):
        await played.client.resolve(given)


async def test_a_try_left_in_doubt_by_resolving_needs_its_own_time(connect: Connect) -> None:
    played = play(connect, lost())
    error = await doubt(played)
    played.runtime.advance(10 * MINUTE)
    caught = await unresolved(played, error)
    played.runtime.advance(10 * MINUTE)
    played.transport._script[:] = [refusal(422), NOTHING_LISTED]
    await unresolved(played, caught)


@pytest.mark.parametrize(
    ("headers", "query"),
    [(at(16 * MINUTE), "created_at%5Bgte%5D=2025-12-31&per_page=100"), ({}, "per_page=100")],
    ids=["Date", "no Date"],
)
async def test_what_is_to_be_certain_is_looked_for_from_when_the_service_began(
    connect: Connect, headers: dict[str, str], query: str
) -> None:
    """The clock was three days ahead when the request was made."""
    played = play(connect, lost(), refusal(422, headers), LISTED)
    played.runtime.step(3 * DAY)
    error = await doubt(played)
    played.runtime.advance(16 * MINUTE)
    assert (await played.client.resolve(error)).id == "po_1"
    assert sent(played)[2] == f"GET /payouts?{query}"
