"""Short walks of `tests.campaigns.walks`: no row is paid twice, and what is told equals the books."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.campaigns.walks import ABLATIONS, walked, without
from tests.support.walks.scenes import SCENES

_ENOUGH = 2 * len(SCENES)
"""Walks within which the lack of a rule must show."""


@pytest.mark.parametrize("seed", range(len(SCENES)))
def test_a_walk_says_what_the_books_say(seed: int) -> None:
    assert walked(seed, 1, Counter()) is None


@pytest.mark.slow
@pytest.mark.parametrize("rule", ABLATIONS)
def test_the_lack_of_a_rule_shows(rule: str) -> None:
    with without(rule, Counter()):
        assert any(walked(seed, 6, Counter()) for seed in range(_ENOUGH))
