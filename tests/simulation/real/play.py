"""One schedule of the real code: hostile runs, then a healthy service, then the books decide."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import attrs

from payments_async.bulk._engine import doubt_queue, resolver, sender
from payments_async.bulk._protocol.attempts import AttemptReply, Step, after_attempt, kind_of
from payments_async.bulk._protocol.matching import Match, match_of
from payments_async.bulk._protocol.outcomes import Outcome
from payments_async.bulk._protocol.rows_in_doubt import Resolution, after_scan, post_again_after
from payments_async.bulk.ledger_errors import LedgerError

from .. import judge
from ..ledger import Breach
from ..plan import CALM, HOME, HOUR, Plan, Run, Site, draw
from ..schedule import OneMachine, Verdict
from ..service import Request, Service
from .books import Book, Books, Watched
from .line import Line
from .machine import Machine
from .office import Office
from .process import Orders, Process, ProcessRuntime

logging.getLogger("payments_async").addHandler(logging.NullHandler())  # its warnings are no news here
_FOLDER = "/dev/shm" if Path("/dev/shm").is_dir() else None


_HOME, _ELSEWHERE = HOME.base_url, "https://elsewhere.example/v1"
SITES: dict[Site, tuple[str, str]] = {
    "home": ("sk_live_one", _HOME),
    "rotated key": ("sk_live_two", _HOME),
    "other project": ("sk_live_three", _HOME),
    "other environment": ("sk_sandbox_four", _HOME),
    "other address": ("sk_live_one", _ELSEWHERE),
}
CERTIFIED = attrs.evolve(CALM)
_CALLBACKS = 250
"""A crash or a stop comes within so many callbacks of a run, or not at all."""


def draw_real(seed: object) -> Plan:
    """The model's world for a seed, with crashes and stops spread over the callbacks of the real code."""
    plan, chance = draw(seed), random.Random(f"{seed}:callbacks")

    def spread(callbacks: int | None) -> int | None:
        return None if callbacks is None else int(5 + _CALLBACKS * chance.random())

    runs = [attrs.evolve(run, crash=spread(run.crash), drain=spread(run.drain)) for run in plan.runs]
    return attrs.evolve(plan, runs=tuple(runs))


@contextlib.contextmanager
def decisions_counted(note: Callable[[str], None]) -> Iterator[None]:
    """Note each answer, each payout found and each resolution while this lasts."""

    def answered(reply: AttemptReply, **facts: Any) -> Step:
        note(f"answer: {kind_of(reply)}")
        return after_attempt(reply, **facts)

    def resolved(*args: Any, **facts: Any) -> Resolution:
        resolution = after_scan(*args, **facts)
        note(f"resolution: {resolution.step}")
        return resolution

    def found(*args: Any) -> Match:
        matched = match_of(*args)
        note(f"found: {matched}")
        return matched

    def waited(times: int) -> float | None:
        seconds = post_again_after(times)
        note("back-off over: the list" if seconds is None else "posted again after a back-off")
        return seconds

    with (
        patch.object(doubt_queue, "post_again_after", waited),
        patch.object(sender, "after_attempt", answered),
        patch.object(resolver, "after_scan", resolved),
        patch("payments_async.bulk._protocol.listed_payouts.match_of", found),
    ):
        yield


def play_schedule(seed: object, plan: Plan | None = None, trace: list[str] | None = None) -> Verdict:
    """Play a seed's world to its end; `trace` takes everything that happened, in order."""
    with tempfile.TemporaryDirectory(dir=_FOLDER) as folder:
        schedule = Schedule(seed, plan or draw_real(seed), Path(folder), trace)
        with schedule.machine.running(), decisions_counted(schedule.note):
            return schedule.judged()


class Schedule(OneMachine):
    """With the real client, engine and ledger."""

    def __init__(self, seed: object, plan: Plan, folder: Path, trace: list[str] | None) -> None:
        super().__init__(seed, plan)
        self._trace = trace
        self._books = Books(self._promises, self.loop.time, self.note)
        self.machine = Machine(self.loop, seed, self.note, self._books.committed)
        self._operator = Office(plan, seed, folder, self._books, self._services["home"], self.note)
        self._chance = random.Random(f"{seed}:runs")
        self._home: Site = "home"
        """Whose key is valid now."""

    def trace(self, event: str) -> None:
        """Something happened."""
        if self._trace is not None:
            self._trace.append(f"{self.loop.time():14.3f} {self.loop.steps:6} {event}")

    def _heal(self) -> None:
        super()._heal()
        self.machine.healthy = True

    def _certify(self) -> None:
        self._play("certificate", CERTIFIED)

    def _prepare(self, name: str, run: Run) -> None:
        """The operator's own program, when nothing else runs; its disk is as bad as any."""
        host = f"{name} office"
        try:
            self.loop.run(self.loop.start(host, self._operator.prepare(run, self.loop.time())))
        except LedgerError as error:
            self.note(f"office: {type(error).__name__}")
        self._kill(host)

    def _program(self, host: str, run: Run, book: Book) -> Process:
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
            items=self._operator.items,
            accepts_edits=self._operator.has_edited,
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

    def _ended(
        self, programs: list[Process], tasks: list[asyncio.Task[None]], *, crashed: bool
    ) -> int | None:
        for process, task in zip(programs, tasks, strict=True):
            self._finish(process, task, crashed=crashed)
        if self._books.breach is not None:
            raise self._books.breach
        self._heed(programs)
        for process in programs:
            self._books.forget(process.orders.path)
        report = programs[0].report
        return report.exit_code if report else None

    def _finish(self, process: Process, task: asyncio.Task[None], *, crashed: bool) -> None:
        if task.done() and (error := task.exception()) is not None:
            raise Breach(f"the program fell over: {error!r}") from error
        if crashed and not task.done():
            self._note_crash()
        elif self.machine.left_open(process.host):
            raise Breach("the program ended and left its ledger open")
        self._kill(process.host)

    def _kill(self, host: str) -> None:
        """The process is no more, one way or the other."""
        self.loop.crash(host)
        self.machine.kill(host)

    def _heed(self, processes: Sequence[Process]) -> None:
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
            book = next(
                b for b in (self._operator.disk, *self._operator.others) if b.path == process.orders.path
            )
            judge.check_end(totals, report.exit_code, book.rows)
            if process.orders.key == SITES["rotated key"][0] and self._home == "home" and book.is_touched:
                self.note("went on with a rotated key")
                self._home = "rotated key"
