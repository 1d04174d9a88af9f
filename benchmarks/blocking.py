"""What does a call cost in CPU that blocking code makes, from one thread and from many?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

from benchmarks import peers
from benchmarks.answer_server import answering
from benchmarks.figures import Figure
from benchmarks.wire import PAYOUT_ANSWER
from benchmarks.worker import started, turns

CALLS = 3_200
"""Of all threads of a round."""


def run(rounds: int, share: float) -> Iterator[Figure]:
    """From 1 thread and from 32, held on one core."""
    with ExitStack() as stack:
        url = stack.enter_context(answering(PAYOUT_ANSWER))
        workers = {"ours": stack.enter_context(started("blocking_calls", "payments", url))}
        if peers.present():
            by = started("blocking_calls", "requests", url, python=peers.PYTHON)
            workers["requests"] = stack.enter_context(by)
        for threads in (1, 32):
            place = f"{threads} thread{'s' * (threads > 1)}"
            found = turns(workers, rounds, threads=threads, calls=int(CALLS * share))
            micros = [each["ours"]["cpu"] * 1e6 for each in found]
            yield Figure.of(micros, f"CPU of a blocking payout, {place}", "µs")
            if "requests" in workers:
                ratios = [each["ours"]["cpu"] / each["requests"]["cpu"] for each in found]
                what = f"CPU of a blocking payout over requests.Session, {place}"
                yield Figure.of(ratios, what, at_most=0.2)
