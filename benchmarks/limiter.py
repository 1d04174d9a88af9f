"""What does pacing cost, and how much of the limit does it leave unused?"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.answer_server import answering
from benchmarks.figures import Figure
from benchmarks.peers import Peers
from benchmarks.suite import alone
from benchmarks.wire import PAYOUT_ANSWER
from benchmarks.worker import Worker, started

NAME = "limiter"
QUESTION = (
    "What do pacing and the frame for retries add to a call that need not wait? How much of 60,000 a minute "
    "does a saturated process use, is anything refused, however the service draws its minutes, at what CPU?"
)
FULL = 1_000
"""Creations a second at the limit: times CPU a call, it is the share of a core on a busy machine, too."""
CONTENDERS = "benchmarks.contenders"


def frame(peers: Peers, rounds: int, times: int) -> Iterator[Figure]:
    """P5."""
    with started(f"{CONTENDERS}.sdk_frame") as worker:
        found = [worker.ask(what="frame", times=times) for _ in range(rounds + 1)][1:]
        asked = worker.ask(what="asked")["asked"]
    micros = {name: [each[name] * 1e6 for each in found] for name in ("frame", "gate")}
    yield Figure.of(micros["frame"], "pacing and retry frame of a call", "µs", target="P5", at_most=3.0)
    yield Figure.of(
        [asked / 10], "tasks, timers and futures of a call, sending aside", "", target="P5", at_most=0.0
    )
    yield Figure.of(micros["gate"], "entering and leaving the gate", "µs", chart="gate", label="payments-sdk")
    if peers.present:
        with peers.start(f"{CONTENDERS}.aiolimiter_frame") as theirs:
            limited = [theirs.ask(times=times)["gate"] * 1e6 for _ in range(rounds + 1)][1:]
        yield Figure.of(limited, "entering and leaving aiolimiter's", "µs", chart="gate", label="aiolimiter")


def saturated(worker: Worker, seconds: float) -> Iterator[Figure]:
    """P6 in virtual time."""
    found = worker.ask(what="virtual", seconds=seconds)
    what = "share of 60,000 a minute that is used, from the second minute on"
    yield Figure.of([found["share"] * 100], what, "%", target="P6", at_least=99.5, note="virtual time")
    burst = worker.ask(what="burst", seconds=61.5)
    for name, each in (("saturated", found), ("after a burst of 60,000", burst)):
        for window in ("fixed", "sliding"):
            what = f"refused in {window} minutes, {name}, of {each['requests']:,}"
            yield Figure.of([each[window]], what, "", target="P6", at_most=0.0, note="virtual time")
    yield Figure.of(
        [burst["took"]],
        "60,000 of an idle key, when asked",
        "s",
        target="P6",
        at_most=12.0,
        note="virtual time",
    )


def at_full_rate(worker: Worker, seconds: float) -> Iterator[Figure]:
    """P6 over TCP."""
    found = worker.ask(what="tcp", seconds=seconds)
    what = "of a core that a full key takes, 60,000 a minute over TCP"
    yield Figure.of([found["cpu"] * FULL * 100], what, "%", target="P6", at_most=20.0)
    yield Figure.of([found["rate"]], "creations a minute meanwhile", "", note="falls on a busy machine")


def run(peers: Peers, *, quick: bool) -> list[Figure]:
    """The frame, the share, and the CPU."""
    figures = [*frame(peers, 3 if quick else 7, 3_000 if quick else 10_000)]
    with answering(PAYOUT_ANSWER) as url, started(f"{CONTENDERS}.sdk_saturated", url) as worker:
        figures += [*saturated(worker, 120.0 if quick else 180.0)]
        figures += [*at_full_rate(worker, 4.0 if quick else 15.0)]
    return figures


CHARTS = {"gate": "Entering and leaving an open gate, µs"}


def profile() -> str:
    """Where the frame's time goes."""
    with started(f"{CONTENDERS}.sdk_frame") as worker:
        return worker.profile(what="frame", times=10_000)


if __name__ == "__main__":
    alone(NAME, QUESTION, run)
