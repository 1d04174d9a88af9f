"""Random creations on clocks that are set. At length: `python -m tests.campaigns.outcomes 100000`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from payments_async._request import idempotency, resolve
from payments_async._request.key_age import Timestamps
from tests.campaigns.outcomes import Campaign
from tests.support.surfaces import Connect

pytestmark = pytest.mark.no_cover  # heavy under a tracer; what it runs is covered without it

CALLS = {"async": 2000, "sync": 200}
WHAT_MUST_COME_UP = (
    *("create: OutcomeUnknown (unknown)", "create: UnprocessableError (none)"),
    *("resolve: OutcomeUnknown (unknown)", "resolve: UnprocessableError (none)", "resolve: PaymentIntent"),
    "resolve: Payout",
)


async def test_whatever_clocks_do_no_more_is_said_than_known(connect: Connect, surface: str) -> None:
    report = await Campaign(connect, seed=0).run(CALLS[surface])
    assert report.lies == []
    assert report.steps > report.calls / 3
    if surface == "async":
        assert [outcome for outcome in WHAT_MUST_COME_UP if not report.outcomes[outcome]] == []


def passed_by_the_wall_clock(then: Timestamps, now: Timestamps, seen: Timestamps | None = None) -> float:
    return now.wall - then.wall


def never_outdated(*_: object) -> None:
    return None


@pytest.mark.parametrize("surface", ["async"], indirect=True)
@pytest.mark.parametrize(
    ("module", "name", "believing"),
    [(resolve, "at_least", passed_by_the_wall_clock), (idempotency, "why_outdated", never_outdated)],
    ids=["the wall clock", "no paused machine"],
)
async def test_it_catches_a_client_that_believes_its_own_clocks(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, believing: Callable[..., Any]
) -> None:
    monkeypatch.setattr(module, name, believing)
    assert (await Campaign(connect, seed=0).run(2000)).lies
