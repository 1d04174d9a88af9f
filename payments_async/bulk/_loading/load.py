"""Loads an input into the ledger: reads it once to check it, and once to import it.

Refuses an input that is another batch too, beside this ledger: its rows could be paid twice, under other
references.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping
from contextlib import aclosing
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final
from unicodedata import normalize

import attrs

from .._files import refuse_ledger_files
from .._ledger.ledger import Ledger
from .._ledger.sqlite.status_file import paid_elsewhere
from .._options import require_batch_id
from .._protocol.outcomes import payable
from .._protocol.records import Binding, NewRow
from .._protocol.stop_rules import Account
from .._report import ImportReport
from ..errors import BulkError, SourceUnreadable
from ..ledger_errors import BatchExists
from ..sources import Frame, Item, IterableSource, Source, open_source
from . import input_edits
from .new_rows import RowIdentifiers
from .reader import CHANGED, SourceReader
from .survey import accepted, survey

if TYPE_CHECKING:
    from ..._guard.key_guard import KeyGuard

Input = Source | str | os.PathLike[str] | Frame | Iterable[Item] | AsyncIterable[Item]
"""A source, a file's path, a DataFrame, or payouts themselves."""

_NO_FILE: Final = "{}"
_NEEDS_BATCH_ID: Final = "a live key needs a batch id here, as not every row has a reference of its own"


def _usable_batch_id(_: object, __: object, batch_id: str | None) -> None:
    require_batch_id(batch_id)


@attrs.frozen(kw_only=True)
class LoadSettings:
    """Settings of a load: how to read the input, and which changes to accept."""

    batch_id: str | None = attrs.field(default=None, validator=_usable_batch_id)
    reference_prefix: str = ""
    proofs: bool = True
    skip_invalid: bool = False
    rejects: str | os.PathLike[str] | None = None
    strict_amounts: bool = False
    accept_edits: bool = False
    pay_again: bool = False

    def named(self, otherwise: str) -> str:
        """The batch's name in composed form (NFC), as row keys have theirs; `otherwise` when it has none."""
        return otherwise if self.batch_id is None else normalize("NFC", self.batch_id)


def settings_of(options: Mapping[str, Any], batch_id: str | None = None) -> LoadSettings:
    """Make settings from options; `batch_id` is the name that the batch was opened by.

    Raises TypeError for an unknown option, and BulkError.
    """
    known = attrs.fields_dict(LoadSettings)
    for name in options:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(sorted(known))}"
            raise TypeError(f"there is no option {name!r} for reading an input; {hint}")
    settings = LoadSettings(**options)
    if settings.batch_id is None:
        return attrs.evolve(settings, batch_id=batch_id)
    if batch_id is not None and settings.named("") != normalize("NFC", batch_id):
        raise BulkError(f"the batch was opened as {batch_id}, and its input is given as {settings.batch_id}")
    return settings


def source_of(given: Input, *, strict_amounts: bool, guard: KeyGuard | None = None) -> Source:
    """Make the source of an input, under a guard. Raises SourceUnreadable for an unknown kind of file."""
    source = _source_of(given, strict_amounts=strict_amounts)
    if guard is None:
        return source
    from .guarded_source import GuardedSource  # most programs have no guard

    return GuardedSource(source, guard)


def _source_of(given: Input, *, strict_amounts: bool) -> Source:
    if isinstance(given, Source):
        return given
    if isinstance(given, str | os.PathLike):
        return open_source(given, strict_amounts=strict_amounts)
    if isinstance(given, Frame):
        from ..sources._frames import FrameSource  # needs pyarrow

        return FrameSource(given, strict_amounts=strict_amounts)
    return IterableSource(given, strict_amounts=strict_amounts)


def stat_of(source: Source) -> str:
    """Facts that identify an unchanged file without reading it: JSON text, `{}` when there is no file."""
    stat = source.stat()
    return json.dumps({} if stat is None else attrs.asdict(stat), separators=(",", ":"))


def same_file(recorded: Binding, stat: str) -> bool:
    """True if a file's facts are those of the file that was read into the ledger."""
    return stat not in (_NO_FILE, "") and stat == recorded.input_stat


def refuse_rejects(target: str | os.PathLike[str] | None, ledger: str, source: Source) -> None:
    """Raise BulkError when rejects written to `target` would replace the ledger or the source's file."""
    if target is None:
        return
    refuse_ledger_files(target, ledger)
    is_file = source.stat() is not None
    if is_file and os.path.realpath(target) == os.path.realpath(source.name):
        raise BulkError(f"{os.fspath(target)}: is the input itself; choose another path for the rejects")


async def load(ledger: Ledger, place: Account, source: Source, settings: LoadSettings) -> ImportReport:
    """Import a source, or check that it is the one the ledger was begun with.

    Raises SourceErrors, SourceUnreadable, BatchIdRequired, LedgerMismatch, LedgerDuplicates or another
    LedgerError, and BulkError where the rejects would replace one of the batch's own files.
    """
    refuse_rejects(settings.rejects, ledger.path, source)
    stat = stat_of(source)
    await ledger.refresh()
    if ledger.is_empty:
        try:
            return await _imported(ledger, place, source, settings, stat)
        except BatchExists:  # another process has just imported it
            await ledger.refresh()
    return await _known(ledger, require_place(ledger, place, settings), source, settings, stat, dry=False)


async def _imported(
    ledger: Ledger, place: Account, source: Source, settings: LoadSettings, stat: str
) -> ImportReport:
    identifiers, reading, binding = await _new(source, place, settings, stat)
    warnings = [*await _paid_again(ledger, binding, settings), *reading.warnings]
    header = await ledger.import_rows(binding, _rows(source, identifiers, binding.input_hash))
    totals, skipped = dict(header.totals), reading.faults.rows
    return ImportReport(binding.batch_id, header.rows, totals, True, skipped, tuple(warnings))


async def preview(
    path: str | None, ledger: Ledger | None, place: Account | None, source: Source, settings: LoadSettings
) -> ImportReport:
    """Make the report that `load` would give for a ledger. Imports nothing, sends nothing.

    `path` is that of a ledger in a file. `ledger` is None when there is none there; rows that differ in it
    are in the report. Raises as `load` does otherwise.
    """
    stat = stat_of(source)
    if ledger is not None:
        await ledger.refresh()
    if ledger is not None and not ledger.is_empty:
        recorded = ledger.header.binding
        here = place or Account(recorded.environment, recorded.base_url, recorded.key_fingerprint)
        return await _known(ledger, require_place(ledger, here, settings), source, settings, stat, dry=True)
    _, reading, binding = await _new(source, place or Account("", "", ""), settings, stat)
    if ledger is not None:
        elsewhere = await ledger.paid_elsewhere(binding)
    else:  # beside a file that is not there; a database without tables has no batch either
        elsewhere = None if path is None else paid_elsewhere(path, binding)
    warnings = [] if elsewhere is None else [elsewhere.problem]
    warnings += reading.warnings
    if place is None and settings.batch_id is None and reading.unnamed:
        warnings.append(_NEEDS_BATCH_ID)
    skipped = reading.faults.rows
    return ImportReport(binding.batch_id, reading.good, reading.totals, True, skipped, tuple(warnings))


async def _new(
    source: Source, place: Account, settings: LoadSettings, stat: str
) -> tuple[RowIdentifiers, SourceReader, Binding]:
    """Read and check an input that no ledger holds. What is returned can be imported."""
    unnamed = RowIdentifiers(place.environment, "", settings.reference_prefix, settings.proofs)
    found = await survey(source, unnamed, must_name=must_name(place, settings.batch_id))
    identifiers = attrs.evolve(unnamed, batch_id=settings.named(found.fingerprint))
    reading = await accepted(found, identifiers, skip=settings.skip_invalid, rejects=settings.rejects)
    if not reading.good:
        raise SourceUnreadable(source.name, "has no row that can be paid")
    at = (place.environment, place.base_url, place.key)
    return identifiers, reading, Binding(identifiers.batch_id, *at, found.fingerprint, stat)


def must_name(place: Account, batch_id: str | None) -> bool:
    """True if the rows of a new batch need references of their own: nothing else outlives a lost ledger."""
    return place.environment == "live" and batch_id is None


async def _paid_again(ledger: Ledger, binding: Binding, settings: LoadSettings) -> list[str]:
    """Warn of an input that is also another batch. Raises InputPaidElsewhere unless `pay_again` is set."""
    elsewhere = await ledger.paid_elsewhere(binding)
    if elsewhere is None:
        return []
    if not settings.pay_again:
        raise elsewhere
    return [f"{elsewhere.problem}: it is paid again on purpose"]


def require_place(ledger: Ledger, place: Account, settings: LoadSettings) -> Binding:
    """Check that a ledger holds the intended batch, at this account. Raises LedgerMismatch."""
    recorded = ledger.header.binding
    given = attrs.evolve(
        recorded,
        batch_id=settings.named(recorded.batch_id),
        environment=place.environment,
        base_url=place.base_url,
    )
    ledger.require(given)
    return given


async def _known(
    ledger: Ledger, binding: Binding, source: Source, settings: LoadSettings, stat: str, *, dry: bool
) -> ImportReport:
    """Load an input into a ledger that already has one: the same, or an edited one."""
    if same_file(binding, stat):
        return _report(ledger)
    identifiers = await input_edits.identifiers_of(ledger, settings.reference_prefix)
    found = await survey(source, identifiers)
    if found.fingerprint == binding.input_hash:
        return _report(ledger)
    reading = await accepted(found, identifiers, skip=settings.skip_invalid, rejects=settings.rejects)
    if dry:
        return await _compared(ledger, reading, identifiers)
    edited = attrs.evolve(binding, input_hash=found.fingerprint, input_stat=stat)
    return await _edited(ledger, source, settings, identifiers, edited)


def _report(ledger: Ledger) -> ImportReport:
    """Make the report of a ledger that already has its input."""
    header, worth = ledger.header, payable(ledger.totals)
    totals = dict(header.totals)
    return ImportReport(header.binding.batch_id, header.rows, totals, False, 0, (), payable=worth)


async def _compared(ledger: Ledger, reading: SourceReader, identifiers: RowIdentifiers) -> ImportReport:
    compared = await input_edits.compared(ledger, SourceReader(reading.source, identifiers), identifiers)
    return attrs.evolve(
        _report(ledger),
        skipped=reading.faults.rows,
        warnings=tuple(reading.warnings),
        differences=tuple(compared.first),
        differing=compared.total,
        input_totals=dict(reading.totals),
    )


async def _edited(
    ledger: Ledger, source: Source, settings: LoadSettings, identifiers: RowIdentifiers, binding: Binding
) -> ImportReport:
    again = await _paid_again(ledger, binding, settings) if settings.accept_edits else []
    reading = SourceReader(source, identifiers)
    made = await input_edits.accepted(ledger, reading, identifiers, binding, accept=settings.accept_edits)
    changed = made.corrected + made.cancelled
    same = [] if changed else ["the input was rewritten; its rows are the same as before"]
    return attrs.evolve(
        _report(ledger),
        skipped=reading.faults.rows,
        warnings=(*again, *same, *reading.warnings),
        corrected=made.corrected,
        cancelled=made.cancelled,
    )


async def _rows(source: Source, identifiers: RowIdentifiers, fingerprint: str) -> AsyncIterator[NewRow]:
    """Read the rows without a fault again, to import them. Raises SourceUnreadable on a changed input."""
    reading = SourceReader(source, identifiers)
    async with aclosing(reading.rows()) as rows:
        async for row in rows:
            yield identifiers.new_row(row)
    if reading.fingerprint != fingerprint:
        raise SourceUnreadable(source.name, CHANGED)
