"""One schedule: hostile runs, then a healthy service and as many runs as it takes, then the books decide."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

import attrs

from payments_async.bulk._protocol.exit_codes import exit_code
from payments_async.bulk._protocol.outcomes import OF_STATE, Outcome, Sums
from payments_async.bulk._protocol.row_state import RowState
from payments_async.bulk._protocol.stop_rules import Account

from . import judge
from .ledger import Breach, Disk, Ledger
from .loop import Deadlock, SimulatedLoop, settle
from .operator import Operator, place_foreign
from .plan import CALM, HOME, HOUR, Plan, Run, draw
from .promises import Promises
from .service import Service
from .worker import Clock, Worker, World

_SITES = {
    "home": HOME,
    "rotated key": attrs.evolve(HOME, key="key 2"),
    "other project": attrs.evolve(HOME, key="key 3"),
    "other environment": Account("sandbox", HOME.base_url, "key 4"),
    "other address": attrs.evolve(HOME, base_url="https://elsewhere.example/v1"),
}
LAST_RUNS = 8


@attrs.frozen
class Verdict:
    """What came of a schedule."""

    breach: str | None
    sometimes: Counter[str]
    steps: int


class Playable(Protocol):
    """A schedule that can be played."""

    loop: SimulatedLoop
    sometimes: Counter[str]

    def play(self) -> None:
        """Play it to its end. Raises Breach, Deadlock."""


def judged(schedule: Playable) -> Verdict:
    """Play a schedule, and say what came of it."""
    breach: str | None = None
    try:
        schedule.play()
    except Breach as found:
        breach = str(found)
    except Deadlock:
        breach = "everybody waits for somebody"
    finally:
        _bury(schedule.loop)
    return Verdict(breach, schedule.sometimes, schedule.loop.steps)


def _bury(loop: SimulatedLoop) -> None:
    """Unwind the dead; what they cannot close any more is no news."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        loop.close()
    finally:
        logging.disable(before)


def until_over(
    loop: SimulatedLoop, tasks: Sequence[asyncio.Task[None]], run: Run, drain: Callable[[], None]
) -> bool:
    """Run these programs to their ends, or until the machine dies. Returns whether it died."""
    over = loop.create_future()
    for task in tasks:
        task.add_done_callback(lambda _: settle(over, False) if all(t.done() for t in tasks) else None)
    if run.crash is not None:
        loop.alarm(run.crash, partial(settle, over, True))
    if run.drain is not None:
        loop.alarm(run.drain, drain)
    crashed: bool = loop.run(over)
    loop.clear_alarms()
    return crashed


def run_schedule(seed: object, plan: Plan | None = None) -> Verdict:
    """Play a seed's world to its end."""
    return judged(Schedule(seed, plan or draw(seed)))


class Schedule:
    """A world in motion."""

    def __init__(self, seed: object, plan: Plan) -> None:
        self._seed, self.plan = seed, plan
        self.loop = SimulatedLoop(seed)  # type: ignore[abstract] # typeshed wants sockets, signals and processes
        self.sometimes: Counter[str] = Counter()
        self._services = {
            name: Service(self.loop, plan, f"{seed}:{name}:service", self.note) for name in ("home", "other")
        }
        self._promises = Promises(list(self._services.values()))
        self._world = World(self.loop, plan, self._promises, self.note)
        self._operator = Operator(plan, random.Random(f"{seed}:operator"), self._services["home"], self.note)
        self._disk_chance = random.Random(f"{seed}:disk")
        self._last_code = 0

    def note(self, event: str) -> None:
        """Something happened that should happen sometimes."""
        self.sometimes[event] += 1

    def play(self) -> None:
        """All of it. Raises Breach."""
        place_foreign(self.plan, self._services["home"], self.note)
        for number, run in enumerate(self.plan.runs):
            self._play(f"run {number}", run)
        for service in self._services.values():
            service.healthy = True
        for number in range(LAST_RUNS):
            self._play(f"last {number}", CALM)
            if self._last_code in (0, 1) or (self._last_code == 3 and number > 2 and self.plan.excused_row):
                break
        self.loop.advance(3 * HOUR)
        disks = [self._operator.disk, *self._operator.others]
        judge.check(disks, list(self._services.values()), self.plan, self.loop.failures)

    # Runs

    def _play(self, name: str, run: Run) -> None:
        self.loop.advance(run.gap)
        self._operator.prepare(run)
        if run.clock or run.jump:
            self.note("clock forward" if run.clock + run.jump > 0 else "clock back")
        first = self._worker(name, run, self._open(f"{name} a", self._operator.disk), "a")
        workers = [first]
        if run.second == "shared ledger":
            self.note("two workers, one ledger")
            workers.append(self._worker(name, run, first.ledger, "b"))
        elif run.second == "own ledger":
            self.note("two workers, two ledgers")
            copy = self._operator.disk.copy(f"copy of {name}")
            self._operator.others.append(copy)
            workers.append(self._worker(name, run, self._open(f"{name} b", copy), "b"))
        crashed = self._run(workers, run)
        if not crashed:
            self.loop.advance(1.0)
            self._end(first)

    def _open(self, host: str, disk: Disk) -> Ledger:
        ledger = Ledger(self.loop, host, disk, self._disk_chance, self.note)
        ledger.healthy = self._services["home"].healthy
        return ledger

    def _worker(self, name: str, run: Run, ledger: Ledger, letter: str) -> Worker:
        host = f"{name} {letter}"
        site = run.site if self._is_touched() else "home"
        service = self._services["home" if site in ("home", "rotated key") else "other"]
        clock = Clock(self.loop, host, self.loop.time(), run.clock)
        if run.jump:
            self.loop.call_later(5.0, setattr, clock, "wrong", run.jump)
        return Worker(self._world, host, ledger, service, _SITES[site], clock, run.encoding, self._seed)

    def _is_touched(self) -> bool:
        """Whether the ledger has sent anything: before that, it may be begun anywhere."""
        accounts = [entry.known for entry in self._operator.disk.rows.values()]
        return any(known.intents or known.generation for known in accounts)

    def _run(self, workers: list[Worker], run: Run) -> bool:
        """Whether the machine died."""
        tasks = [self.loop.start(worker.host, worker.run()) for worker in workers]
        crashed = until_over(self.loop, tasks, run, partial(self._drain, workers))
        for task in tasks:
            if task.done() and (error := task.exception()) is not None:
                raise error
        if crashed:
            self._crash(workers)
        return crashed

    def _drain(self, workers: list[Worker]) -> None:
        self.note("drained")
        for worker in workers:
            worker.stop("drain")

    def _crash(self, workers: list[Worker]) -> None:
        self.loop.crash(*(worker.host for worker in workers))
        entries = self._operator.disk.rows.values()
        in_flight = any(entry.known.state is RowState.IN_FLIGHT for entry in entries)
        self.note("crash with rows in flight" if in_flight else "crash")

    def _end(self, worker: Worker) -> None:
        """A run that came to its end says how."""
        sums = Sums[tuple[Outcome, str]]()
        for entry in worker.ledger.rows.values():
            sums.add((OF_STATE[entry.known.state][0], "XOF"), entry.body.amount)
        self._last_code = exit_code(sums.totals)
        self.note(f"exit {self._last_code}")
        judge.check_end(sums.totals, self._last_code, worker.ledger.rows)
