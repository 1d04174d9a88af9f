"""Random creations on clocks that are set, and hostile answers; at length: `python -m tests.campaigns`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from payments_async._request import idempotency, resolve
from tests.campaigns import hostile, outcomes
from tests.support.surfaces import Connect

# many times as slow when it is traced; others cover the same
pytestmark = pytest.mark.no_cover  # heavy under a tracer; what it runs is covered without it

CALLS = {"async": 2000, "sync": 200}
OF_CLOCKS = (
    *("create: OutcomeUnknown (unknown)", "create: UnprocessableError (none)"),
    *("resolve: OutcomeUnknown (unknown)", "resolve: UnprocessableError (none)", "resolve: PaymentIntent"),
    "resolve: Payout",
)


async def test_whatever_clocks_do_no_more_is_said_than_known(connect: Connect, surface: str) -> None:
    report = await outcomes.Campaign(connect, seed=0).run(CALLS[surface])
    assert report.lies == []
    assert report.steps > report.calls / 3
    if surface == "async":
        assert [outcome for outcome in OF_CLOCKS if not report.outcomes[outcome]] == []


@pytest.mark.parametrize("surface", ["async"], indirect=True)
@pytest.mark.parametrize(
    ("module", "name", "believing"),
    [
        (resolve, "at_least", lambda then, now, seen=None: now.wall - then.wall),
        (idempotency, "why_outdated", lambda *_: None),
    ],
    ids=["the wall clock", "no paused machine"],
)
async def test_it_catches_a_client_that_believes_its_own_clocks(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, believing: Callable[..., Any]
) -> None:
    monkeypatch.setattr(module, name, believing)
    assert (await outcomes.Campaign(connect, seed=0).run(2000)).lies


CASES = {"async": 1000, "sync": 300}
OF_ANSWERS = (
    *("create: OutcomeUnknown (unknown)", "create: DecodeError (happened)", "create: Payout"),
    *("create: Checkout", "create: PaymentIntent", "read: DecodeError (none)", "read: Page"),
    *("read: ServerError (none)", "read: RateLimitedError (none)", "read: UnprocessableError (none)"),
)


@pytest.mark.parametrize("times", [1, pytest.param(10, marks=pytest.mark.slow)])
async def test_no_spoilt_answer_makes_the_client_say_more_than_it_knows(
    connect: Connect, surface: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "payments_async.models._masking._OWN_KEYS", {}
    )  # another test's key may be part of a spoilt id
    report = await hostile.Campaign(connect, seed=2026).run(times * CASES[surface])
    assert report.breaches == []
    assert sum(report.outcomes.values()) == times * CASES[surface]
    assert [outcome for outcome in OF_ANSWERS if not report.outcomes[outcome]] == []
