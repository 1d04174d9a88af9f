"""Batches and workers of a database: their figures, and `pause`, `resume`, `drain` and `cancel-rest`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from ...bulk import BatchReport
from ...bulk._options import composed
from ...bulk._report import report_of
from ...bulk.ledger_errors import LedgerError, LedgerLocked
from ...bulk.protocol.leases import LEASE, BatchState
from ...bulk.protocol.stop_rules import Stop
from ...models._masking import clean
from .._exit_codes import CommandEnded, Exit
from .confirm import terminal
from .ledger_address import LedgerAddress
from .messages import counted
from .session import CommandContext, open_batch, open_database, open_shared
from .summary import BatchFigures, duration_text, figures_of, money_text, title_of

if TYPE_CHECKING:
    from ...bulk.ledger.postgresql.batches import ListedBatch
    from ...bulk.ledger.postgresql.driver.database import Database
    from ...bulk.ledger.postgresql.leasing.workers import ListedWorker

_COMPLETE: Final = "it is complete"


@attrs.frozen
class BatchView:
    """A batch of a database, with who works on it."""

    batch: ListedBatch
    workers: Sequence[ListedWorker]
    """Those that hold chunks of it."""
    idle: int
    """Workers of the database that hold nothing now."""

    @classmethod
    def of(cls, batch: ListedBatch, workers: Iterable[ListedWorker]) -> BatchView:
        """The batch, and those of the workers that hold chunks of it."""
        live, name = [worker for worker in workers if worker.silent < LEASE], batch.facts.batch.batch_id
        idle = sum(not worker.leased_chunks for worker in live)
        return cls(batch, [worker for worker in live if name in _batches_of(worker)], idle)

    @property
    def batch_id(self) -> str:
        """The batch's name."""
        return self.batch.facts.batch.batch_id

    @property
    def state(self) -> BatchState:
        """The batch's state."""
        return self.batch.facts.state

    @property
    def report(self) -> BatchReport:
        """The batch's report, from its figures alone: no row is read."""
        facts, totals = self.batch.facts, self.batch.figures.totals
        stopped = facts.stopped
        if facts.hold_reason is not None:
            stopped = f"the batch is {facts.hold_reason}"
        stop = None if stopped is None else Stop.RULE
        return report_of(facts.header, totals, stopped, stop=stop)

    @property
    def figures(self) -> BatchFigures:
        """Counts and sums."""
        return figures_of(self.report)

    @property
    def is_alone(self) -> bool:
        """True if no worker of the database is running."""
        return not (self.workers or self.idle)

    @property
    def per_minute(self) -> float:
        """Rows a minute, by all workers together."""
        return sum(worker.per_minute / len(_batches_of(worker)) for worker in self.workers)

    @property
    def seconds_left(self) -> float | None:
        """Seconds until every row is decided; None while it is unknown."""
        figures = self.figures
        left = figures.rows - figures.done
        return left / self.per_minute * 60 if left and self.per_minute >= 1 else None

    @property
    def chunks(self) -> dict[str, int]:
        """Chunks with open rows, those that a worker holds, and those that are done."""
        open_ = self.batch.chunks_open
        return {"open": open_, "leased": self.batch.chunks_leased, "done": self.batch.facts.chunks - open_}

    @property
    def is_over(self) -> bool:
        """True if no worker can do more: all is decided, or the stop rules let no row be taken."""
        is_stopped = self.batch.facts.stopped is not None and not self.batch.chunks_leased
        return self.report.complete or (is_stopped and not self.figures.counts["under_way"])

    @property
    def is_unclosed(self) -> bool:
        """True if every row is decided, and no worker has closed it yet."""
        return self.report.complete and self.state is BatchState.OPEN

    @property
    def facts(self) -> dict[str, Any]:
        """What a batch in a database has, for programs, beside its figures."""
        facts, left = self.batch.facts, self.seconds_left
        return {
            "state": str(facts.state),
            "reason": facts.reason,
            "rule": facts.stopped,
            "environment": facts.header.binding.environment,
            "chunks": self.chunks,
            "workers": len(self.workers),
            "idle_workers": self.idle,
            "per_minute": round(self.per_minute),
            "seconds_left": None if left is None else round(left),
        }

    @property
    def speed_text(self) -> str:
        """`3 workers, 58,210 rows a minute, 56 s left`."""
        if not self.workers:
            idle = f"; {counted(self.idle, 'worker')} without work" if self.idle else ""
            return f"no worker holds a chunk of it{idle}"
        left = self.seconds_left
        parts = [counted(len(self.workers), "worker"), f"{counted(round(self.per_minute), 'row')} a minute"]
        return ", ".join([*parts, *([] if left is None else [f"{duration_text(left)} left"])])


def _batches_of(worker: ListedWorker) -> set[str]:
    return {batch for batch, _ in worker.leased_chunks}


async def views_in(
    database: Database,
    batch_id: str | None = None,
    on_unreadable: Callable[[LedgerError], object] | None = None,
) -> list[BatchView]:
    """Read the batches of a database, the newest first, or one. Raises LedgerError.

    `on_unreadable` gets the error of a batch that cannot be read, in place of the caller.
    """
    from ...bulk.ledger.postgresql import batches
    from ...bulk.ledger.postgresql.leasing import workers

    at_work = await workers.listed(database)
    found = await batches.listed(database, composed(batch_id), on_unreadable)
    return [BatchView.of(batch, at_work) for batch in found]


async def view_in(database: Database, ledger: LedgerAddress) -> BatchView:
    """Read the batch that the address names. Raises CommandEnded when there is none."""
    for view in await views_in(database, ledger.batch_id):
        return view
    missing = f"{ledger.shown}: there is no batch {ledger.batch_id}"
    listed = attrs.evolve(ledger, batch_id=None).command("batches")
    raise CommandEnded(f"{missing}; `{listed}` lists those there are", Exit.USAGE)


async def view_of(ledger: LedgerAddress) -> BatchView:
    """The same, on a connection of its own."""
    async with open_database(ledger) as database:
        return await view_in(database, ledger)


def run_command(ledger: LedgerAddress) -> str:
    """The command that starts and resumes a batch."""
    return ledger.option_command("run", "FILE")


def no_worker(ledger: LedgerAddress) -> str:
    """Say that nothing works on a batch, and what does."""
    return f"no worker is running: `{ledger.option_command('worker')}` starts one"


def worker_facts(worker: ListedWorker) -> dict[str, Any]:
    facts = attrs.asdict(worker)
    times = {name: round(facts.pop(name), 1) for name in ("up", "silent")}
    return {
        **facts,
        **times,
        "per_minute": round(worker.per_minute),
        "leased_chunks": chunk_facts(worker.leased_chunks),
    }


def chunk_facts(chunks: Sequence[tuple[str, int]]) -> list[dict[str, Any]]:
    """Chunks that a worker holds, for programs."""
    return [{"batch_id": batch, "chunk": chunk} for batch, chunk in chunks]


# Commands


async def pause(ledger: LedgerAddress, reason: str, context: CommandContext) -> Exit:
    """Pause a batch."""
    view = await view_of(ledger)
    if view.state is BatchState.IMPORTED:
        raise CommandEnded(f"{ledger.label}: was not planned yet, so no worker takes a row", Exit.USAGE)
    if view.state is BatchState.CLOSED:
        text = "every row is decided; nothing was changed"
        return await _show_change(ledger, context, "Pause", text, paused=False)
    async with open_shared(ledger) as batch:
        await batch.pause(reason)
    text = "no worker begins another row within 5 s"
    if view.state is BatchState.SUSPECT:
        text = "it is suspect; after `recover` it stays paused"
    return await _show_change(ledger, context, "Paused", text)


async def resume(ledger: LedgerAddress, context: CommandContext) -> Exit:
    """End a pause; of a batch that is not paused, show what resumes it."""
    view = await view_of(ledger) if ledger.is_database else None
    if view is None or view.state is not BatchState.PAUSED:
        text, command = await _resuming_file(ledger) if view is None else _resuming(view, ledger)
        context.show.heading(ledger.shown)
        context.show.step("Resume", text, good=None, resumed=False, command=command)
        if command and not context.as_json:
            context.show.step("Command", command, good=None, wrap=False)
        return Exit.DONE
    async with open_shared(ledger) as batch:
        await batch.resume()
    text = no_worker(ledger) if view.is_alone else "workers go on with it"
    return await _show_change(ledger, context, "Resumed", text)


async def _resuming_file(ledger: LedgerAddress) -> tuple[str, str]:
    """The same as `_resuming`, of a ledger in a file. Raises LedgerError when the file is none."""
    try:
        async with open_batch(ledger) as batch:
            if batch.status().complete:
                return _COMPLETE, ""
    except LedgerLocked as locked:
        return f"a ledger in a file is never paused, and a run is under way: {locked.problem}", ""
    return "a ledger in a file is never paused: the same `run` command resumes it", run_command(ledger)


def _resuming(view: BatchView, ledger: LedgerAddress) -> tuple[str, str]:
    """Why there is nothing to resume, and the command that does more."""
    if view.report.complete:
        return _COMPLETE, ""
    if view.state is BatchState.SUSPECT:
        return "it is suspect, not paused: commits may be lost", ledger.command("recover")
    if view.state is BatchState.IMPORTED:
        return "it was not planned yet", run_command(ledger)
    if stopped := view.batch.facts.stopped:
        return f"it is not paused: {stopped}; raise that limit", run_command(ledger)
    return "it is not paused; workers go on with it, or the same `run` command", run_command(ledger)


async def _show_change(
    ledger: LedgerAddress, context: CommandContext, name: str, text: str, **more: Any
) -> Exit:
    view = await view_of(ledger)
    text += "; a worker closes it" if view.is_unclosed else ""
    context.show.heading(ledger.shown, title_of(view.batch_id))
    context.show.step(name, text, batch_id=view.batch_id, **view.facts, **more)
    return Exit.DONE


async def drain(ledger: LedgerAddress, worker: str, context: CommandContext) -> Exit:
    """Let a worker end in order. Raises CommandEnded or LedgerError."""
    async with open_database(ledger) as database:
        from ...bulk.ledger.postgresql.leasing import workers

        found = await workers.drain(database, worker)
    context.show.heading(ledger.shown)
    who, facts = (
        f"process {found.pid} on {clean(found.host)}",
        worker_facts(attrs.evolve(found, is_draining=True)),
    )
    if found.silent < LEASE:
        context.show.step("Drained", f"{who} takes no more rows, and ends", **facts)
    else:
        text = f"{who} has not reported for {duration_text(found.silent)}: it is gone, or cut off from the "
        text += "database, and ends should it come back"
        context.show.step("Drain", text, good=None, drained=False, **facts)
    return Exit.DONE


async def cancel_rest(ledger: LedgerAddress, context: CommandContext, *, sure: bool) -> Exit:
    """Cancel the rows that were not sent, once a person has confirmed it. Raises CommandEnded."""
    view = await view_of(ledger)
    before = view.figures.counts["cancelled"]
    if rows := view.figures.counts["not_started"]:
        if not sure:
            _confirm_cancel(view, ledger, rows, context)
        with context.spinner("Cancelling"):
            async with open_shared(ledger) as batch:
                figures = figures_of(await batch.cancel_rest())
        rows = figures.counts["cancelled"] - before
    text = (
        f"{counted(rows, 'row')} cancelled"
        if rows
        else "every row was sent or cancelled; nothing was changed"
    )
    return await _show_change(ledger, context, "Cancelled", text, rows=rows)


def _confirm_cancel(view: BatchView, ledger: LedgerAddress, rows: int, context: CommandContext) -> None:
    """Ask for the batch's name. Raises CommandEnded without it."""
    sums = {currency: sums["not_started"] for currency, sums in view.figures.sums.items()}
    what = f"{counted(rows, 'row')}, {money_text({each: total for each, total in sums.items() if total})}"
    ask = terminal()
    if ask is None:
        again = ledger.command("cancel-rest", "--yes")
        problem = f"{what}, would be cancelled, and there is no terminal to confirm it on"
        raise CommandEnded(f"{problem}; nothing was changed. To cancel them: `{again}`", Exit.USAGE)
    try:
        with context.interrupts.asking():
            typed = ask(f"{what}, will be cancelled. Type the batch's name to do it:")
    except KeyboardInterrupt:
        raise CommandEnded("not confirmed; nothing was changed", Exit.INTERRUPTED) from None
    if typed.strip() != view.batch_id:
        raise CommandEnded("that is not the batch's name; nothing was changed", Exit.USAGE)
