"""Short walks of `tests.campaigns.walks`: what everybody is told of the money equals the service's books."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest

from payments_async.sandbox import Sandbox
from tests.campaigns.walks import ABLATIONS, walked, without
from tests.support.batches import in_process, item, open_at
from tests.support.places import EITHER, Place

ENOUGH = 40
"""Walks within which the lack of a rule must show."""


@pytest.mark.parametrize(
    ("place", "seed"),
    [
        *(("sqlite", seed) for seed in (0, 1)),
        ("postgresql", 3),
        *(pytest.param(*walk, marks=pytest.mark.slow) for walk in (("sqlite", 2), ("postgresql", 0))),
    ],
    indirect=["place"],
)
async def test_a_walk_tells_what_the_books_say(place: Place, seed: int) -> None:
    assert await walked(place, seed, Counter()) is None


@pytest.mark.parametrize("rule", ABLATIONS)
async def test_the_lack_of_a_rule_shows(tmp_path: Path, rule: str) -> None:
    with without(rule):
        for seed in range(ENOUGH):
            if await walked(tmp_path / str(seed), seed, Counter()) is not None:
                return
    pytest.fail(f"no walk of {ENOUGH} went wrong without: {rule}")


@EITHER
async def test_a_sum_that_lost_a_row_of_more_decimals_is_no_damage(service: Sandbox, place: Place) -> None:
    """12.25 + 7.5 - 12.25 is 7.50, and the row has 7.5."""
    rows = [item(1, amount=Decimal("12.25")), item(2, amount=Decimal("7.5"))]
    service.on("payouts.create", description="row 1").respond("http:422")
    async with in_process(service) as client, open_at(place, client) as batch:
        await batch.load(rows)
        await batch.run(wait_final=60.0)
        assert (await batch.check()).findings == ()
