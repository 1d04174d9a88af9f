"""One schedule of several machines: what befalls them, then a calm time, then the books decide."""

from __future__ import annotations

from payments_async.bulk._protocol.clocks import Timestamps
from payments_async.bulk._protocol.machines import BatchState, ServerIdentity, Standbys
from payments_async.bulk._protocol.row_state import OPEN

from .. import judge
from ..ledger import Disk, Entry
from ..loop import settle
from ..operator import place_foreign
from ..plan import HOUR
from ..schedule import Scene, Verdict
from ..service import EPOCH, Service
from ..worker import World
from .commands import Operator
from .database import Chunk, Database, State
from .leased import LeasedRows
from .plan import Event, Fleet, draw_fleet
from .process import Process, Site
from .watch import Watch

_CALM_HOURS = 60


def run_schedule(seed: object, fleet: Fleet | None = None) -> Verdict:
    """Play a seed's world to its end."""
    return Schedule(seed, fleet or draw_fleet(seed)).judged()


class Schedule(Scene):
    """A world of several machines in motion."""

    def __init__(self, seed: object, fleet: Fleet) -> None:
        super().__init__(seed)
        self._fleet = fleet
        self._service = Service(self.loop, fleet.world, f"{seed}:service", self.note)
        database = Database(self.loop, _imported(fleet), rate=fleet.rate, note=self.note)
        watch = Watch([self._service], database, steps_clock=fleet.steps_clock)
        world = World(self.loop, fleet.world, watch, self.note)
        self._site = Site(
            world, self.loop, fleet, self._service, database, watch, lambda: self._operator.see_to(), seed
        )
        self._operator = Operator(self._site)
        self._processes: list[Process] = []
        self._stopped: dict[str, Process] = {}
        self._started = self._commands = 0

    def play(self) -> None:
        """All of it. Raises Breach."""
        place_foreign(self._fleet.world, self._service, self.note)
        for _ in range(self._fleet.workers):
            self._start()
        for event in self._fleet.events:
            self._wait(event)
            self._happen(event)
        self._calm()
        self.loop.crash(*(process.host for process in self._processes), "operator")
        self.loop.advance(3 * HOUR)
        disk = Disk(LeasedRows.name, dict(self._site.database.state.rows))
        judge.check(
            [disk], [self._service], self._fleet.world, self.loop.failures, corrections_may_be_lost=True
        )

    def _calm(self) -> None:
        """All is well from now on, for as long as it takes."""
        self._service.healthy = True
        self._site.database.up = True
        for process in self._processes:
            process.line.is_cut = process.line.loses_answers = False
            process.calm = True
        for _ in range(4 * _CALM_HOURS):
            if self._is_done():
                return
            self.loop.advance(HOUR / 4)

    def _is_done(self) -> bool:
        state = self._site.database.state
        open_rows = {row for row, entry in state.rows.items() if entry.known.state in OPEN}
        quiet = not self._stopped and self._site.database.is_noticed and state.batch is BatchState.OPEN
        return quiet and open_rows <= {self._fleet.world.excused_row}

    # What befalls them

    def _start(self) -> None:
        self._started += 1
        process = Process(self._site, f"worker {self._started}")
        self._processes.append(process)
        process.start()

    def _wait(self, event: Event) -> None:
        over = self.loop.create_future()
        timer = self.loop.call_later(event.wait, settle, over, None)
        self.loop.alarm(event.steps, lambda: settle(over, None))
        self.loop.run(over)
        self.loop.clear_alarms()
        timer.cancel()

    def _happen(self, event: Event) -> None:
        database = self._site.database
        process = self._one_of_the_processes(event.worker)
        match event.kind:
            case "stop" | "suspend" if process is not None:
                self._stop(process, event)
            case "kill" if process is not None:
                self._kill(process, event.seconds)
            case "all off":
                for each in list(self._processes):
                    self._kill(each, event.seconds)
                self.loop.advance(event.seconds)
            case "cut off" if process is not None:
                self.note("cut off")
                process.line.is_cut = True
                self.loop.call_later(event.seconds, setattr, process.line, "is_cut", False)
            case "outage" | "restart" | "fail over" | "restore":
                self._break(database, event)
            case "step":
                self.note("database clock set")
                database.set_clock(event.seconds)
            case "cancel" | "edit" | "retry":
                self._command(event)
            case _:
                self.loop.advance(event.seconds)

    def _one_of_the_processes(self, number: int) -> Process | None:
        """One that works, if any does."""
        awake = [process for process in self._processes if process.host not in self._stopped]
        choice = [process for process in awake if process.works] or awake
        return choice[number % len(choice)] if choice else None

    def _command(self, event: Event) -> None:
        self._commands += 1
        row = self._fleet.world.bodies[event.row].row
        given = self._operator.give(self._commands, event.kind, row)  # type: ignore[arg-type] # one of three
        self.loop.start("operator", given).add_done_callback(lambda done: done.result())

    def _stop(self, process: Process, event: Event) -> None:
        self.note("suspended" if event.kind == "suspend" else "stopped")
        self._stopped[process.host] = process
        self.loop.stop(process.host)
        self.loop.call_later(event.seconds, self._go_on, process, event)

    def _go_on(self, process: Process, event: Event) -> None:
        del self._stopped[process.host]
        if event.kind == "suspend":
            process.clock.suspend(event.seconds)
        self.loop.go_on(process.host)

    def _kill(self, process: Process, seconds: float) -> None:
        self.note("killed")
        self._processes.remove(process)
        self.loop.crash(process.host)
        self.loop.call_later(seconds, self._start)

    def _break(self, database: Database, event: Event) -> None:
        self.note(event.kind)
        lag = 0 if self._fleet.standbys is Standbys.SYNCHRONOUS else event.lag
        if event.kind == "restart":
            database.restart()
        elif event.kind == "fail over":
            database.fail_over(lag, event.ahead)
        elif event.kind == "restore":
            database.restore(event.lag)
        else:
            database.sessions += 1
        database.up = False
        self.loop.call_later(event.seconds, setattr, database, "up", True)


def _imported(fleet: Fleet) -> State:
    """A batch that nothing was sent of."""
    rows = [body.row for body in fleet.world.bodies]
    size = fleet.chunk_size
    chunks = tuple(Chunk(tuple(rows[first : first + size])) for first in range(0, len(rows), size))
    hidden = fleet.hides_timeline
    store = ServerIdentity(None, None, "0") if hidden else ServerIdentity(1, 1)
    at = Timestamps(EPOCH, 0.0, "import", EPOCH if fleet.world.dates else None)
    return State({body.row: Entry(body) for body in fleet.world.bodies}, chunks, store, at)
