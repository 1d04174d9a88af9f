"""The `worker` command, and the worker processes of `run --workers N`."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Final

import attrs

from ..._runtime import SYSTEM
from ...bulk import BatchReport, Progress
from .._exit_codes import CommandEnded, Exit
from .ledger_address import VARIABLE, LedgerAddress
from .machines import BatchView, holding_facts, view_in
from .messages import counted
from .options import RunOptions, WorkerOptions
from .progress import ProgressView
from .session import CommandContext, ledger_work, open_client, open_database, print_next_steps

if TYPE_CHECKING:
    from ...bulk.ledger.postgresql.driver.database import Database
    from ...bulk.workers import WorkerProgress, WorkerReport

_EVERY: Final = 10.0
"""Seconds between two lines of a worker."""
_LOOK: Final = 0.5
"""Seconds between two readings of a batch's figures."""


async def work(ledger: LedgerAddress, wanted: WorkerOptions, context: CommandContext) -> Exit:
    """Work until a signal, a lost database, or nothing is left. Raises CommandEnded or PaymentsError."""
    from ...bulk.workers import PayoutWorker

    concurrency, store = wanted.concurrency, wanted.limit_store
    async with open_client(wanted.base_url, concurrency=concurrency, store=store) as client:
        context.show.heading(ledger.shown, f"batch {wanted.batch_id}" if wanted.batch_id else "every batch")
        worker = PayoutWorker(
            ledger.text,
            client,
            on_progress=_Lines(context).show,
            insecure_database=wanted.insecure_database,
            **wanted.settings,
        )
        watched = _until_eof(worker.stop) if wanted.until_eof else nullcontext()
        with watched, context.interrupts.draining(worker.stop):
            report = await ledger_work(ledger, worker.run())
    return _show_report(report, context)


@attrs.define
class _Lines:
    """A line every ten seconds, while something changes."""

    _context: CommandContext
    _shown_at: float | None = None
    _last: WorkerProgress | None = None

    def show(self, progress: WorkerProgress) -> None:
        """Show what the worker is doing, unless that was shown just now."""
        at = SYSTEM.monotonic()
        is_early = self._shown_at is not None and at - self._shown_at < _EVERY
        if is_early or progress == self._last:
            return
        self._shown_at, self._last = at, progress
        places = ", ".join(
            f"{batch} chunk {chunk}" if chunk else f"{batch} closing" for batch, chunk in progress.holding
        )
        text = f"{counted(progress.rows, 'row')}; {places or 'no chunk to work on'}"
        facts = {"worker": progress.worker, "rows": progress.rows, "holding": holding_facts(progress.holding)}
        self._context.show.step("Working", text, good=None, **facts)


def _show_report(report: WorkerReport, context: CommandContext) -> Exit:
    code = Exit(report.exit_code)
    reason = f"; {report.stopped}" if report.stopped else "; nothing is left to do"
    text = f"{counted(report.rows, 'row')} in {counted(report.chunks, 'chunk')}{reason}"
    context.show.step("Ended", text, good=code is Exit.DONE, **attrs.asdict(report))
    steps = [f"outcomes that could not be recorded are in {path}, as JSON" for path in report.unrecorded]
    print_next_steps([*([f"{report.stopped}"] if code is not Exit.DONE else []), *steps])
    return code


@contextmanager
def _until_eof(stop: Callable[[str], object]) -> Iterator[None]:
    """Within it, `stop` is called once the standard input is closed. Raises CommandEnded for a file."""
    loop = asyncio.get_running_loop()

    def readable() -> None:
        if not os.read(stdin, 65536):
            loop.remove_reader(stdin)
            stop("the standard input was closed")

    try:
        stdin = sys.stdin.fileno()
        loop.add_reader(stdin, readable)
    except OSError:
        problem = "--until-eof: the standard input is no pipe, so it cannot be waited for"
        raise CommandEnded(problem, Exit.USAGE) from None
    try:
        yield
    finally:
        loop.remove_reader(stdin)


_COMMAND: Final = (sys.executable, "-m", "payments_async.cli", "payouts", "worker", "--json")
_SEVERE: Final = (Exit.OUTCOME_UNKNOWN, Exit.USAGE, Exit.RESUMABLE)
"""Exit codes of workers that a run passes on, the gravest first."""


@attrs.define(eq=False)
class WorkerProcess:
    """A process that works on one batch. It stops in order when its input is closed, or this process dies."""

    _process: asyncio.subprocess.Process
    message: str = ""
    """The last line of its error output."""

    @classmethod
    async def start(cls, ledger: LedgerAddress, options: Sequence[str]) -> WorkerProcess:
        """Start it. The address is not among its arguments, which everybody on the machine can read."""
        process = await asyncio.create_subprocess_exec(
            *_COMMAND,
            *options,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, VARIABLE: ledger.text},
            start_new_session=True,  # Ctrl-C in the terminal is for `run`, which stops its workers
        )
        return cls(process)

    async def ended(self) -> None:
        """Read its error output, and wait until it ends."""
        assert self._process.stderr is not None
        async for line in self._process.stderr:
            self.message = line.decode(errors="replace").strip() or self.message
        await self._process.wait()

    @property
    def code(self) -> int | None:
        """Its exit code, 75 if a signal killed it; None while it runs."""
        code = self._process.returncode
        return Exit.RESUMABLE if code is not None and code < 0 else code

    def stop(self) -> None:
        """Let it stop in order."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def kill(self) -> None:
        """Kill it. Its rows go to other workers, or are posted again by the next run."""
        with suppress(ProcessLookupError):
            self._process.kill()


@attrs.define(eq=False)
class WorkerProcesses:
    """The workers of one run."""

    _workers: list[WorkerProcess] = attrs.field(factory=list)

    def stop(self) -> None:
        """Let all stop in order."""
        for worker in self._workers:
            worker.stop()

    def kill(self) -> None:
        """Kill all."""
        for worker in self._workers:
            worker.kill()

    @property
    def are_gone(self) -> bool:
        """True if there were workers, and all have ended."""
        return bool(self._workers) and all(worker.code is not None for worker in self._workers)

    @property
    def failure(self) -> tuple[Exit, str] | None:
        """The exit code and message of the worker that failed most gravely; None if none failed."""
        failed = {worker.code: worker.message for worker in self._workers if worker.code}
        codes = [code for code in _SEVERE if code in failed] or [Exit.RESUMABLE] * bool(failed)
        return (codes[0], failed.get(codes[0]) or next(iter(failed.values()))) if codes else None


@asynccontextmanager
async def worker_processes(
    number: int, ledger: LedgerAddress, options: Sequence[str]
) -> AsyncIterator[WorkerProcesses]:
    """Context of running workers. At its end they stop in order; when it is cancelled they are killed."""
    started: list[WorkerProcess] = []
    readers: list[asyncio.Task[None]] = []
    workers = WorkerProcesses(started)
    try:
        for _ in range(number):
            started.append(await WorkerProcess.start(ledger, options))
            readers.append(asyncio.ensure_future(started[-1].ended()))
        yield workers
        workers.stop()
        await _ended(readers)
    except BaseException:
        workers.kill()
        await _ended(readers)
        raise


async def _ended(readers: Sequence[asyncio.Task[None]]) -> None:
    if readers:
        await asyncio.wait(readers)


async def pay_with_workers(
    order: RunOptions, context: CommandContext, view: ProgressView, show: Callable[[Progress], object]
) -> BatchReport:
    """Let worker processes pay a planned batch, and show how far it is. Without any, others pay it."""
    stops: list[str] = []

    def drain(reason: str) -> None:
        view.note(f"{reason}: workers finish what is under way; once more cuts them off")
        stops.append(reason)

    ledger = order.address
    async with open_database(ledger) as database:
        async with worker_processes(order.workers, ledger, order.worker_arguments) as processes:
            with context.interrupts.draining(drain):
                async for seen in _looks(database, ledger, lambda: bool(stops) or processes.are_gone):
                    show(seen.report)
                    if seen.is_over:
                        break
                    view.note(seen.report.stopped or "")
        report = (await view_in(database, ledger)).report
    return _ended_report(report, stops, processes.failure)


async def _looks(
    database: Database, ledger: LedgerAddress, is_over: Callable[[], bool]
) -> AsyncIterator[BatchView]:
    """The batch, as it is every half second."""
    while not is_over():
        yield await view_in(database, ledger)
        await SYSTEM.sleep(_LOOK)


def _ended_report(report: BatchReport, stops: Sequence[str], failure: tuple[Exit, str] | None) -> BatchReport:
    """The report of a run whose processes have ended: with the signal, or what failed in them."""
    if report.complete:
        return report
    if stops:
        return attrs.evolve(report, stopped=stops[0])
    if failure is None:
        return report
    code, message = failure
    resumable = "after_change" if code is Exit.USAGE else "now"
    return attrs.evolve(report, stopped=message, exit_code=int(code), resumable=resumable)
