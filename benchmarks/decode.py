"""What does a typed record cost, beside `json.loads` of the same bytes?"""

from __future__ import annotations

from benchmarks.figures import Figure
from benchmarks.peers import Peers
from benchmarks.suite import alone
from benchmarks.worker import started

NAME = "decode"
QUESTION = (
    "What does it cost to make typed records, exact decimals and unknown fields kept, of an answer's bytes, "
    "against `json.loads` of the same bytes?"
)
SIZES = {"one": ("one payout", 5_000), "page": ("a page of 100 payouts", 150)}


def run(peers: Peers, *, quick: bool) -> list[Figure]:
    """One record and a page."""
    figures, times = [], 3 if quick else 9
    with started("benchmarks.contenders.sdk_decode") as worker:
        for size, (name, repeats) in SIZES.items():
            found = [worker.ask(what=size, times=repeats) for _ in range(times + 1)][1:]
            ratios = [each["ours"] / each["theirs"] for each in found]
            what = f"reading {name} over json.loads"
            figures.append(Figure.of(ratios, what, target="P4", at_most=1.0))
            for who, named in (("ours", "typed records"), ("theirs", "json.loads")):
                micros = [each[who] * 1e6 for each in found]
                figures.append(Figure.of(micros, f"{name}: {named}, CPU", "µs"))
    return figures


def profile() -> str:
    """Where a page's time goes."""
    with started("benchmarks.contenders.sdk_decode") as worker:
        return worker.profile(what="page", times=60)


if __name__ == "__main__":
    alone(NAME, QUESTION, run)
