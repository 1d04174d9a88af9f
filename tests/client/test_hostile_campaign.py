"""A quick hostile campaign in every run; the long one is `python -m tests.campaigns.hostile 100000`."""

from __future__ import annotations

import pytest

from tests.campaigns.hostile import Campaign
from tests.support.surfaces import Connect

# many times as slow when it is traced; others cover the same
pytestmark = pytest.mark.no_cover  # heavy under a tracer; what it runs is covered without it

CASES = {"async": 1000, "sync": 300}
WHAT_MUST_COME_UP = (
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
    report = await Campaign(connect, seed=2026).run(times * CASES[surface])
    assert report.breaches == []
    assert sum(report.outcomes.values()) == times * CASES[surface]
    assert [outcome for outcome in WHAT_MUST_COME_UP if not report.outcomes[outcome]] == []
