"""The short form of `python -m tests.campaigns.outbox`: programs that take orders, killed at random."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.campaigns import outbox
from tests.support.places import EITHER


@pytest.mark.slow
@pytest.mark.no_cover  # what it runs is covered without it
@EITHER
def test_each_committed_order_is_paid_once_and_no_other(place: Path | str, surface: str) -> None:
    campaign = outbox.run(place, surface, 3)
    assert campaign.problems == []
    assert campaign.kills == 3
    assert campaign.payers
