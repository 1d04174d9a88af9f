"""One reading of an input: passes its rows on, sums them, and collects their faults."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, nullcontext
from decimal import Decimal
from typing import Final

from ..._runtime import SYSTEM
from .._protocol.outcomes import EXACT
from ..errors import SourceErrors
from ..sources import FaultCollector, RejectsFile, Row, RowFault, Source, SourceItem
from .new_rows import RowIdentifiers, checked

CHANGED: Final = "changed while it was read: read it again"
_TURN: Final = 100
"""Items that are read before other tasks of the loop may run; some 25 milliseconds of a workbook."""
_WARNINGS: Final = 20
_NOTHING: Final = Decimal(0)


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
        self.faults: FaultCollector = FaultCollector(source)
        """The faults of rows."""
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
        return self.faults.error()

    async def rows(self) -> AsyncGenerator[Row, None]:
        """The rows without a fault. Raises SourceUnreadable, and OSError where rejects cannot be written."""
        with self._rejects or nullcontext():
            items = 0
            async for item in checked(self.source, self._identifiers):
                items += 1
                if items % _TURN == 0:  # a file is read without waiting: others run here
                    await SYSTEM.sleep(0)
                faults = self._faults(item)
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

    def _faults(self, item: SourceItem) -> list[RowFault]:
        found = [] if isinstance(item, Row) else [item]
        if self._watcher is None or item.number == self._watched:
            return found
        self._watched = item.number
        return [*self._watcher(item), *found]

    def _refuse(self, fault: RowFault) -> None:
        self.faults.add(fault)
        if self._rejects is not None:
            self._rejects.add(fault)

    def _count(self, row: Row) -> None:
        self.good += 1
        self.unnamed += row.reference is None
        request, totals = row.request, self.totals
        totals[request.currency] = EXACT.add(totals.get(request.currency, _NOTHING), row.amount)
        self.doubts += bool(row.warnings)
        if row.warnings and len(self.warnings) < _WARNINGS:
            where = f"row {row.number}" if row.line is None else f"line {row.line}"
            self.warnings.extend(f"{where}, {warning}" for warning in row.warnings)
