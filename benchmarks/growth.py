"""Does a call cost more when many are under way, or when another process works beside?"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

from benchmarks.answer_server import answering
from benchmarks.figures import Figure
from benchmarks.peers import Peers
from benchmarks.suite import alone
from benchmarks.wire import PAYOUT_ANSWER
from benchmarks.worker import CLIENT_CORE, SERVER_CORE, Worker, started

NAME = "growth"
QUESTION = (
    "Does a call cost more CPU with 1,000 under way than with one? Does a second process, on the other core, "
    "double what is sent?"
)
SIZES = (1, 16, 64, 256, 1_000)
CALLS = 6_000
CHARTS = {"cpu": "CPU of a call by how many are under way, µs"}


def rounds(worker: Worker, times: int, scale: float) -> list[dict[int, float]]:
    """CPU seconds a call by how many are under way, all in turn; the first round does not count."""
    found = [
        {size: worker.ask(times=int(CALLS * scale), in_flight=size)["cpu"] for size in SIZES}
        for _ in range(times + 1)
    ]
    return found[1:]


def one_process(times: int, scale: float) -> list[Figure]:
    """P9: over one under way, which pays for waking up with every answer, and over the cheapest."""
    with answering(PAYOUT_ANSWER) as url, started("benchmarks.contenders.sdk_calls", url) as worker:
        found = rounds(worker, times, scale)
    most, least = SIZES[-1], SIZES[0]
    goal: dict[str, Any] = {"target": "P9", "at_most": 1.2}
    return [
        Figure.of(
            [each[most] / each[least] for each in found],
            f"CPU a call, {most:,} under way over {least}",
            **goal,
        ),
        Figure.of(
            [each[most] / min(each.values()) for each in found],
            f"CPU a call, {most:,} under way over the cheapest of {', '.join(map(str, SIZES[:-1]))}",
            **goal,
        ),
        *(
            Figure.of(
                [each[size] * 1e6 for each in found],
                f"CPU a call, {size:,} under way",
                "µs",
                chart="cpu",
                label=f"{size:,}",
            )
            for size in SIZES
        ),
    ]


def two_processes(times: int, scale: float) -> Figure:
    """P11: what two can send over what one can, as their CPU a call has it.

    By the clock it cannot be told on two cores, for the answering server needs one of them, too.
    """
    question = {"times": int(CALLS * scale), "in_flight": 64}
    with ExitStack() as stack:
        url = stack.enter_context(answering(PAYOUT_ANSWER, core=None))
        pair = [
            stack.enter_context(started("benchmarks.contenders.sdk_calls", url, core=core))
            for core in (CLIENT_CORE, SERVER_CORE)
        ]
        pool = stack.enter_context(ThreadPoolExecutor(2))
        values = []
        for _ in range(times + 1):
            single = pair[0].ask(**question)["cpu"]
            together = list(pool.map(lambda worker: worker.ask(**question)["cpu"], pair))
            values.append(sum(single / each for each in together))
    note = "by the CPU of a call, alone and together: on two cores the server takes a part of the clock"
    return Figure.of(values[1:], "two processes over one", target="P11", at_least=1.9, note=note)


def run(peers: Peers, *, quick: bool) -> list[Figure]:
    """One process with more and more under way; then two."""
    times, scale = (2, 0.3) if quick else (7, 1.0)
    return [*one_process(times, scale), two_processes(times, scale)]


def profile() -> str:
    """Where the time goes with most under way."""
    with answering(PAYOUT_ANSWER) as url, started("benchmarks.contenders.sdk_calls", url) as worker:
        return worker.profile(times=CALLS, in_flight=SIZES[-1])


if __name__ == "__main__":
    alone(NAME, QUESTION, run)
