"""Batches and workers of a database: their figures, and the commands that change them."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import attrs

from ...bulk import BatchDatabase, BatchState, ClosedBatch, ForgottenBatch, ListedBatch, ListedWorker
from ...bulk._texts.ledger_address import LedgerAddress, open_batch, open_shared
from ...bulk._texts.outcomes import outcomes_text, title_of
from ...bulk._texts.quantities import counted, duration_text, money_text, size_text
from ...bulk.ledger_errors import LedgerLocked
from ...guard import Guard
from ...models._masking import clean
from .._exit_codes import CommandEnded, Exit
from .command_context import CommandContext, open_database
from .confirm import ConfirmOptions, confirm_once, terminal
from .messages import guard_text
from .options import ForgetOptions, PlanOptions, shortest

_COMPLETE: Final = "it is complete"


def chunks_of(batch: ListedBatch) -> dict[str, int]:
    """Chunks with open rows, those that a worker holds, and those that are done."""
    open_ = batch.chunks_open
    return {"open": open_, "leased": batch.chunks_leased, "done": batch.chunks - open_}


def batch_facts(batch: ListedBatch) -> dict[str, Any]:
    """What a batch in a database has, for programs, beside its figures."""
    left = batch.seconds_left
    return {
        "state": str(batch.state),
        "reason": batch.reason,
        "rule": batch.rule,
        "environment": batch.environment,
        "chunks": chunks_of(batch),
        "workers": len(batch.workers),
        "idle_workers": batch.idle_workers,
        "per_minute": round(batch.per_minute),
        "seconds_left": None if left is None else round(left),
        "closed_at": batch.closed_at,
        "forgotten": None if batch.forgotten is None else _forgotten_facts(batch.forgotten),
    }


def _forgotten_facts(batch: ForgottenBatch) -> dict[str, Any]:
    certificate = None if batch.certificate is None else json.loads(batch.certificate)
    return {**attrs.asdict(batch), "certificate": certificate}


def speed_text(batch: ListedBatch) -> str:
    """`3 workers, 58,210 rows a minute, 56 s left`."""
    if not batch.workers:
        idle = f"; {counted(batch.idle_workers, 'worker')} without work" if batch.idle_workers else ""
        return f"no worker holds a chunk of it{idle}"
    left = batch.seconds_left
    parts = [counted(len(batch.workers), "worker"), f"{counted(round(batch.per_minute), 'row')} a minute"]
    return ", ".join([*parts, *([] if left is None else [f"{duration_text(left)} left"])])


async def listed_in(database: BatchDatabase, ledger: LedgerAddress) -> ListedBatch:
    """Read the batch that the address names. Raises CommandEnded when there is none."""
    for batch in await database.batches(ledger.batch_id):
        return batch
    missing = f"{ledger.shown}: there is no batch {ledger.batch_id}"
    listed = attrs.evolve(ledger, batch_id=None).command("batches")
    raise CommandEnded(f"{missing}; `{listed}` lists those there are", Exit.USAGE)


async def listed(ledger: LedgerAddress) -> ListedBatch:
    """The same, on a connection of its own."""
    async with open_database(ledger) as database:
        return await listed_in(database, ledger)


async def _listed_with_rows(ledger: LedgerAddress) -> ListedBatch:
    """The same, of a batch that can be changed. Raises LedgerForgotten too."""
    listing = await listed(ledger)
    if listing.forgotten is not None:
        async with open_shared(ledger):
            pass  # that raises it
    return listing


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
    listing = await _listed_with_rows(ledger)
    if listing.state is BatchState.IMPORTED:
        raise CommandEnded(f"{ledger.label}: was not planned yet, so no worker takes a row", Exit.USAGE)
    if listing.state is BatchState.CLOSED:
        text = "every row is decided; nothing was changed"
        return await _show_change(ledger, context, "Pause", text, paused=False)
    async with open_shared(ledger) as batch:
        await batch.pause(reason)
    text = "no worker begins another row within 5 s"
    if listing.state is BatchState.SUSPECT:
        text = "it is suspect; after `recover` it stays paused"
    return await _show_change(ledger, context, "Paused", text)


async def resume(ledger: LedgerAddress, context: CommandContext, *, guard: bool, sure: bool) -> Exit:
    """End a pause; of a batch that is not paused, show what resumes it. Raises CommandEnded."""
    listing = await _listed_with_rows(ledger) if ledger.is_database else None
    if guard and listing is not None:
        return await _resume_under_guard(listing, ledger, context, sure=sure)
    if listing is None or listing.state is not BatchState.PAUSED:
        text, command = await _resuming_file(ledger) if listing is None else _resuming(listing, ledger)
        context.show.heading(ledger.shown)
        context.show.step("Resume", text, good=None, resumed=False, command=command)
        if command and not context.as_json:
            context.show.step("Command", command, good=None, wrap=False)
        return Exit.DONE
    async with open_shared(ledger) as batch:
        await batch.resume()
    text = no_worker(ledger) if listing.is_alone else "workers go on with it"
    return await _show_change(ledger, context, "Resumed", text)


async def _resume_under_guard(
    listing: ListedBatch, ledger: LedgerAddress, context: CommandContext, *, sure: bool
) -> Exit:
    """Record the guard that workers have from now on, and end a pause. Raises ConfigurationError too."""
    path = os.environ.get("PAYMENTS_GUARD")
    guards = (Guard.from_file(path),) if path else ()
    text = guard_text(guards)
    if listing.environment == "live" and not sure:
        again = f"To do it: `{ledger.command('resume', '--guard', '--yes')}`"
        _require_word(listing.batch_id, "the batch's name", text, "the guard of the batch", again, context)
    async with open_shared(ledger) as batch:
        await batch.resume(guard="+".join(guard.digest for guard in guards))
    return await _show_change(ledger, context, "Guard", f"{text}; only workers that have it go on")


async def _resuming_file(ledger: LedgerAddress) -> tuple[str, str]:
    """The same as `_resuming`, of a ledger in a file. Raises LedgerError when the file is none."""
    try:
        async with open_batch(ledger) as batch:
            if batch.status().complete:
                return _COMPLETE, ""
    except LedgerLocked as locked:
        return f"a ledger in a file is never paused, and a run is under way: {locked.problem}", ""
    return "a ledger in a file is never paused: the same `run` command resumes it", run_command(ledger)


def _resuming(listing: ListedBatch, ledger: LedgerAddress) -> tuple[str, str]:
    """Why there is nothing to resume, and the command that does more."""
    if listing.report.complete:
        return _COMPLETE, ""
    if listing.state is BatchState.SUSPECT:
        return "it is suspect, not paused: commits may be lost", ledger.command("recover")
    if listing.state is BatchState.IMPORTED:
        return "it was not planned yet", run_command(ledger)
    if stopped := listing.rule:
        return f"it is not paused: {stopped}; raise that limit", run_command(ledger)
    return "it is not paused; workers go on with it, or the same `run` command", run_command(ledger)


async def _show_change(
    ledger: LedgerAddress, context: CommandContext, name: str, text: str, **more: Any
) -> Exit:
    listing = await listed(ledger)
    text += "; a worker closes it" if listing.is_unclosed else ""
    context.show.heading(ledger.shown, title_of(listing.batch_id))
    context.show.step(name, text, batch_id=listing.batch_id, **batch_facts(listing), **more)
    return Exit.DONE


async def confirm(ledger: LedgerAddress, wanted: PlanOptions, context: CommandContext) -> Exit:
    """Plan an imported batch once a person has confirmed its total. Raises CommandEnded."""
    listing = await _listed_with_rows(ledger)
    if listing.state is not BatchState.IMPORTED:
        return await _show_change(ledger, context, "Confirm", "it was planned before; nothing was changed")
    async with open_shared(ledger) as batch:
        report = batch.status()
        asking = ConfirmOptions(
            wanted.confirm_total or (), listing.environment == "live", context.interrupts.asking, terminal()
        )
        confirm_once(report.payable, report.rows - report.counts["cancelled"], asking)
        await batch.plan(**wanted.rules, lossy_standby=wanted.lossy_standby)
    text = no_worker(ledger) if listing.is_alone else "workers begin with it"
    return await _show_change(ledger, context, "Confirmed", f"{money_text(report.payable)}; {text}")


async def drain(ledger: LedgerAddress, worker: str, context: CommandContext) -> Exit:
    """Let a worker end in order. Raises CommandEnded or LedgerError."""
    async with open_database(ledger) as database:
        found = await database.drain(worker)
    context.show.heading(ledger.shown)
    who, facts = f"process {found.pid} on {clean(found.host)}", worker_facts(found)
    if not found.is_gone:
        context.show.step("Drained", f"{who} takes no more rows, and ends", **facts)
    else:
        text = f"{who} has not reported for {duration_text(found.silent)}: it is gone, or cut off from the "
        text += "database, and ends should it come back"
        context.show.step("Drain", text, good=None, drained=False, **facts)
    return Exit.DONE


async def cancel_rest(ledger: LedgerAddress, context: CommandContext, *, sure: bool) -> Exit:
    """Cancel the rows that were not sent, once a person has confirmed it. Raises CommandEnded."""
    listing = await _listed_with_rows(ledger)
    before = listing.report.counts["cancelled"]
    if rows := listing.report.counts["not_started"]:
        if not sure:
            _confirm_cancel(listing, ledger, rows, context)
        with context.spinner("Cancelling"):
            async with open_shared(ledger) as batch:
                report = await batch.cancel_rest()
        rows = report.counts["cancelled"] - before
    text = (
        f"{counted(rows, 'row')} cancelled"
        if rows
        else "every row was sent or cancelled; nothing was changed"
    )
    return await _show_change(ledger, context, "Cancelled", text, rows=rows)


def _confirm_cancel(listing: ListedBatch, ledger: LedgerAddress, rows: int, context: CommandContext) -> None:
    """Ask for the batch's name. Raises CommandEnded without it."""
    sums = {currency: sums["not_started"] for currency, sums in listing.report.sums.items()}
    what = f"{counted(rows, 'row')}, {money_text({each: total for each, total in sums.items() if total})}"
    again = f"To cancel them: `{ledger.command('cancel-rest', '--yes')}`"
    _require_word(listing.batch_id, "the batch's name", what, "cancelled", again, context)


def _require_word(word: str, named: str, what: str, done: str, again: str, context: CommandContext) -> None:
    """Ask for a word before what cannot be undone. Raises CommandEnded without it."""
    ask = terminal()
    if ask is None:
        problem = f"{what}, would be {done}, and there is no terminal to confirm it on"
        raise CommandEnded(f"{problem}; nothing was changed. {again}", Exit.USAGE)
    try:
        with context.interrupts.asking():
            typed = ask(f"{what}, will be {done}. Type {named} to do it:")
    except KeyboardInterrupt:
        raise CommandEnded("not confirmed; nothing was changed", Exit.INTERRUPTED) from None
    if typed.strip() != word:
        raise CommandEnded(f"that is not {named}; nothing was changed", Exit.USAGE)


async def forget(
    ledger: LedgerAddress, wanted: ForgetOptions, context: CommandContext, *, dry_run: bool, sure: bool
) -> Exit:
    """Forget closed batches, once a person has confirmed it. Raises CommandEnded and LedgerError."""
    age, names = wanted.closed_before, wanted.unsettled or ()
    async with open_database(ledger) as database:
        found = await database.forget(age, unsettled=names, dry_run=True)
        ready = [batch for batch in found if batch.kept is None]
        if ready and not dry_run:
            if not sure:
                _confirm_forgetting(ready, ledger, wanted, context)
            only = [batch.batch_id for batch in ready]  # another may have become settled meanwhile
            with context.spinner("Forgetting"):
                forgotten = await database.forget(age, unsettled=names, only=only)
            found = [batch for batch in found if batch.kept is not None] + forgotten
    context.show.heading(ledger.shown, f"{counted(len(found), 'batch')} closed so long ago")
    for batch in found:
        facts = {**attrs.asdict(batch), "forgotten": not dry_run and batch.kept is None}
        name, text = title_of(batch.batch_id), _rows_text([batch])
        if batch.kept is not None:
            context.show.step("Kept", f"{name}: {batch.kept}", good=None, **facts)
        else:
            context.show.step("Would forget" if dry_run else "Forgotten", f"{name}: {text}", **facts)
    context.show.step("Freed" if not dry_run else "Would free", **_freed(found))
    for batch in [each for each in found if each.kept is not None][:1]:
        command = ledger.of_batch(batch.batch_id).command("reconcile")
        context.show.paragraph(
            f"`{command}` reads the service's list anew. `--unsettled NAME` forgets a closed batch although "
            "it is not settled."
        )
    return Exit.DONE


def _freed(found: Sequence[ClosedBatch]) -> dict[str, Any]:
    """What batches that are not kept have taken, for people and programs."""
    gone = [batch for batch in found if batch.kept is None]
    rows, size = sum(batch.rows for batch in gone), sum(batch.size for batch in gone)
    text = f"{counted(len(gone), 'batch')}, {_rows_text(gone)}"
    return {"text": text, "good": bool(gone) or None, "batches": len(gone), "rows": rows, "bytes": size}


def _rows_text(batches: Sequence[ClosedBatch]) -> str:
    """`60 rows (57 arrived, 3 failed), 287 kB`."""
    counts = sum((Counter(batch.counts) for batch in batches), Counter[str]())
    outcomes = outcomes_text(counts)
    rows = counted(sum(batch.rows for batch in batches), "row") + (f" ({outcomes})" if outcomes else "")
    return f"{rows}, {size_text(sum(batch.size for batch in batches))}"


def _confirm_forgetting(
    ready: Sequence[ClosedBatch], ledger: LedgerAddress, wanted: ForgetOptions, context: CommandContext
) -> None:
    """Ask for a word. Raises CommandEnded without it."""
    options = ["--closed-before", shortest(wanted.closed_before) or "0"]
    options += [part for name in wanted.unsettled or () for part in ("--unsettled", name)]
    again = f"To forget them: `{ledger.command('forget', *options, '--yes')}`"
    _require_word("forget", "`forget`", _freed(ready)["text"], "forgotten", again, context)
