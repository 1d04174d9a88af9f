"""What does a typed record cost, exact decimals and unknown fields kept, beside `json.loads` of its bytes?"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.figures import Figure
from benchmarks.worker import started, turns

SIZES = {
    "one": ("one payout", 5_000),
    "later": ("one payout with a field unknown and one missing", 5_000),
    "page": ("a page of 100 payouts", 150),
}


def run(rounds: int, share: float) -> Iterator[Figure]:
    """One record and a page, in turn with `json.loads` in the same process."""
    with started("reading") as worker:
        for size, (name, times) in SIZES.items():
            found = turns({"": worker}, rounds, what=size, times=times)
            ratios = [each[""]["ours"] / each[""]["theirs"] for each in found]
            yield Figure.of(ratios, f"reading {name} over json.loads", at_most=1.0)
