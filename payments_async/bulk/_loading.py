"""An input into the ledger: read once to see that it is clean, once to import it."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping
from contextlib import nullcontext
from decimal import Decimal

import attrs

from ._closing import Place
from ._records import Binding, NewRow
from ._rows_in import Naming, checked
from .errors import SourceUnreadable
from .ledger import Ledger
from .sources import FaultCollector, Item, IterableSource, RejectsFile, Row, RowFault, Source, open_source

Input = Source | str | os.PathLike[str] | Iterable[Item] | AsyncIterable[Item]
"""A source, a file's path, or payouts themselves."""


@attrs.frozen
class ImportReport:
    """What a batch's input came to."""

    batch_id: str
    rows: int
    """Rows of the batch."""
    totals: Mapping[str, Decimal]
    """{currency: the sum of their amounts, major units}."""
    is_new: bool
    """Whether they were imported now; False when the ledger had them already."""
    skipped: int
    """Rows left out because of faults, when they were read now."""
    warnings: tuple[str, ...]
    """The first of what is allowed and yet worth a look."""


@attrs.frozen(kw_only=True)
class Wishes:
    """How an input is to be read."""

    batch_id: str | None
    prefix: str
    proofs: bool
    skip_invalid: bool
    rejects: str | os.PathLike[str] | None


@attrs.define
class _Reading:
    fingerprint: str = ""
    rows: int = 0
    skipped: int = 0
    warnings: list[str] = attrs.field(factory=list)


_WARNINGS = 20


def source_of(given: Input, *, strict_amounts: bool) -> Source:
    """The source that is meant. Raises SourceUnreadable for an unknown kind of file."""
    if isinstance(given, Source):
        return given
    if isinstance(given, str | os.PathLike):
        return open_source(given, strict_amounts=strict_amounts)
    return IterableSource(given, strict_amounts=strict_amounts)


def stat_of(source: Source) -> str:
    """By which an unchanged file is known without reading it; JSON text, `{}` for rows that are no file."""
    stat = source.stat()
    return json.dumps({} if stat is None else attrs.asdict(stat), separators=(",", ":"))


async def load(ledger: Ledger, place: Place, source: Source, wishes: Wishes) -> ImportReport:
    """Import a source, or see that it is what the ledger was begun with.

    Raises SourceErrors, SourceUnreadable, LedgerMismatch, LedgerDuplicates or another LedgerError.
    """
    stat = stat_of(source)
    if not ledger.is_empty:
        return await _known(ledger, place, source, wishes, stat)
    reading = await _read(source, wishes)
    batch_id = wishes.batch_id or reading.fingerprint
    binding = Binding(batch_id, place.environment, place.base_url, place.key, reading.fingerprint, stat)
    naming = Naming(place.environment, batch_id, wishes.prefix, wishes.proofs)
    header = await ledger.import_rows(binding, _rows(source, naming, reading.fingerprint))
    told = tuple(reading.warnings)
    return ImportReport(batch_id, header.rows, dict(header.totals), True, reading.skipped, told)


async def _known(ledger: Ledger, place: Place, source: Source, wishes: Wishes, stat: str) -> ImportReport:
    recorded = ledger.header.binding
    given = attrs.evolve(
        recorded,
        batch_id=wishes.batch_id or recorded.batch_id,
        environment=place.environment,
        base_url=place.base_url,
    )
    ledger.require(given)
    if stat == "{}" or stat != recorded.input_stat:
        reading = await _read(source, attrs.evolve(wishes, skip_invalid=True, rejects=None))
        ledger.require(attrs.evolve(given, input_hash=reading.fingerprint))
    header = ledger.header
    return ImportReport(recorded.batch_id, header.rows, dict(header.totals), False, 0, ())


async def _read(source: Source, wishes: Wishes) -> _Reading:
    """Every row once. Raises SourceErrors with all faults together, unless they are to be skipped."""
    reading, faults = _Reading(), FaultCollector(source)
    rejects = RejectsFile(wishes.rejects, source) if wishes.rejects is not None else None
    with rejects or nullcontext():
        async for item in checked(source, prefix=wishes.prefix, proofs=wishes.proofs):
            if isinstance(item, RowFault):
                faults.add(item)
                if rejects is not None:
                    rejects.add(item)
            else:
                reading.rows += 1
                _note_warnings(reading, item)
    if not wishes.skip_invalid and (error := faults.error()):
        raise error
    if not reading.rows:
        raise SourceUnreadable(source.name, "has no row that can be paid")
    reading.fingerprint, reading.skipped = source.fingerprint(), faults.rows
    return reading


def _note_warnings(reading: _Reading, row: Row) -> None:
    if row.warnings and len(reading.warnings) < _WARNINGS:
        where = f"row {row.number}" if row.line is None else f"line {row.line}"
        reading.warnings.extend(f"{where}, {warning}" for warning in row.warnings)


async def _rows(source: Source, naming: Naming, fingerprint: str) -> AsyncIterator[NewRow]:
    """The rows without a fault, of the very input that was read before. Raises SourceUnreadable."""
    async for item in checked(source, prefix=naming.prefix, proofs=naming.proofs):
        if isinstance(item, Row):
            yield naming.new_row(item)
    if source.fingerprint() != fingerprint:
        raise SourceUnreadable(source.name, "changed while it was read: read it again")
