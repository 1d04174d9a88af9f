"""A small version of the campaign against strangers, and that it would see a breach."""

from __future__ import annotations

import pytest

from tests.campaigns import webhooks as campaign
from tests.support.simulated import run_simulated


def test_repeats_of_a_valid_delivery_cost_twelve_reads_a_minute_at_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(campaign, "BURST", 40)
    monkeypatch.setattr(campaign, "APART", 1.0)
    found = run_simulated(campaign.repeat(6_000, seed=2))
    assert not campaign.breaches(found)
    assert found.fullest == 12
    assert len(found.told) >= 13


def test_the_campaign_would_see_a_receiver_that_reads_too_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("payments_async.webhooks._lookup.FLOOR", 4.0)
    monkeypatch.setattr(campaign, "BURST", 20)
    monkeypatch.setattr(campaign, "APART", 1.0)
    (breach,) = campaign.breaches(run_simulated(campaign.repeat(2_000, seed=2)))
    assert breach == "a minute held 15 requests"
