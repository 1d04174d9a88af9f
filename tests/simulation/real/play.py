"""One schedule of the real code: hostile runs, then a healthy service, then the books decide."""

from __future__ import annotations

import asyncio
import logging
import random
import tempfile
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from payments_async.bulk._protocol.outcomes import Outcome
from payments_async.bulk.ledger_errors import LedgerError

from .. import judge
from ..ledger import Breach
from ..loop import SimulatedLoop
from ..operator import place_foreign
from ..plan import CALM, HOUR, Plan, Run, Site
from ..promises import Promises
from ..schedule import LAST_RUNS, Verdict, judged, until_over
from ..service import Request, Service
from . import decisions
from .books import Book, Books, Watched
from .line import Line
from .machine import Machine
from .office import Office
from .process import Orders, Process, ProcessRuntime
from .worlds import CERTIFIED, SITES, draw_real

logging.getLogger("payments_async").addHandler(logging.NullHandler())  # its warnings are no news here
_FOLDER = "/dev/shm" if Path("/dev/shm").is_dir() else None


def play_schedule(seed: object, plan: Plan | None = None, trace: list[str] | None = None) -> Verdict:
    """Play a seed's world to its end; `trace` takes everything that happened, in order."""
    with tempfile.TemporaryDirectory(dir=_FOLDER) as folder:
        schedule = Schedule(seed, plan or draw_real(seed), Path(folder), trace)
        with schedule.machine.running(), decisions.counted(schedule.note):
            return judged(schedule)


class Schedule:
    """A world in motion."""

    def __init__(self, seed: object, plan: Plan, folder: Path, trace: list[str] | None) -> None:
        self._seed, self.plan, self._trace = seed, plan, trace
        self.loop = SimulatedLoop(seed)  # type: ignore[abstract] # typeshed wants sockets, signals and processes
        self.sometimes: Counter[str] = Counter()
        self._services = {
            name: Service(self.loop, plan, f"{seed}:{name}:service", self.note) for name in ("home", "other")
        }
        promises = Promises(list(self._services.values()))
        self._books = Books(promises, self.loop.time, self.note)
        self.machine = Machine(self.loop, seed, self.note, self._books.committed)
        self._office = Office(plan, seed, folder, self._books, self._services["home"], self.note)
        self._chance = random.Random(f"{seed}:runs")
        self._home: Site = "home"
        """Whose key is valid now."""
        self._last: Process | None = None

    def note(self, event: str) -> None:
        """Something happened that should happen sometimes."""
        self.sometimes[event] += 1
        self.trace(event)

    def trace(self, event: str) -> None:
        """Something happened."""
        if self._trace is not None:
            self._trace.append(f"{self.loop.time():14.3f} {self.loop.steps:6} {event}")

    def play(self) -> None:
        """All of it. Raises Breach."""
        place_foreign(self.plan, self._services["home"], self.note)
        for number, run in enumerate(self.plan.runs):
            self._play(f"run {number}", run)
        self.machine.healthy = True
        for service in self._services.values():
            service.healthy = True
        for number in range(LAST_RUNS):
            self._play(f"last {number}", CALM)
            if self._is_over(number):
                break
        self.loop.advance(3 * HOUR)
        self._play("certificate", CERTIFIED)
        disks = [self._office.book, *self._office.others]
        services = list(self._services.values())
        judge.check([*disks], services, self.plan, self.loop.failures)

    def _is_over(self, number: int) -> bool:
        report = self._last and self._last.report
        code = report.exit_code if report else None
        return code in (0, 1) or (code == 3 and number > 2 and self.plan.excused_row is not None)

    # Runs

    def _play(self, name: str, run: Run) -> None:
        self.trace(f"=== {name}: {run}")
        self.loop.advance(run.gap)
        self._prepare(name, run)
        if run.clock or run.jump:
            self.note("clock forward" if run.clock + run.jump > 0 else "clock back")
        book = self._office.book
        processes = [self._process(f"{name} a", run, book)]
        if run.second == "shared ledger":
            self.note("second process, same ledger")
            processes.append(self._process(f"{name} b", run, book))
        elif run.second == "own ledger":
            processes.append(self._process(f"{name} b", run, self._office.second_book()))
        self._run(processes, run)
        self._last = processes[0]
        self._heed(processes, run)
        for process in processes:
            self._books.forget(process.orders.path)

    def _prepare(self, name: str, run: Run) -> None:
        """The operator's own program, when nothing else runs; its disk is as bad as any."""
        host = f"{name} office"
        try:
            self.loop.run(self.loop.start(host, self._office.prepare(run, self.loop.time())))
        except LedgerError as error:
            self.note(f"office: {type(error).__name__}")
        self._end(host)

    def _process(self, host: str, run: Run, book: Book) -> Process:
        site = run.site if book.is_touched and run.site != "home" else self._home
        service = self._services["home" if site in ("home", "rotated key") else "other"]
        key, base_url = SITES[site]
        runtime = ProcessRuntime(self.loop, f"{self._seed}:{host}", run.clock)
        if run.jump:
            self.loop.call_later(5.0, setattr, runtime, "wrong", run.jump)
        calm, chance = run == CALM, self._chance
        orders = Orders(
            path=book.path,
            key=key,
            base_url=base_url,
            items=self._office.items,
            accepts_edits=self._office.has_edited,
            retries=run.retry,
            insists=run.retry and not calm and random.Random(f"{self._seed}:{host}:insists").random() < 0.5,
            reconciles=not calm and chance.random() < 0.15,
            wait_final=None if calm or chance.random() < 0.85 else chance.choice((60.0, 3 * HOUR)),
            proofs=self.plan.proofs,
            concurrency=self.plan.concurrency,
            patience=3600.0 if calm else chance.choice((0.0, 600.0, 3600.0, 3600.0)),
            drain=30.0 if calm else chance.choice((0.0, 5.0, 30.0)),
            max_rows=None if calm or chance.random() < 0.9 else chance.randint(1, 3),
            certify=run is CERTIFIED,
        )
        return Process(host, orders, self._line(host, service, book), runtime, self.note, self.trace)

    def _line(self, host: str, service: Service, book: Book) -> Line:
        books = self._books

        def sending(request: Request) -> None:
            self.trace(f"{host}: sends {request.body.row} {request.key[-6:]}")
            books.sending(book, request)

        watched = Watched(self.note, sending, partial(books.heard, book), partial(books.ended, book))
        seed = f"{self._seed}:{host}"
        return Line(self.loop, service, seed, watched, ledger=book.name, dates=self.plan.dates)

    def _run(self, processes: Sequence[Process], run: Run) -> None:
        tasks = [self.loop.start(process.host, process.main()) for process in processes]
        crashed = until_over(self.loop, tasks, run, partial(self._drain, processes))
        for process, task in zip(processes, tasks, strict=True):
            self._finish(process, task, crashed=crashed)
        if self._books.breach is not None:
            raise self._books.breach

    def _finish(self, process: Process, task: asyncio.Task[None], *, crashed: bool) -> None:
        host = process.host
        if task.done() and (error := task.exception()) is not None:
            raise Breach(f"the program fell over: {error!r}") from error
        if crashed and not task.done():
            in_flight = any(e.known.state == "IN_FLIGHT" for e in self._office.book.rows.values())
            self.note("crash with rows in flight" if in_flight else "crash")
        elif self.machine.left_open(host):
            raise Breach("the program ended and left its ledger open")
        self._end(host)

    def _end(self, host: str) -> None:
        """The process is no more, one way or the other."""
        self.loop.crash(host)
        self.machine.kill(host)

    def _drain(self, processes: Sequence[Process]) -> None:
        self.note("drained")
        for process in processes:
            process.stop()

    def _heed(self, processes: Sequence[Process], run: Run) -> None:
        """What the runs said of themselves, and what the operator concludes."""
        for process in processes:
            report = process.report
            if process.doubts:
                raise Breach(f"the certificate: {process.doubts}")
            if report is None:
                continue
            if report.stopped is None:
                self._books.check_settled(process.orders.path)
            totals = {
                (each, currency): (report.counts[each] if currency == "XOF" else 0, sums[each])
                for currency, sums in report.sums.items()
                for each in Outcome
            }
            book = next(b for b in (self._office.book, *self._office.others) if b.path == process.orders.path)
            judge.check_end(totals, report.exit_code, book.rows)
            if process.orders.key == SITES["rotated key"][0] and self._home == "home" and book.is_touched:
                self.note("went on with a rotated key")
                self._home = "rotated key"
