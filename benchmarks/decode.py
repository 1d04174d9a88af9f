"""What does a typed record cost, beside `json.loads` of the same bytes?"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import counting
from benchmarks.answer_server import answering
from benchmarks.figures import Figure
from benchmarks.peers import Peers
from benchmarks.suite import alone
from benchmarks.wire import PAGE_ANSWER
from benchmarks.worker import started

NAME = "decode"
QUESTION = (
    "What does it cost to make typed records, exact decimals and unknown fields kept, of an answer's bytes, "
    "against `json.loads` of the same bytes?"
)
SIZES = {
    "one": ("one payout", 5_000),
    "later": ("one payout with a field unknown and one missing", 5_000),
    "page": ("a page of 100 payouts", 150),
}
FIELDS = "id, status, reference, amount, currency and phone read"
COUNTED = {
    ("one", "json"): ("one payout decoded over json.loads", 0.42),
    ("one/fields", "json"): (f"one payout decoded over json.loads, {FIELDS}", 0.47),
    ("one/later", "json"): ("one payout decoded over json.loads, a field unknown and one missing", 0.46),
    ("page", "dicts"): ("a page of 100 payouts over aiohttp and msgspec to dicts", 1.0),
    ("page/fields", "dicts/fields"): (f"a page over aiohttp and msgspec to dicts, {FIELDS} of each", 1.1),
}
"""What is compared in instructions, and its target."""


def run(peers: Peers, *, quick: bool) -> list[Figure]:
    """One record and a page, in CPU and in instructions."""
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
    return [*figures, *instructions()]


def instructions() -> Iterator[Figure]:
    """What a busy machine does not change; none without valgrind."""
    if not counting.possible():
        return
    with answering(PAGE_ANSWER, "200 OK") as url:
        found = counting.counted("benchmarks.contenders.counted_reading", url)
    for (ours, theirs), (what, goal) in COUNTED.items():
        ratio = found[ours] / found[theirs]
        yield Figure.of([ratio], f"instructions: {what}", target="P4", at_most=goal)


def profile() -> str:
    """Where a page's time goes."""
    with started("benchmarks.contenders.sdk_decode") as worker:
        return worker.profile(what="page", times=60)


if __name__ == "__main__":
    alone(NAME, QUESTION, run)
