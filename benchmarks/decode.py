"""What does a typed record cost, exact decimals and unknown fields kept, beside `json.loads` of its bytes?"""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable, Iterator

from benchmarks import inside
from benchmarks.figures import Figure

READ = {
    "one payout": (inside.READ_ONE, inside.ONE, 5_000),
    "one payout with a field unknown and one missing": (inside.READ_ONE, inside.LATER, 5_000),
    "a page of 100 payouts": (inside.READ_PAGE, inside.PAGE, 150),
}
"""What is read, and how often in a round."""


def timed(work: Callable[[], object], times: int) -> float:
    """CPU seconds for one."""
    started = time.thread_time()
    for _ in range(times):
        work()
    return (time.thread_time() - started) / times


def run(rounds: int, share: float) -> Iterator[Figure]:
    """As the request path reads an answer, in turn with `json.loads`; the first round is left out."""
    inside.check()
    gc.collect()
    gc.freeze()  # so that a collection looks at what was decoded, whosever turn it is, not at all modules
    for name, (call, answer, times) in READ.items():
        ratios = []
        for _ in range(rounds + 1):
            ours = timed(lambda: inside.read(call, answer), times)  # noqa: B023 # called at once
            ratios.append(ours / timed(lambda: json.loads(answer.body), times))  # noqa: B023
        yield Figure.of(ratios[1:], f"reading {name} over json.loads", at_most=1.0)
