"""How many calls a second does blocking code make, and how long does the slowest wait?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from benchmarks.answer_server import answering
from benchmarks.figures import Figure
from benchmarks.peers import Peers
from benchmarks.suite import alone
from benchmarks.wire import PAYOUT_ANSWER
from benchmarks.worker import CLIENT_CORE, Worker, started

NAME = "blocking"
QUESTION = (
    "How many payouts a second does blocking code create, from 1 to 256 threads, against requests and "
    "others? The process is held on one core, or may use two, one of them the answering server's, too."
)
OURS, STOCK, PORTAL, REQUESTS = (
    "payments-sdk",
    "payments-sdk, stock loop",
    "AsyncPayments, portal.call",
    "requests",
)
PEERS = (REQUESTS, "urllib3", "httpx", "stripe")
CORES = {"one core": CLIENT_CORE, "two cores": None}
GOALS = {("one core", 1): 5.0, ("one core", 32): 7.0, ("two cores", 1): 2.4, ("two cores", 32): 6.5}
STEADY = 1.0
"""Seconds of a round of 32 threads, of a quick run, too: when the machine stalls, all 32 calls under way are
late together, and of the calls of a shorter round these alone are more than the one in a hundred."""
CROWDS = (64, 256)
"""Threads, beyond those of the targets."""
Round = dict[str, dict[str, float]]
"""What each contender told of one round."""
CHARTS = {
    "rate_1": "Blocking calls a second from one thread, over requests (1.00)",
    "rate_32": "Blocking calls a second from 32 threads, over requests (1.00)",
}


@contextmanager
def contenders(peers: Peers, core: int | None) -> Iterator[dict[str, Worker]]:
    """A process for each, all waiting."""
    kinds = {OURS: "payments", STOCK: "stock", PORTAL: "portal"}
    with ExitStack() as stack:
        url = stack.enter_context(answering(PAYOUT_ANSWER))
        workers = {
            name: stack.enter_context(started("benchmarks.contenders.blocking_ours", kind, url, core=core))
            for name, kind in kinds.items()
        }
        for name in PEERS if peers.present else ():
            peer = peers.start("benchmarks.contenders.blocking_peers", name, url, core=core)
            workers[name] = stack.enter_context(peer)
        yield workers


def rounds(workers: dict[str, Worker], threads: int, times: int, seconds: float) -> list[Round]:
    """Everybody in turn, round after round; the first does not count."""
    found = [
        {name: worker.ask(threads=threads, seconds=seconds) for name, worker in workers.items()}
        for _ in range(times + 1)
    ]
    return found[1:]


def over(found: list[Round], ours: str, theirs: str, what: str) -> list[float]:
    """The ratios of two contenders, round by round."""
    return [each[ours][what] / each[theirs][what] for each in found]


def against_requests(found: list[Round], where: str, threads: int) -> Iterator[Figure]:
    """P3, and at 32 threads P11."""
    place = f"{threads} thread{'s' * (threads > 1)}, {where}"
    what = f"blocking payouts a second over requests.Session, {place}"
    at_least = GOALS[where, threads]
    yield Figure.of(over(found, OURS, REQUESTS, "rate"), what, target="P3", at_least=at_least)
    for kind, name in (("cpu", "CPU"), ("p50", "median time")):
        values = over(found, OURS, REQUESTS, kind)
        yield Figure.of(values, f"{name} of a blocking payout over requests.Session, {place}")
    if threads > 1:
        for kind, note in (("p99", "by the clock"), ("p99_cpu", "by the CPU the process used meanwhile")):
            what = f"99th percentile of a call over requests.Session, {place}"
            values = over(found, OURS, REQUESTS, kind)
            yield Figure.of(values, what, target="P11", at_most=0.1, note=note)


def beside(found: list[Round], where: str, threads: int) -> Iterator[Figure]:
    """Everybody's rate, over that of requests where there is one, and over `portal.call`."""
    place = f"{threads} thread{'s' * (threads > 1)}, {where}"
    for name in found[0] if REQUESTS in found[0] else ():
        chart = f"rate_{threads}" if where == "one core" else ""
        values = over(found, name, REQUESTS, "rate")
        yield Figure.of(values, f"{name}: calls a second over requests, {place}", chart=chart, label=name)
    yield Figure.of(over(found, OURS, PORTAL, "cpu"), f"CPU of Payments over {PORTAL}, {place}")
    for what, unit, factor in (
        ("rate", "calls/s", 1),
        ("cpu", "µs of CPU a call", 1e6),
        ("p99", "ms, p99", 1e3),
    ):
        yield Figure.of([each[OURS][what] * factor for each in found], f"{OURS}, {place}", unit)


def crowded(found: list[Round], threads: int) -> Iterator[Figure]:
    """What a call costs when so many threads call."""
    place = f"{threads} threads, one core"
    if REQUESTS in found[0]:
        for kind, name in (("rate", "blocking payouts a second"), ("cpu", "CPU of a blocking payout")):
            yield Figure.of(over(found, OURS, REQUESTS, kind), f"{name} over requests.Session, {place}")
        p99 = over(found, OURS, REQUESTS, "p99")
        yield Figure.of(p99, f"99th percentile of a call over requests.Session, {place}")
    yield Figure.of(over(found, OURS, PORTAL, "cpu"), f"CPU of Payments over {PORTAL}, {place}")
    yield Figure.of([each[OURS]["cpu"] * 1e6 for each in found], f"{OURS}, {place}", "µs of CPU a call")


def run(peers: Peers, *, quick: bool) -> list[Figure]:
    """On one core and on two, from 1 thread and from 32; a few also from 64 and 256, on one core."""
    times, seconds = (2, 0.3) if quick else (7, 1.0)
    figures: list[Figure] = []
    for where, core in CORES.items():
        with contenders(peers, core) as workers:
            for threads in (1, 32):
                found = rounds(workers, threads, times, seconds if threads == 1 else STEADY)
                if peers.present:
                    figures.extend(against_requests(found, where, threads))
                figures.extend(beside(found, where, threads))
            few = {name: worker for name, worker in workers.items() if name in (OURS, PORTAL, REQUESTS)}
            for threads in CROWDS if where == "one core" else ():
                figures.extend(crowded(rounds(few, threads, 1 if quick else 3, STEADY), threads))
    return figures


def profile() -> str:
    """Where a blocking creation's time goes, in both threads."""
    ours = "benchmarks.contenders.blocking_ours"
    with answering(PAYOUT_ANSWER) as url, started(ours, "payments", url) as worker:
        return worker.profile(times=4_000)


if __name__ == "__main__":
    alone(NAME, QUESTION, run)
