"""Loads an input into the ledger: reads it once to check it, and once to import it.

Refuses an input that is another batch too, beside this ledger: its rows could be paid twice, under other
references.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

import attrs

from .._files import refuse_ledger_files
from .._ledger.figures import figures
from .._ledger.ledger import Ledger
from .._ledger.loading import IS_OUTBOX, import_rows, paid_elsewhere
from .._options import composed, require_batch_id
from .._protocol.records import Account, Binding, NewRow
from .._run.account import require_account
from ..errors import BulkError, SourceUnreadable
from ..report import ImportReport, batch_figures_of
from ..sources import Frame, Item, IterableSource, Source, open_source
from .input_edits import compared
from .new_rows import RowIdentifiers
from .reader import CHANGED, SourceReader, accepted, survey

if TYPE_CHECKING:
    from ..._guard.key_guard import KeyGuard

Input = Source | str | os.PathLike[str] | Frame | Iterable[Item] | AsyncIterable[Item]
"""A source, a file's path, a DataFrame, or payouts themselves."""

_NO_FILE: Final = "{}"
_NEEDS_BATCH_ID: Final = "a live key needs a batch id here, as not every row has a reference of its own"


@attrs.frozen(kw_only=True)
class LoadSettings:
    """Settings of a load: how to read the input, and which changes to accept."""

    batch_id: str | None = None
    """As ledgers have it; None to name the batch by its input."""
    skip_invalid: bool = False
    rejects: str | os.PathLike[str] | None = None
    doubts: bool = True
    accept_edits: bool = False
    pay_again: bool = False
    guard: KeyGuard | None = None


def name_of(opened: str | None, given: str | None) -> str | None:
    """The name of a batch that was opened by a name, and whose input is given with one. Raises BulkError."""
    require_batch_id(given)
    name = composed(given)
    if opened is None or name is None:
        return name or opened
    if name != opened:
        raise BulkError(f"the batch was opened as {opened}, and its input is given as {given}")
    return name


def source_of(given: Input) -> Source:
    """Make the source of an input. Raises SourceUnreadable for an unknown kind of file."""
    if isinstance(given, Source):
        return given
    if isinstance(given, str | os.PathLike):
        return open_source(given)
    if isinstance(given, Frame):
        from ..sources._arrow import FrameSource  # needs pyarrow

        return FrameSource(given)
    return IterableSource(given)


def stat_of(source: Source) -> str:
    """Facts that identify an unchanged file without reading it: JSON text, `{}` when there is no file."""
    return json.dumps(source.stat(), separators=(",", ":"))


def same_file(recorded: Binding, stat: str) -> bool:
    """True if a file's facts are those of the file that was read into the ledger."""
    return stat not in (_NO_FILE, "") and stat == recorded.input_stat


def refuse_rejects(target: str | os.PathLike[str] | None, ledger: str, source: Source) -> None:
    """Raise BulkError when rejects written to `target` would replace the ledger or the source's file."""
    if target is None:
        return
    refuse_ledger_files(target, ledger)
    if source.stat() and os.path.realpath(target) == os.path.realpath(source.name):
        raise BulkError(f"{os.fspath(target)}: is the input itself; choose another path for the rejects")


async def load(ledger: Ledger, place: Account, source: Source, settings: LoadSettings) -> ImportReport:
    """Import a source, or check that it is the one the ledger was begun with.

    Raises SourceErrors, SourceUnreadable, BatchIdRequired, LedgerMismatch, LedgerDuplicates or another
    LedgerError, and BulkError where the rejects would replace one of the batch's own files.
    """
    refuse_rejects(settings.rejects, ledger.database.path or "", source)
    stat = stat_of(source)
    if await ledger.refresh() is None:
        identifiers, reading, binding = await _new(source, place, settings, stat)
        warnings = [*await _paid_again(ledger, binding, settings), *reading.warnings]
        if await import_rows(ledger, binding, lambda: _rows(source, identifiers, binding.input_hash)):
            report = await _report(ledger, is_new=True)
            return attrs.evolve(report, skipped=reading.faulty, warnings=tuple(warnings))
    # it is there: perhaps another process has just imported it
    return await _known(ledger, place, source, settings, stat, changes=True)


async def preview(
    path: str | None, ledger: Ledger | None, place: Account | None, source: Source, settings: LoadSettings
) -> ImportReport:
    """Make the report that `load` would give for a ledger. Imports nothing, sends nothing.

    `path` is that of a ledger in a file. `ledger` is None when there is none there; rows that differ in it
    are in the report. Raises as `load` does otherwise.
    """
    refuse_rejects(settings.rejects, path or "", source)
    stat = stat_of(source)
    if ledger is not None and await ledger.refresh() is not None:
        recorded = ledger.known.binding
        here = place or Account(recorded.environment, recorded.base_url, recorded.key_fingerprint)
        return await _known(ledger, here, source, settings, stat, changes=False)
    _, reading, binding = await _new(source, place or Account("", "", ""), settings, stat)
    elsewhere = await paid_elsewhere(None if ledger is None else ledger.database, path, binding)
    warnings = [*([] if elsewhere is None else [elsewhere.problem]), *reading.warnings]
    if place is None and settings.batch_id is None and reading.unnamed:
        warnings.append(_NEEDS_BATCH_ID)
    return ImportReport(
        binding.batch_id,
        reading.good,
        reading.totals,
        is_new=True,
        skipped=reading.faulty,
        warnings=tuple(warnings),
        doubts=reading.doubts,
    )


async def _new(
    source: Source, place: Account, settings: LoadSettings, stat: str
) -> tuple[RowIdentifiers, SourceReader, Binding]:
    """Read and check an input that no ledger holds. What is returned can be imported."""
    unnamed = RowIdentifiers(place.environment, "", settings.doubts, settings.guard)
    # nothing but references of their own outlives a lost ledger, where the batch has no name
    must_name = place.environment == "live" and settings.batch_id is None
    found, shared = await survey(source, unnamed, must_name=must_name)
    identifiers = attrs.evolve(unnamed, batch_id=settings.batch_id or found.fingerprint)
    skip, rejects = settings.skip_invalid, settings.rejects
    reading = await accepted(found, shared, identifiers, skip=skip, rejects=rejects)
    if not reading.good:
        raise SourceUnreadable(source.name, "has no row that can be paid")
    binding = Binding(
        batch_id=identifiers.batch_id,
        environment=place.environment,
        base_url=place.base_url,
        key_fingerprint=place.key,
        input_hash=found.fingerprint,
        input_stat=stat,
    )
    return identifiers, reading, binding


async def _paid_again(ledger: Ledger, binding: Binding, settings: LoadSettings) -> list[str]:
    """Warn of an input that is also another batch. Raises InputPaidElsewhere unless `pay_again` is set."""
    elsewhere = await paid_elsewhere(ledger.database, ledger.database.path, binding)
    if elsewhere is None:
        return []
    if not settings.pay_again:
        raise elsewhere
    return [f"{elsewhere.problem}: it is paid again on purpose"]


_OTHER: Final = (
    "give the ledger's batch id, or none, to go on with its batch; only rows that no batch has paid get a "
    "batch of their own, as under another batch id the same rows are paid again"
)


async def _known(
    ledger: Ledger, place: Account, source: Source, settings: LoadSettings, stat: str, *, changes: bool
) -> ImportReport:
    """Load an input into a ledger that already has one: the same, or an edited one. Raises LedgerMismatch.

    Without `changes` it is only compared.
    """
    known = ledger.known
    binding = known.binding
    if known.is_outbox:
        raise BulkError(f"{ledger.label}: {IS_OUTBOX}")
    ledger.require("batch id", binding.batch_id, settings.batch_id or binding.batch_id, remedy=_OTHER)
    require_account(ledger, place)
    if same_file(binding, stat):
        return await _report(ledger)
    identifiers = RowIdentifiers(binding.environment, binding.batch_id, settings.doubts, settings.guard)
    found, shared = await survey(source, identifiers)
    if found.fingerprint == binding.input_hash:
        return await _report(ledger)
    skip, rejects = settings.skip_invalid, settings.rejects
    reading = await accepted(found, shared, identifiers, skip=skip, rejects=rejects)
    edited = attrs.evolve(binding, input_hash=found.fingerprint, input_stat=stat)
    if not changes:
        made = await compared(ledger, source, identifiers, edited)
        return attrs.evolve(
            await _report(ledger),
            skipped=reading.faulty,
            warnings=tuple(reading.warnings),
            differences=tuple(made.first),
            differing=made.total,
            input_totals=dict(reading.totals),
        )
    again = await _paid_again(ledger, edited, settings) if settings.accept_edits else []
    made = await compared(ledger, source, identifiers, edited, changes=True, accept=settings.accept_edits)
    is_same = not (made.corrected or made.cancelled)
    same = ["the input was rewritten; its rows are the same as before"] if is_same else []
    return attrs.evolve(
        await _report(ledger),
        skipped=made.reading.faulty,
        warnings=(*again, *same, *made.reading.warnings),
        corrected=made.corrected,
        cancelled=made.cancelled,
    )


async def _report(ledger: Ledger, *, is_new: bool = False) -> ImportReport:
    """Make the report of a ledger that has its input."""
    known = ledger.known
    totals = dict(known.totals)
    return ImportReport(
        known.binding.batch_id,
        known.rows,
        totals,
        is_new=is_new,
        skipped=0,
        warnings=(),
        doubts=known.doubts,
        payable=totals if is_new else batch_figures_of((await figures(ledger)).totals).payable,
    )


async def _rows(source: Source, identifiers: RowIdentifiers, fingerprint: str) -> AsyncIterator[NewRow]:
    """Read the rows without a fault again, to import them. Raises SourceUnreadable on a changed input."""
    reading = SourceReader(source, identifiers)
    async with aclosing(reading.rows()) as rows:
        async for row in rows:
            yield identifiers.new_row(row)
    if reading.fingerprint != fingerprint:
        raise SourceUnreadable(source.name, CHANGED)
