"""What does a whole `payouts.create` cost in CPU, beside bare aiohttp and other SDKs?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from benchmarks import counting, peers
from benchmarks.answer_server import answering
from benchmarks.figures import Figure
from benchmarks.wire import COMPLETION_ANSWER, HEADERS, PAYOUT_ANSWER, REFUSAL
from benchmarks.worker import Worker, started, turns

CALLS, PEER_CALLS = 4_000, 1_000
"""Calls of one round; a peer's take longer."""
OURS = {
    ("asyncio", "direct"): ("", 0.58),
    ("uvloop", "direct"): (", both on uvloop", None),
    ("asyncio", "session"): (", on aiohttp's public parts only", 0.95),
}
"""By loop and transport: how a call of ours is described, and its target over aiohttp on that loop."""
THEIRS = {"stripe": 0.30, "openai": 0.20, "httpx": None}
"""Whose calls ours are measured against, and the target."""


@contextmanager
def contenders() -> Iterator[tuple[dict[str, Worker], dict[str, Worker]]]:
    """Ours and aiohttp's, and the peers': a process for each, started and waiting."""
    with ExitStack() as stack:
        url = stack.enter_context(answering(PAYOUT_ANSWER, headers=HEADERS))
        chat = stack.enter_context(answering(COMPLETION_ANSWER, "200 OK"))
        ours = {" ".join(way): stack.enter_context(started("sdk_calls", url, *way)) for way in OURS}
        for loop in ("asyncio", "uvloop"):
            ours[loop] = stack.enter_context(started("aiohttp_calls", url, loop))
        theirs = {}
        for name in THEIRS if peers.present() else ():
            address = chat if name == "openai" else url
            theirs[name] = stack.enter_context(started("peer_calls", name, address, python=peers.PYTHON))
        yield ours, theirs


def measured(in_flight: int, rounds: int, share: float) -> Iterator[Figure]:
    """CPU ratios, so many calls under way."""
    with contenders() as (ours, theirs):
        near = turns(ours, rounds, times=int(CALLS * share), in_flight=in_flight)
        for (loop, transport), (way, goal) in OURS.items():
            what = f"CPU of payouts.create over aiohttp by hand, {in_flight} in flight{way}"
            ratios = [each[f"{loop} {transport}"]["cpu"] / each[loop]["cpu"] for each in near]
            yield Figure.of(ratios, what, at_most=goal)
        both = {"ours": ours["asyncio direct"], **theirs}
        far = turns(both, rounds, times=int(PEER_CALLS * share), in_flight=in_flight)
        for name in theirs:
            ratios = [each["ours"]["cpu"] / each[name]["cpu"] for each in far]
            what = f"CPU of payouts.create over {name}, {in_flight} in flight"
            yield Figure.of(ratios, what, at_most=THEIRS[name])


COUNTED = {
    ("ours", "aiohttp"): ("", {1: 0.53, 64: 0.50}),
    ("ours_uvloop", "aiohttp_uvloop"): (", both on uvloop", {1: 0.51, 64: 0.51}),
    ("refused", "aiohttp_refused"): (", refused with a 422", {1: 1.1, 64: 1.1}),
}
"""What is counted in instructions: how it is described, and its targets."""


def instructions() -> Iterator[Figure]:
    """The same in instructions, which a busy machine does not change; none without valgrind."""
    with ExitStack() as stack:
        url = stack.enter_context(answering(PAYOUT_ANSWER, headers=HEADERS))
        refused = stack.enter_context(answering(REFUSAL, "422 Unprocessable Entity", headers=HEADERS))
        found = counting.counted("benchmarks.contenders.counted_calls", url, refused)
    for in_flight in (1, 64):
        for (ours, theirs), (way, goals) in COUNTED.items():
            ratio = found[f"{ours}/{in_flight}"] / found[f"{theirs}/{in_flight}"]
            what = f"instructions of payouts.create over aiohttp by hand, {in_flight} in flight{way}"
            yield Figure.of([ratio], what, at_most=goals[in_flight])


def run(rounds: int, share: float) -> Iterator[Figure]:
    """1 and 64 calls in flight."""
    for in_flight in (1, 64):
        yield from measured(in_flight, rounds, share)
    if counting.possible():
        yield from instructions()
