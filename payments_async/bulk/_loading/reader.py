"""One reading of an input: passes its rows on, sums them, and collects their faults."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, nullcontext
from decimal import Decimal
from typing import Final

from ..._runtime import SYSTEM
from .._protocol.outcomes import add_amount
from ..errors import SourceErrors
from ..sources import RejectsFile, Row, RowFault, Source, SourceItem
from .new_rows import RowIdentifiers, checked

CHANGED: Final = "changed while it was read: read it again"
_TURN: Final = 100
"""Items that are read before other tasks of the loop may run; some 25 milliseconds of a workbook."""
_WARNINGS: Final = 20
_FAULTS: Final = 100
"""Faults that an error has at most; it counts all."""


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
        self.faulty: int = 0
        """Rows with faults."""
        self.can_skip: bool = True
        """True if the other rows may be paid without these."""
        self.good: int = 0
        """Rows without a fault."""
        self.unnamed: int = 0
        """Rows without a fault that have no reference of the operator's."""
        self.totals: dict[str, Decimal] = {}
        """{currency: the sum of the amounts, major units} of the rows without a fault."""
        self.doubts: int = 0
        """Rows with a value that is allowed but doubtful."""
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
            async for item in checked(self.source, self._identifiers):
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

    async def read(self) -> None:
        """Read the source to its end, for the sums and faults. Raises as `rows` does."""
        async with aclosing(self.rows()) as rows:
            async for _ in rows:
                pass

    def _faults_of(self, item: SourceItem) -> list[RowFault]:
        found = [] if isinstance(item, Row) else [item]
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
