"""Processes under one guard whose sums are in a real store; the service's books judge every window.

    python -m tests.campaigns.guard sqlite 65000
    python -m tests.campaigns.guard sqlite 65000 --quiet            no kills, outages or restarts
    python -m tests.campaigns.guard postgresql 2000 --without held  a rule left out: must be a breach

Windows are of seconds, so what is made for hours (lease, settling, reports) is scaled down in the processes.
The service loses answers and refuses; requests are late, abandoned, sent by two processes, repeated after a
kill. Every three seconds a process is killed or stands still, the store is away, restarted
or emptied, or clocks are set.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import math
import random
import shutil
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import attrs

from payments_async._files import AtomicFile
from tests.support.disturbed import DisturbedSandbox
from tests.support.guarded_process import ABLATIONS, CLOCK_TABLE, WALL, Guarded, GuardedProcess, lines_of
from tests.support.servers import PostgresServer, postgres_server

STORES: Final = ("sqlite", "postgresql")
MOST: Final = {"GHS": "600", "XOF": "2000"}
SUMS: Final = (("GHS", "60000", 2), ("GHS", "200000", 10), ("XOF", "200000", 2), ("XOF", "650000", 10))
WORDS: Final = (
    *("lost_response", "lost_response", "lost_request", "reset", "cut_body", "bad_json", "slow:300ms"),
    *("http:500", "http:503", "http:422", "http:409", "http:400"),
)
ROUNDING: Final = 2e-6
"""Of the sandbox's times, seconds."""
Payout = tuple[float, str, Decimal]
"""When it was made by the service's clock, currency and amount."""
Span = tuple[float, float]
EVERY: Final = 3.0
"""Seconds from one disturbance to the next."""


class InFile:
    """A store in a file, and what may happen to it."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "guard.sqlite"
        self.address = f"sqlite:{self._path}"

    def be_away(self, seconds: float) -> None:
        """Answer nothing, then go on with what it had."""
        address = f"{self._path.as_uri()}?mode=rw"
        with contextlib.suppress(sqlite3.OperationalError):  # it was lost, and nobody has made another
            connection = sqlite3.connect(address, uri=True, timeout=30, isolation_level=None)
            with contextlib.closing(connection):
                connection.execute("BEGIN EXCLUSIVE")
                time.sleep(seconds)

    def empty(self) -> None:
        for path in (self._path, Path(f"{self._path}-journal")):
            path.unlink(missing_ok=True)

    def set_clock(self, seconds: float) -> None:
        """It has none of its own."""


class InPostgres:
    """The same in a database, which has a clock of its own."""

    def __init__(self, server: PostgresServer) -> None:
        self._server, self._database = server, server.make_database()
        self.address = server.url(self._database)
        server.query(self._database, f"CREATE TABLE {CLOCK_TABLE} AS SELECT 0::float8 AS seconds")

    def be_away(self, seconds: float) -> None:
        self._server.stop("immediate")
        time.sleep(seconds)
        self._server.start()

    def empty(self) -> None:
        self._server.query(self._database, "TRUNCATE payments.guards, payments.guard_amounts")

    def set_clock(self, seconds: float) -> None:
        self._server.query(self._database, f"UPDATE {CLOCK_TABLE} SET seconds = {seconds}")


StorePlace = InFile | InPostgres


@contextlib.contextmanager
def place_of(kind: str, folder: Path) -> Iterator[StorePlace]:
    if kind == "sqlite":
        yield InFile(folder)
    else:
        with postgres_server() as server:
            yield InPostgres(server)


@attrs.define
class Report:
    store: str
    seconds: float = 0.0
    calls: int = 0
    results: Counter[str] = attrs.field(factory=Counter)
    payouts: int = 0
    kills: int = 0
    events: Counter[str] = attrs.field(factory=Counter)
    problems: list[str] = attrs.field(factory=list)


class Campaign:
    def __init__(self, place: StorePlace, options: Guarded, sandbox: DisturbedSandbox, seed: int) -> None:
        self._place, self._options, self._sandbox = place, options, sandbox
        self._chance = random.Random(seed)
        self.report = Report(place.address.partition(":")[0])
        self.begun: list[Span] = []
        """From when to when an operator had the windows trusted, by the machine's monotonic clock."""
        self._running: list[GuardedProcess] = []

    def start(self) -> None:
        """Start all; the first has the empty store trusted."""
        self._set_wall(0.0)
        numbers = range(self._options.processes)
        self._running = [self._process(number, begins=not number) for number in numbers]

    def begin(self) -> None:
        """Have the windows trusted from now on."""
        before = time.monotonic()
        process = self._process(0, begins=True, tasks=0)
        process.finish()
        process.wait(60)
        self.begun.append((before, time.monotonic()))

    def end(self) -> None:
        for process in self._running:
            process.finish()
        codes = [process.wait(60) for process in self._running]
        if any(codes):
            self.report.problems.append(f"processes ended with {codes}")

    def disturb(self) -> None:
        often = (self._kill, self._set_clocks, self._stop, self._be_away)
        kinds = (*often[:3], self._lose, *often, *often, self._replace, *often)
        kind = kinds[self.report.events.total() % len(kinds)]
        self.report.events[kind.__name__.strip("_")] += 1
        kind()

    def calls(self) -> int:
        return sum(log.read_bytes().count(b"\n") for log in Path(self._options.folder).glob("*.log"))

    def _process(self, number: int, **options: Any) -> GuardedProcess:
        return GuardedProcess(attrs.evolve(self._options, number=number, **options), self._sandbox.api_key)

    def _kill(self) -> None:
        for number in self._chance.sample(range(len(self._running)), self._chance.choice((1, 1, 3))):
            self._running[number].kill()
            self._running[number] = self._process(number)
            self.report.kills += 1

    def _stop(self) -> None:
        with self._chance.choice(self._running).stopped():
            time.sleep(self._options.lease - 0.5)

    def _set_clocks(self) -> None:
        """Set the clocks of the machine and of the database a day and an hour ahead, back, or right."""
        for set_clock in (self._set_wall, self._place.set_clock):
            set_clock(self._chance.choice((-25 * 3_600.0, 0.0, 25 * 3_600.0)))

    def _set_wall(self, seconds: float) -> None:
        with AtomicFile(Path(self._options.folder) / WALL) as whole:
            whole.file.write(str(seconds).encode())

    def _be_away(self) -> None:
        self._place.be_away(self._chance.uniform(0.5, 2.5))

    def _lose(self) -> None:
        """Lose the state; the windows are trusted once they have passed."""
        self._place.empty()

    def _replace(self) -> None:
        """Lose the state; an operator has the windows trusted at once."""
        self._place.empty()
        self.begin()


def run(
    kind: str,
    calls: int,
    *,
    processes: int = 8,
    tasks: int = 24,
    seed: int = 1,
    share: float = 0.03,
    every: float = EVERY,
    sums: float = 1.0,
    windows: int = 1,
    **more: Any,
) -> Report:
    """Make so many calls, and judge them.

    `share`: of the service's answers that are disturbed. `every`: seconds from one kill, outage or restart to
    the next. `sums`, `windows`: by what sums and windows are multiplied.
    """
    folder = Path(tempfile.mkdtemp())
    try:
        with place_of(kind, folder) as place, DisturbedSandbox(seed, share=share, words=WORDS) as sandbox:
            options = Guarded(
                sandbox.base_url,
                place.address,
                str(folder),
                0,
                processes,
                MOST,
                [(code, str(int(int(most) * sums)), seconds * windows) for code, most, seconds in SUMS],
                tasks,
                seed,
                **more,
            )
            campaign = Campaign(place, options, sandbox, seed)
            _pay(campaign, calls, every)
            _judge(campaign.report, options, sandbox, campaign.begun)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return campaign.report


def _pay(campaign: Campaign, calls: int, every: float) -> None:
    campaign.start()
    began = disturbed = time.monotonic()
    while (done := campaign.calls()) < calls or (every < math.inf and not campaign.report.kills):
        time.sleep(0.1)
        if not done:
            disturbed = time.monotonic()
        if time.monotonic() - disturbed > every:
            campaign.disturb()
            disturbed = time.monotonic()
    campaign.end()
    campaign.report.seconds = time.monotonic() - began


def _judge(
    report: Report, options: Guarded, sandbox: DisturbedSandbox, begun: Sequence[tuple[float, float]]
) -> None:
    ahead = sandbox.clock.now() - time.monotonic()
    entries = sandbox.books.payouts()
    payouts = [(each.created_at - ahead, each.currency, each.amount) for each in entries]
    report.payouts = len(payouts)
    grace = options.lease + options.settling + 1.0  # what the state had forgotten by then may still arrive
    # on a busy machine others pay before the operator's process has ended: what was lost counts no more then
    edges = [float("-inf"), *(edge for at, end in begun for edge in (at, end + grace)), float("inf")]
    for since, until in zip(edges[::2], edges[1::2], strict=True):
        report.problems += overfull((each for each in payouts if since <= each[0] < until), options.sums)
    lines = [line for path in Path(options.folder).glob("*.log") for line in lines_of(path)]
    report.calls, report.results = len(lines), Counter(result for _, result in lines)


def overfull(payouts: Iterable[Payout], sums: Sequence[tuple[str, str, int]]) -> list[str]:
    """Where the service made more than a sum allows in a window, wherever it begins: the worst of each."""
    made, found = sorted(payouts), []
    for currency, most, seconds in sums:
        mine = [(at, amount) for at, name, amount in made if name == currency]
        used, worst, oldest = Decimal(0), (Decimal(0), 0.0), 0
        for at, amount in mine:
            used += amount
            while mine[oldest][0] <= at - seconds + ROUNDING:
                used -= mine[oldest][1]
                oldest += 1
            worst = max(worst, (used, at))
        if worst[0] > Decimal(most):
            found.append(f"{currency} {worst[0]} within {seconds} s until {worst[1]:.3f}, {most} allowed")
    return found


def main() -> None:
    logging.disable()  # of what the sandbox cannot answer to a process that was killed
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.guard")
    parser.add_argument("store", choices=STORES)
    parser.add_argument("calls", type=int)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--tasks", type=int, default=24, help="of each process")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sums", type=float, default=1.0, help="by what the sums are multiplied")
    parser.add_argument("--windows", type=int, default=1, help="by what their windows are multiplied")
    parser.add_argument("--quiet", action="store_true", help="no kills, outages or restarts")
    parser.add_argument("--without", choices=[*ABLATIONS], default="", help="a rule: must be a breach")
    given = vars(parser.parse_args())
    store, calls, quiet = (given.pop(name) for name in ("store", "calls", "quiet"))
    found = run(store, calls, every=math.inf if quiet else EVERY, **given)
    print(found)
    raise SystemExit(bool(found.problems) != bool(given["without"]))


if __name__ == "__main__":
    main()
