"""Small versions of the campaign against strangers, and that it would see a breach."""

from __future__ import annotations

import pytest

from tests.campaigns import webhooks as campaign
from tests.support.simulated import run_simulated


def test_no_forged_delivery_is_accepted_or_costs_a_read() -> None:
    assert not campaign.breaches_of_forging(run_simulated(campaign.forge(5_000, seed=2)))


def test_repeats_of_a_valid_delivery_cost_twelve_reads_a_minute_at_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(campaign, "BURST", 40)
    monkeypatch.setattr(campaign, "APART", 1.0)
    found = run_simulated(campaign.repeat(6_000, seed=2))
    assert not campaign.breaches_of_repeating(found)
    assert found.fullest == 12
    assert len(found.told) >= 13
