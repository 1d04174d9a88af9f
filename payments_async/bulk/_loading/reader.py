"""Reads an input: passes its rows on, sums them, collects their faults and writes the rejects file.

An input is read once before the import. It is read a second time when rows share a name, or when rejects are
to be written: they carry references, which may be made of the hash of the whole input.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, closing, nullcontext
from decimal import Decimal
from typing import Final

from ..._runtime import SYSTEM
from .._protocol.outcomes import add_amount
from ..errors import BatchIdRequired, SourceErrors, SourceUnreadable
from ..sources import RejectsFile, Row, RowFault, Source, SourceItem
from .duplicates import NameTable, SharedNames
from .new_rows import RowIdentifiers, faults_of

CHANGED: Final = "changed while it was read: read it again"
_TURN: Final = 100
"""Items that are read before other tasks of the loop may run; some 25 milliseconds of a workbook."""
_WARNINGS: Final = 20
_FAULTS: Final = 100  # faults that an error has at most; it counts all
_WITHOUT: Final = (
    "the rejects have no references, which depend on the key's environment: before you pay the other rows, "
    "write them again with the key that pays"
)

Watcher = Callable[[SourceItem], Sequence[RowFault]]
"""Checks each row of a reading, by the first of its items, and returns further faults of it."""


class SourceReader:
    """Reads a source once. Everything but `rows` is complete once the source was read to its end."""

    def __init__(
        self,
        source: Source,
        identifiers: RowIdentifiers,
        *,
        watcher: Watcher | None = None,
        rejects: RejectsFile | None = None,
    ) -> None:
        self.source = source
        self._identifiers = identifiers
        self._watcher, self._rejects = watcher, rejects
        self._watched: int | None = None
        self._faults: list[RowFault] = []
        self._total = 0
        self._last: int | None = None
        self.faulty: int = 0  # rows with faults
        self.can_skip: bool = True  # True if the other rows may be paid without these
        self.good: int = 0  # rows without a fault
        self.unnamed: int = 0
        """Rows without a fault that have no reference of the operator's."""
        self.totals: dict[str, Decimal] = {}
        """{currency: the sum of the amounts, major units} of the rows without a fault."""
        self.doubts: int = 0  # rows with a value that is allowed but doubtful
        self.warnings: list[str] = []
        """The first warnings about values that are allowed but doubtful."""
        self.fingerprint: str = ""

    @property
    def error(self) -> SourceErrors | None:
        """All faults together; None when there was none."""
        if not self._total:
            return None
        return SourceErrors(
            self.source.name, self._faults, total=self._total, rows=self.faulty, can_skip=self.can_skip
        )

    async def rows(self) -> AsyncGenerator[Row, None]:
        """The rows without a fault. Raises SourceUnreadable, and OSError where rejects cannot be written."""
        with nullcontext() if self._rejects is None else self._rejects.written():
            items = 0
            async for item in self.source.rows():
                items += 1
                if items % _TURN == 0:  # a file is read without waiting: others run here
                    await SYSTEM.sleep(0)
                faults = self._faults_of(item)
                for fault in faults:
                    self._refuse(fault)
                if isinstance(item, Row) and not faults:
                    self._count(item)
                    yield item
        self.fingerprint = self.source.fingerprint()

    def _faults_of(self, item: SourceItem) -> list[RowFault]:
        found = [item] if isinstance(item, RowFault) else faults_of(item, self._identifiers)
        if self._watcher is None or item.number == self._watched:
            return found
        self._watched = item.number
        return [*self._watcher(item), *found]

    def _refuse(self, fault: RowFault) -> None:
        self._total += 1
        self.faulty += fault.number != self._last
        self._last = fault.number
        self.can_skip &= not fault.hides_key
        if len(self._faults) < _FAULTS:
            self._faults.append(fault)
        if self._rejects is not None:
            self._rejects.add(fault)

    def _count(self, row: Row) -> None:
        self.good += 1
        self.unnamed += row.reference is None
        add_amount(self.totals, row.request.currency, row.amount)
        self.doubts += bool(row.warnings)
        if row.warnings and len(self.warnings) < _WARNINGS:
            where = f"row {row.number}" if row.line is None else f"line {row.line}"
            self.warnings.extend(f"{where}, {warning}" for warning in row.warnings)


async def survey(
    source: Source, identifiers: RowIdentifiers, *, must_name: bool = False
) -> tuple[SourceReader, SharedNames]:
    """Read an input once. Raises SourceUnreadable, and BulkError without room for temporary files.

    `must_name`: raises BatchIdRequired at the first row whose reference would be made of the input's hash.
    """
    with closing(NameTable()) as names:
        reading = SourceReader(source, identifiers, watcher=names.add)
        async with aclosing(reading.rows()) as rows:
            async for row in rows:
                if must_name and row.reference is None:
                    raise BatchIdRequired(source.name)
        return reading, names.shared()


async def accepted(
    reading: SourceReader,
    shared: SharedNames,
    identifiers: RowIdentifiers,
    *,
    skip: bool,
    rejects: str | os.PathLike[str] | None,
) -> SourceReader:
    """Write the rejects. Returns the reading with all its faults.

    Raises SourceErrors with all faults together unless `skip`; rows that share a name, or may share one, are
    never skipped: the operator has to decide between them. Raises SourceUnreadable.
    """
    if shared.faults or rejects is not None:
        source, fingerprint = reading.source, reading.fingerprint
        references = identifiers.reference_of if identifiers.environment else None
        file = None if rejects is None else RejectsFile(rejects, source, references)
        reading = SourceReader(source, identifiers, watcher=shared.faults_of, rejects=file)
        async with aclosing(reading.rows()) as rows:
            async for _ in rows:
                pass
        if reading.fingerprint != fingerprint:
            raise SourceUnreadable(source.name, CHANGED)
        reading.can_skip &= not shared.faults
        if file is not None and file.rows and references is None:
            reading.warnings[:0] = [_WITHOUT]
    reading.warnings[:0] = shared.warnings
    if (error := reading.error) and not (skip and error.can_skip):
        raise error
    return reading
