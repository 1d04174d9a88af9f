"""The `worker` command, and the worker processes of `run --workers N`."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, Final

import attrs

from ..._runtime import SYSTEM
from ...bulk import BatchDatabase, BatchFigures, BatchReport, ListedBatch
from ...bulk._texts.ledger_address import LedgerAddress
from ...bulk._texts.quantities import counted
from ...bulk.ledger_errors import LedgerError
from .._exit_codes import CommandEnded, Exit
from .command_context import CommandContext, ledger_work, open_client, open_database, print_next_steps
from .machines import chunk_facts, listed_in, no_worker
from .messages import message_of
from .options import VARIABLE, RunOptions, WorkerArguments
from .progress import ProgressView

if TYPE_CHECKING:
    from ...bulk.workers import WorkerProgress, WorkerReport

_EVERY: Final = 10.0
"""Seconds between two lines of a worker."""
_LOOK: Final = 0.5
"""Seconds between two readings of a batch's figures."""


async def work(ledger: LedgerAddress, wanted: WorkerArguments, context: CommandContext) -> Exit:
    """Work until a signal, a lost database, or nothing is left. Raises CommandEnded or PaymentsError."""
    from ...bulk.workers import PayoutWorker

    async with open_client(
        wanted.base_url,
        concurrency=wanted.concurrency,
        store=wanted.limit_store,
        insecure_database=wanted.insecure_database,
    ) as client:
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
            f"{batch} chunk {chunk}" if chunk else f"{batch} closing"
            for batch, chunk in progress.leased_chunks
        )
        doing = f"it rests: {progress.trouble}" if progress.trouble else places or "no chunk to work on"
        text = f"{counted(progress.rows, 'row')}; {doing}"
        facts: dict[str, Any] = {
            "worker": progress.worker,
            "rows": progress.rows,
            "leased_chunks": chunk_facts(progress.leased_chunks),
            "trouble": progress.trouble,
        }
        self._context.show.step("Working", text, good=False if progress.trouble else None, **facts)


def _show_report(report: WorkerReport, context: CommandContext) -> Exit:
    code = Exit(report.exit_code)
    left = f" now; still open: {', '.join(report.left_open)}" if report.left_open else ""
    reason = f"; {report.stopped}" if report.stopped else f"; nothing is left to do{left}"
    text = f"{counted(report.rows, 'row')} in {counted(report.chunks, 'chunk')}{reason}"
    context.show.step("Ended", text, good=code is Exit.DONE, **attrs.asdict(report))
    files = [f"outcomes that could not be recorded are in {path}, as JSON" for path in report.unrecorded]
    if code is not Exit.DONE:  # in one line, which a run that started this worker shows
        print_next_steps(["; ".join([f"{report.stopped}", *files])])
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
        problem = "--until-eof: the standard input is not a pipe, so its end cannot be waited for"
        raise CommandEnded(problem, Exit.USAGE) from None
    try:
        yield
    finally:
        loop.remove_reader(stdin)


_COMMAND: Final = (sys.executable, "-m", "payments_async._cli", "payouts", "worker", "--json")
_SEVERE: Final = (Exit.OUTCOME_UNKNOWN, Exit.USAGE, Exit.RESUMABLE)
"""Exit codes of workers that a run passes on, the gravest first."""
_READ: Final = 65536
"""Bytes of a worker's error output that are read at a time, and kept at its end."""


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
        end = b""
        while more := await self._process.stderr.read(_READ):
            end = (end + more)[-_READ:]
        await self._process.wait()
        _, _, last = end.decode(errors="replace").strip().rpartition("\n")
        self.message = last.removeprefix("payments: ")

    @property
    def code(self) -> int | None:
        """Its exit code, 75 if a signal killed it; None while it runs."""
        code = self._process.returncode
        return Exit.RESUMABLE if code is not None and code < 0 else code

    @property
    def end(self) -> str:
        """How it has ended: `process 24546 killed by signal 9`."""
        code = self._process.returncode or 0
        how = f"killed by signal {-code}" if code < 0 else f"ended with {code}" if code else "drained"
        return f"process {self._process.pid} {how}"

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

    async def start(self, ledger: LedgerAddress, options: Sequence[str]) -> WorkerProcess:
        """Start one more."""
        self._workers.append(await WorkerProcess.start(ledger, options))
        return self._workers[-1]

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
        """The gravest exit code of the workers that failed, and what they said; None if none failed."""
        failed = [worker for worker in self._workers if worker.code]
        if not failed:
            return None
        codes = [*(code for code in _SEVERE if any(each.code == code for each in failed)), Exit.RESUMABLE]
        failed.sort(key=lambda each: each.code != codes[0])
        said = dict.fromkeys(each.message for each in failed if each.message)
        return codes[0], "; ".join(said) or self.ends

    @property
    def ends(self) -> str:
        """How each has ended."""
        return f"its workers ended: {', '.join(worker.end for worker in self._workers)}"

    def explained(self, lost: LedgerError) -> LedgerError | CommandEnded:
        """The error after the ledger was lost: with what the workers said when they ended."""
        if self.failure is None:
            return lost
        code, said = self.failure
        return CommandEnded(f"{message_of(lost)}; {said}", code)


@asynccontextmanager
async def worker_processes(
    workers: WorkerProcesses, number: int, ledger: LedgerAddress, options: Sequence[str]
) -> AsyncIterator[None]:
    """Context in which workers run. At its end they stop in order; when it is cancelled they are killed.

    When the ledger is lost they have the time to record what they learned, or to write it into files.
    """
    readers: list[asyncio.Task[None]] = []
    lost: LedgerError | None = None
    try:
        for _ in range(number):
            worker = await workers.start(ledger, options)
            readers.append(asyncio.ensure_future(worker.ended()))
        try:
            yield
        except LedgerError as error:
            lost = error
        workers.stop()
        await _ended(readers)
    except BaseException:
        workers.kill()
        await _ended(readers)
        raise
    if lost is not None:
        raise lost


async def _ended(readers: Sequence[asyncio.Task[None]]) -> None:
    if readers:
        await asyncio.wait(readers)


async def pay_with_workers(
    order: RunOptions, context: CommandContext, view: ProgressView, show: Callable[[BatchFigures], object]
) -> BatchReport:
    """Let worker processes pay a planned batch, and show how far it is. Without any, others pay it."""
    stops, processes = list[str](), WorkerProcesses()

    def drain(reason: str) -> None:
        ours = "workers finish what is under way; a second signal cuts them off"
        view.note(f"{reason}: {ours if order.workers else 'the batch is left to its workers'}")
        stops.append(reason)

    ledger = order.address
    async with open_database(ledger) as database:
        try:
            async with worker_processes(processes, order.workers, ledger, order.worker_arguments):
                with context.interrupts.draining(drain):
                    async for seen in _looks(database, ledger, lambda: bool(stops) or processes.are_gone):
                        show(seen.report)
                        if seen.is_over:
                            break
                        alone = seen.is_alone and not order.workers
                        view.note(seen.report.stopped or (no_worker(ledger) if alone else ""))
            report = (await listed_in(database, ledger)).report
        except LedgerError as lost:
            raise processes.explained(lost) from lost
    return _ended_report(report, stops, processes)


async def _looks(
    database: BatchDatabase, ledger: LedgerAddress, is_over: Callable[[], bool]
) -> AsyncIterator[ListedBatch]:
    """The batch, as it is every half second."""
    while not is_over():
        yield await listed_in(database, ledger)
        await SYSTEM.sleep(_LOOK)


def _ended_report(report: BatchReport, stops: Sequence[str], processes: WorkerProcesses) -> BatchReport:
    """The report of a run whose processes have ended: with the signal, or what failed in them."""
    if report.complete:
        return report
    if stops:
        return attrs.evolve(report, stopped=stops[0])
    if processes.failure is None:
        return attrs.evolve(report, stopped=report.stopped or processes.ends)
    code, message = processes.failure
    resumable = "after_change" if code is Exit.USAGE else "now"
    return attrs.evolve(report, stopped=message, exit_code=int(code), resumable=resumable)
