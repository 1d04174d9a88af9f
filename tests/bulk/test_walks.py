"""Short walks of `tests.campaigns.walks`: what everybody is told of the money equals the service's books."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.campaigns.walks import ABLATIONS, walked, without
from tests.support.places import EITHER, Place

ENOUGH = 40
"""Walks within which the lack of a rule must show."""


@EITHER
@pytest.mark.parametrize("seed", range(4))
async def test_a_walk_tells_what_the_books_say(place: Place, seed: int) -> None:
    assert await walked(place, seed, Counter()) is None


@pytest.mark.parametrize("rule", ABLATIONS)
async def test_the_lack_of_a_rule_shows(tmp_path: Path, rule: str) -> None:
    with without(rule):
        for seed in range(ENOUGH):
            if await walked(tmp_path / str(seed), seed, Counter()) is not None:
                return
    pytest.fail(f"no walk of {ENOUGH} went wrong without: {rule}")
