"""One schedule: hostile runs, then a healthy service and as many runs as it takes, then the books decide."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import attrs

from payments_async.bulk._protocol.exit_codes import exit_code
from payments_async.bulk._protocol.outcomes import OF_STATE, Outcome, Sums
from payments_async.bulk._protocol.row_state import RowState
from payments_async.bulk._protocol.stop_rules import Account

from . import judge
from .ledger import Breach, Disk, Entry, Ledger
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


class Scene:
    """A world in motion."""

    def __init__(self, seed: object) -> None:
        self.loop = SimulatedLoop(seed)  # type: ignore[abstract] # typeshed wants sockets, signals and processes
        self.sometimes: Counter[str] = Counter()

    def note(self, event: str) -> None:
        """Something happened that should happen sometimes."""
        self.sometimes[event] += 1
        self.trace(event)

    def trace(self, event: str) -> None:
        """Something happened."""

    def play(self) -> None:
        """Play it to its end. Raises Breach, Deadlock."""
        raise NotImplementedError

    def judged(self) -> Verdict:
        """Play it, and say what came of it."""
        breach: str | None = None
        try:
            self.play()
        except Breach as found:
            breach = str(found)
        except Deadlock:
            breach = "everybody waits for somebody"
        finally:
            _bury(self.loop)
        return Verdict(breach, self.sometimes, self.loop.steps)


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


class OneMachine(Scene):
    """Starts of a program one after the other, whichever engine it has."""

    _operator: Any
    """`disk` is the ledger in use, `others` are those beside it; `second` makes one more."""

    def __init__(self, seed: object, plan: Plan) -> None:
        super().__init__(seed)
        self._seed, self.plan = seed, plan
        self._services = {
            name: Service(self.loop, plan, f"{seed}:{name}:service", self.note) for name in ("home", "other")
        }
        self._promises = Promises(list(self._services.values()))

    def play(self) -> None:
        """All of it. Raises Breach."""
        place_foreign(self.plan, self._services["home"], self.note)
        for number, run in enumerate(self.plan.runs):
            self._play(f"run {number}", run)
        self._heal()
        for number in range(LAST_RUNS):
            code = self._play(f"last {number}", CALM)
            if code in (0, 1) or (code == 3 and number > 2 and self.plan.excused_row is not None):
                break
        self.loop.advance(3 * HOUR)
        self._certify()
        disks = [self._operator.disk, *self._operator.others]
        judge.check(disks, list(self._services.values()), self.plan, self.loop.failures)

    def _play(self, name: str, run: Run) -> int | None:
        """One start. Its exit code, if it has one."""
        self.trace(f"=== {name}: {run}")
        self.loop.advance(run.gap)
        self._prepare(name, run)
        if run.clock or run.jump:
            self.note("clock forward" if run.clock + run.jump > 0 else "clock back")
        ledger = self._open(f"{name} a", self._operator.disk)
        programs = [self._program(f"{name} a", run, ledger)]
        if run.second == "shared ledger":
            self.note("second process, same ledger")
            programs.append(self._program(f"{name} b", run, ledger))
        elif run.second == "own ledger":
            other = self._open(f"{name} b", self._operator.second())
            programs.append(self._program(f"{name} b", run, other))
        tasks = [self.loop.start(program.host, program.run()) for program in programs]
        crashed = until_over(self.loop, tasks, run, partial(self._drain, programs))
        return self._ended(programs, tasks, crashed=crashed)

    def _drain(self, programs: Sequence[Any]) -> None:
        self.note("drained")
        for program in programs:
            program.stop("drain")

    def _note_crash(self) -> None:
        entries = self._operator.disk.rows.values()
        in_flight = any(entry.known.state is RowState.IN_FLIGHT for entry in entries)
        self.note("crash with rows in flight" if in_flight else "crash")

    def _heal(self) -> None:
        for service in self._services.values():
            service.healthy = True

    def _certify(self) -> None:
        """Certify what was paid."""

    def _open(self, host: str, disk: Any) -> Any:
        """The ledger as a program has it."""
        return disk

    # What each engine has of its own

    def _prepare(self, name: str, run: Run) -> None:
        raise NotImplementedError

    def _program(self, host: str, run: Run, ledger: Any, /) -> Any:
        raise NotImplementedError

    def _ended(self, programs: list[Any], tasks: list[asyncio.Task[None]], *, crashed: bool) -> int | None:
        """Judge how they ended. The first one's exit code, if it has one."""
        raise NotImplementedError


def run_schedule(seed: object, plan: Plan | None = None) -> Verdict:
    """Play a seed's world to its end."""
    return Schedule(seed, plan or draw(seed)).judged()


class Schedule(OneMachine):
    """With the model's engine."""

    def __init__(self, seed: object, plan: Plan) -> None:
        super().__init__(seed, plan)
        self._world = World(self.loop, plan, self._promises, self.note)
        self._operator = Operator(plan, random.Random(f"{seed}:operator"), self._services["home"], self.note)
        self._disk_chance = random.Random(f"{seed}:disk")

    def _prepare(self, name: str, run: Run) -> None:
        self._operator.prepare(run)

    def _open(self, host: str, disk: Disk) -> Ledger:
        ledger = Ledger(self.loop, host, disk, self._disk_chance, self.note)
        ledger.healthy = self._services["home"].healthy
        return ledger

    def _program(self, host: str, run: Run, ledger: Ledger) -> Worker:
        site = run.site if self._operator.disk.is_touched else "home"
        service = self._services["home" if site in ("home", "rotated key") else "other"]
        clock = Clock(self.loop, host, self.loop.time(), run.clock)
        if run.jump:
            self.loop.call_later(5.0, setattr, clock, "wrong", run.jump)
        return Worker(self._world, host, ledger, service, _SITES[site], clock, run.encoding, self._seed)

    def _ended(self, programs: list[Worker], tasks: list[asyncio.Task[None]], *, crashed: bool) -> int | None:
        for task in tasks:
            if task.done() and (error := task.exception()) is not None:
                raise error
        if crashed:
            self.loop.crash(*(worker.host for worker in programs))
            self._note_crash()
            return None
        self.loop.advance(1.0)
        return self._exit_code(programs[0].ledger.rows)

    def _exit_code(self, rows: Mapping[str, Entry]) -> int:
        sums = Sums[tuple[Outcome, str]]()
        for entry in rows.values():
            sums.add((OF_STATE[entry.known.state][0], "XOF"), entry.body.amount)
        code = exit_code(sums.totals)
        self.note(f"exit {code}")
        judge.check_end(sums.totals, code, rows)
        return code
