"""What does a whole `payouts.create` cost in CPU, beside bare aiohttp and other SDKs?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from benchmarks import counting
from benchmarks.answer_server import answering
from benchmarks.figures import Figure
from benchmarks.peers import Peers
from benchmarks.suite import alone
from benchmarks.wire import COMPLETION_ANSWER, HEADERS, PAYOUT_ANSWER, REFUSAL
from benchmarks.worker import Worker, started

NAME = "call_cost"
QUESTION = (
    "What does a checked, keyed, paced, typed `payouts.create` cost in CPU, with 1, 64 and 256 under way, "
    "against what a careful user writes with bare aiohttp, and against other SDKs?"
)
OURS, BEFORE, UVLOOP, PLAIN, BARE = (
    "payments-sdk",
    "payments-sdk, arguments made before",
    "payments-sdk, uvloop",
    "payments-sdk, fallback",
    "aiohttp by hand",
)
CALL, CALL_BARE = "payments-sdk, the call", "aiohttp by hand, the call"
CALL_UVLOOP, CALL_BARE_UVLOOP = "payments-sdk, the call, uvloop", "aiohttp by hand, the call, uvloop"
STRIPE, OPENAI = "stripe on aiohttp", "openai on aiohttp"
CALLS = dict.fromkeys(
    (OURS, BEFORE, UVLOOP, PLAIN, BARE, CALL, CALL_BARE, CALL_UVLOOP, CALL_BARE_UVLOOP), 4_000
)
"""Calls of one round; a peer's, which take longer, are fewer."""
PEER_CALLS = 1_000
WAYS: dict[str, tuple[str, str, float | None]] = {
    OURS: (BARE, "arguments made for each call", 0.58),
    BEFORE: (BARE, "arguments made before", None),
    UVLOOP: (BARE, "ours on uvloop", 0.58),
    PLAIN: (BARE, "on aiohttp's public parts only", 0.95),
    CALL: (CALL_BARE, "the call", None),
    CALL_UVLOOP: (CALL_BARE_UVLOOP, "the call, both on uvloop", None),
}
"""Against which of aiohttp's each of ours is measured, how it is described, and its target (P1)."""
ROUNDS = 7
CONTENDERS = "benchmarks.contenders"
Rounds = list[dict[str, float]]
"""For each round, CPU seconds a call by contender."""


@contextmanager
def contenders(peers: Peers) -> Iterator[dict[str, Worker]]:
    """A process for each, started and waiting."""
    with ExitStack() as stack:
        url = stack.enter_context(answering(PAYOUT_ANSWER))
        call = stack.enter_context(answering(PAYOUT_ANSWER, headers=HEADERS))
        chat = stack.enter_context(answering(COMPLETION_ANSWER, "200 OK"))
        ours: dict[str, tuple[str, ...]] = {
            OURS: ("sdk_calls", url),
            BEFORE: ("sdk_calls", url, "before"),
            UVLOOP: ("sdk_calls", url, "each", "uvloop"),
            PLAIN: ("sdk_calls", url, "each", "asyncio", "session"),
            BARE: ("aiohttp_calls", url),
            CALL: ("sdk_calls", call, "call"),
            CALL_BARE: ("aiohttp_calls", call, "asyncio", "call"),
            CALL_UVLOOP: ("sdk_calls", call, "call", "uvloop"),
            CALL_BARE_UVLOOP: ("aiohttp_calls", call, "uvloop", "call"),
        }
        theirs: dict[str, tuple[str, ...]] = {
            STRIPE: ("stripe_calls", url),
            OPENAI: ("openai_calls", chat),
            "httpx by hand": ("httpx_calls", url),
            "openai on httpx": ("openai_calls", chat, "httpx"),
            "stripe on httpx": ("stripe_calls", url, "httpx"),
        }
        workers = {
            name: stack.enter_context(started(f"{CONTENDERS}.{module}", *arguments))
            for name, (module, *arguments) in ours.items()
        }
        for name, (module, *arguments) in theirs.items() if peers.present else ():
            workers[name] = stack.enter_context(peers.start(f"{CONTENDERS}.{module}", *arguments))
        yield workers


def rounds(workers: dict[str, Worker], in_flight: int, times: int, scale: float) -> Rounds:
    """Everybody in turn, round after round: what disturbs one disturbs all. The first does not count."""
    found: Rounds = []
    for _ in range(times + 1):
        found.append(
            {
                name: worker.ask(times=int(CALLS.get(name, PEER_CALLS) * scale), in_flight=in_flight)["cpu"]
                for name, worker in workers.items()
            }
        )
    return found[1:]


def over(found: Rounds, ours: str, theirs: str) -> list[float]:
    """The ratios of two contenders, round by round."""
    return [each[ours] / each[theirs] for each in found]


def judged(found: Rounds, in_flight: int) -> Iterator[Figure]:
    """P1 and P2 of one number in flight."""
    for name, (hand, way, goal) in WAYS.items():
        what = f"CPU of payouts.create over aiohttp by hand, {in_flight} in flight, {way}"
        target = "P1" if goal else None
        yield Figure.of(over(found, name, hand), what, target=target, at_most=goal)
    for name, most in ((STRIPE, 0.30), (OPENAI, 0.20)):
        if name in found[0]:
            what = f"CPU of payouts.create over {name}, {in_flight} in flight"
            yield Figure.of(over(found, OURS, name), what, target="P2", at_most=most)


def charted(found: Rounds) -> Iterator[Figure]:
    """Everybody over bare aiohttp, 64 in flight."""
    for name in found[0]:
        what = f"{name}, 64 in flight, over aiohttp by hand"
        yield Figure.of(over(found, name, BARE), what, chart="cpu", label=name)
    micros = [each[BARE] * 1e6 for each in found]
    yield Figure.of(micros, "aiohttp by hand, 64 in flight, CPU a call", "µs")


COUNTED: dict[str, tuple[str, str, Any]] = {
    "each": ("each", "arguments made for each call", 0.47),
    "before": ("each", "arguments made before", None),
    "call": ("call", "the call, arguments made for each call", {1: 0.53, 64: 0.50}),
    "call_before": ("call", "the call, arguments made before", {64: 0.45}),
    "call_uvloop": ("call_uvloop", "the call, both on uvloop", 0.51),
    "refused": ("refused", "the call, refused with a 422", 1.1),
}
"""What is counted in instructions: against which of aiohttp's, how it is described, and its target."""


def counts() -> dict[str, int]:
    """Instructions of one call of each, by name and number in flight."""
    with ExitStack() as stack:
        urls = [
            stack.enter_context(answering(PAYOUT_ANSWER)),
            stack.enter_context(answering(PAYOUT_ANSWER, headers=HEADERS)),
            stack.enter_context(answering(REFUSAL, "422 Unprocessable Entity", headers=HEADERS)),
        ]
        return counting.counted(f"{CONTENDERS}.counted_calls", *urls)


def instructions(quick: bool) -> Iterator[Figure]:
    """The same in instructions, which a busy machine does not change; none without valgrind."""
    if not counting.possible():
        return
    found = [counts() for _ in range(1 if quick else 3)]
    for in_flight in (1, 64):
        for made, (hand, way, goals) in COUNTED.items():
            goal = goals.get(in_flight) if isinstance(goals, dict) else goals
            ratios = [each[f"{made}/{in_flight}"] / each[f"{hand}_aiohttp/{in_flight}"] for each in found]
            what = f"instructions of payouts.create over aiohttp by hand, {in_flight} in flight, {way}"
            yield Figure.of(ratios, what, target="P1" if goal else None, at_most=goal)
        for made, name in (("each", "payments-sdk"), ("call", "payments-sdk, the call")):
            thousands = [each[f"{made}/{in_flight}"] / 1_000 for each in found]
            yield Figure.of(thousands, f"{name}, {in_flight} in flight", "thousand instructions a call")


def run(peers: Peers, *, quick: bool) -> list[Figure]:
    """1, 64 and 256 in flight; those of the peers that are far behind only with 64."""
    times, scale = (2, 0.25) if quick else (ROUNDS, 1.0)
    figures: list[Figure] = []
    with contenders(peers) as workers:
        near: dict[str, Any] = {
            name: worker for name, worker in workers.items() if name in (*CALLS, STRIPE, OPENAI)
        }
        for in_flight in (1, 64, 256):
            found = rounds(near, in_flight, times, scale)
            figures.extend(judged(found, in_flight))
            if in_flight == 64:
                far = rounds(workers, in_flight, 1 if quick else 3, 0.1 if quick else 0.4)
                figures.extend(charted(far))
    return [*figures, *instructions(quick)]


CHARTS = {"cpu": "CPU of a creation, 64 in flight, over aiohttp by hand (1.00)"}


def profile() -> str:
    """Where a creation's time goes."""
    with answering(PAYOUT_ANSWER) as url, started(f"{CONTENDERS}.sdk_calls", url) as worker:
        return worker.profile(times=4_000, in_flight=64)


if __name__ == "__main__":
    alone(NAME, QUESTION, run)
