"""What does a client for each of many keys take?"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.answer_server import answering
from benchmarks.figures import Figure
from benchmarks.peers import Peers
from benchmarks.suite import alone
from benchmarks.wire import PAYOUT_ANSWER
from benchmarks.worker import started

NAME = "keys"
QUESTION = (
    "A platform pays with the keys of 1,000 merchants. What does it take to have a client for each, made by "
    "`with_options(api_key=...)`, beside 1,000 clients of their own, and 1,000 sessions of aiohttp on one "
    "connector?"
)
MANY = 1_000
KINDS = {
    "derived": "with_options(api_key=...)",
    "separate": "a client of its own",
    "sessions": "a session of aiohttp on a shared connector",
}
STEPS = {
    "made": ("CPU to make it", 1e6, "µs"),
    "first": ("CPU of its first payout", 1e6, "µs"),
    "second": ("CPU of its second payout", 1e6, "µs"),
    "memory": ("memory", 1 / 1024, "KiB"),
}


def taken(url: str, kind: str) -> dict[str, float]:
    """What a client of one kind takes, in a process that is started for it."""
    with started("benchmarks.contenders.keys_calls", url, kind) as worker:
        found: dict[str, float] = worker.ask(many=MANY)
    return found


def figures(rounds: list[dict[str, dict[str, float]]]) -> Iterator[Figure]:
    """Each step of each kind, then the connections."""
    for step, (what, factor, unit) in STEPS.items():
        for kind, label in KINDS.items():
            values = [found[kind][step] * factor for found in rounds]
            yield Figure.of(values, f"one more key, {label}: {what}", unit)
    for kind, label in KINDS.items():
        values = [found[kind]["connections"] for found in rounds]
        what = f"{MANY:,} keys one after the other, {label}: connections"
        yield Figure.of(values, what, "", at_most=1.0 if kind == "derived" else None)


def run(peers: Peers, *, quick: bool) -> list[Figure]:
    """All kinds in turn, round after round."""
    with answering(PAYOUT_ANSWER) as url:
        rounds = [{kind: taken(url, kind) for kind in KINDS} for _ in range(1 if quick else 5)]
    return list(figures(rounds))


def profile() -> str:
    """Where the time of derived clients and their payouts goes."""
    with (
        answering(PAYOUT_ANSWER) as url,
        started("benchmarks.contenders.keys_calls", url, "derived") as worker,
    ):
        return worker.profile(many=MANY)


if __name__ == "__main__":
    alone(NAME, QUESTION, run)
