"""Processes that share one limit through a real store, counted by a service that takes its time.

    python -m tests.campaigns.shared_limit postgresql 130
    python -m tests.campaigns.shared_limit valkey 130 --processes 16 --tasks 64
    python -m tests.campaigns.shared_limit valkey 130 --limit 6000 --processes 16 --delay 0.02 --busy
    python -m tests.campaigns.shared_limit valkey 300 --limit 6000 --faults

`--delay` is that of a round trip to the store; `--busy` keeps one CPU busy. With `--faults` one happens every
ten seconds: a process is killed, one stands still for five seconds, the store's clock is set 45 seconds
forward or an hour back, the store is restarted empty, the service takes eight times as long for five seconds.
A full limit of 60,000 needs two idle cores; a lower one shows the same. Outages of the store: `limit_outage`.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import attrs
import psycopg
import redis

from tests.campaigns.pacing import fullest_aligned, fullest_sliding
from tests.support.counting_service import CountingService
from tests.support.sending_process import TABLE, Sending, SendingProcess, Sent
from tests.support.servers import CutProxy, PostgresServer, ValkeyServer, postgres_server, valkey_server

WARM_UP = 10.0
"""Seconds that are not judged by what was used."""


class StoreServer(Protocol):
    """A store's server, and its clock."""

    url: str

    def shift(self, seconds: float) -> None:
        """Set the clock of limit stores forward, or back."""

    def restart(self) -> None:
        """Restart; rows are lost."""


class OnPostgres:
    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self.url = server.url(server.make_database())
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(TABLE)

    def shift(self, seconds: float) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("UPDATE payments_test_clock SET seconds = seconds + %s", [seconds])

    def restart(self) -> None:
        self._server.restart()


class OnValkey:
    def __init__(self, server: ValkeyServer) -> None:
        self._server = server
        self.url = server.url()

    def shift(self, seconds: float) -> None:
        with redis.Redis.from_url(self.url) as client:
            client.incrbyfloat("payments_test_clock", seconds)

    def restart(self) -> None:
        self._server.stop()
        self._server.start()


@contextlib.contextmanager
def store_server(kind: str, delay: float) -> Iterator[StoreServer]:
    """A server of one kind, so many seconds away."""
    server: Any
    with postgres_server() if kind == "postgresql" else valkey_server() as server:
        store = OnPostgres(server) if kind == "postgresql" else OnValkey(server)
        with CutProxy(server.address, delay=delay / 2) as proxy:
            if delay:
                store.url = store.url.replace(f":{server.port}", f":{proxy.port}")
            yield store


@contextlib.contextmanager
def busy_processor() -> Iterator[None]:
    """Keep one CPU busy meanwhile."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        try:
            yield
        finally:
            process.kill()


class Processes:
    """The sending processes, and what happens to them."""

    def __init__(self, options: Sending, number: int) -> None:
        self._options = options
        self.running = [SendingProcess(options) for _ in range(number)]
        for process in self.running:
            process.wait()

    def kill(self) -> None:
        """Kill one, and start another in its place."""
        place = random.randrange(len(self.running))
        self.running[place].kill()
        self.running[place] = SendingProcess(self._options)

    def stop(self, seconds: float) -> None:
        """Let one stand still."""
        process = random.choice(self.running)
        process.stop()
        time.sleep(seconds)
        process.go_on()

    def end(self) -> list[Sent]:
        """End all, and return what they did."""
        for process in self.running:
            process.finish()
        return [process.result() for process in self.running]


@attrs.frozen
class Run:
    """What one run came to."""

    limit: int
    processes: int
    seconds: float
    fullest: int
    """The most that any sixty seconds held, aligned to a clock or not."""
    fullest_second: int
    used: float
    """The part of what the limit allows after the warm-up."""
    round_trips: float
    """A second, of all processes."""
    least_share: float
    """Requests of the process with the fewest, as a part of the average."""
    failed: dict[str, int]

    def breaches(self, *, quiet: bool) -> list[str]:
        """What must not be; `quiet`: nothing was disturbed."""
        most = 3 * (
            10.0 + 3.75 * self.processes
        )  # at most three for a change: 75 for 4 processes, 210 for 16
        facts = {
            "refused": self.fullest > self.limit,
            "unused": quiet and self.used < 0.97,
            "unfair": quiet and self.least_share < 0.9,
            "round trips": quiet and self.round_trips > most,
        }
        return [name for name, is_so in facts.items() if is_so]

    def __str__(self) -> str:
        return (
            f"{self.used:.2%} of {self.limit} a minute for {self.seconds:.0f} s; "
            f"fullest minute {self.fullest}; {self.round_trips:.1f} round trips a second; "
            f"least share {self.least_share:.2f} of the average; failed {self.failed}"
        )


def run(
    store: StoreServer,
    seconds: float,
    *,
    limit: int,
    processes: int,
    tasks: int,
    faults: bool = False,
    leaves_room: bool = True,
    warm_up: float = WARM_UP,
) -> Run:
    """Saturate the limit for so many seconds."""
    with CountingService() as service:
        fleet = Processes(
            Sending(service.base_url, store.url, limit, tasks, processes, leaves_room), processes
        )
        began = time.monotonic()
        if faults:
            _disturb(began + seconds, _faults(fleet, store, service))
        time.sleep(max(began + seconds - time.monotonic(), 0.0))
        ended = time.monotonic()
        moments = sorted(service.counted())
        sent = fleet.end()
    counted = sum(began + warm_up <= moment < ended for moment in moments)
    per_process = [each.sent for each in sent]
    return Run(
        limit,
        processes,
        seconds,
        max(fullest_sliding(moments), fullest_aligned(moments)),
        fullest_sliding(moments, 1.0),
        counted / (limit * (ended - began - warm_up) / 60.0),
        sum(each.round_trips for each in sent) / (ended - began),
        min(per_process) * len(per_process) / max(sum(per_process), 1),
        {name: count for each in sent for name, count in each.failed.items()},
    )


def _faults(fleet: Processes, store: StoreServer, service: CountingService) -> list[Callable[[], Any]]:
    return [
        fleet.kill,
        lambda: fleet.stop(5.0),
        lambda: store.shift(45.0),
        store.restart,
        lambda: service.slow(5.0),
        lambda: store.shift(-3600.0),
    ]


def _disturb(until: float, faults: list[Callable[[], Any]]) -> None:
    """One fault after the other, every ten seconds."""
    begun = time.monotonic() + WARM_UP
    for number, fault in enumerate(itertools.cycle(faults)):
        moment = begun + 10.0 * number
        if moment > until - 5.0:
            return
        time.sleep(max(moment - time.monotonic(), 0.0))
        fault()


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.shared_limit")
    parser.add_argument("store", choices=("postgresql", "valkey"))
    parser.add_argument("seconds", type=float)
    parser.add_argument("--limit", type=int, default=60_000, help="requests a minute")
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--tasks", type=int, default=256, help="of each process")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds of a round trip to the store")
    parser.add_argument("--busy", action="store_true", help="keep one CPU busy")
    parser.add_argument("--faults", action="store_true")
    parser.add_argument("--no-room", action="store_true", help="ablation: must overfill a minute")
    options = parser.parse_args()
    with store_server(options.store, options.delay) as store, contextlib.ExitStack() as load:
        if options.busy:
            load.enter_context(busy_processor())
        found = run(
            store,
            options.seconds,
            limit=options.limit,
            processes=options.processes,
            tasks=options.tasks,
            faults=options.faults,
            leaves_room=not options.no_room,
        )
    print(f"{options.store}, {options.processes} processes of {options.tasks} tasks: {found}")
    if options.no_room:
        raise SystemExit(0 if found.fullest > options.limit else 1)
    raise SystemExit(1 if found.breaches(quiet=not options.faults) else 0)


if __name__ == "__main__":
    main()
