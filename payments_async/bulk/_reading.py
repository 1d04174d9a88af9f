"""One reading of an input: its rows go by, what they come to is counted, what is wrong with them is kept."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import aclosing, nullcontext
from decimal import Decimal
from typing import Final

from ._rows_in import checked
from ._totals import EXACT
from .errors import SourceErrors
from .sources import FaultCollector, RejectsFile, Row, RowFault, Source

_WARNINGS: Final = 20
_NOTHING: Final = Decimal(0)


class Reading:
    """Reads a source once. Everything but `rows` is known when it has come to its end."""

    def __init__(
        self, source: Source, *, prefix: str, proofs: bool, rejects: str | os.PathLike[str] | None = None
    ) -> None:
        self.source = source
        self._prefix, self._proofs = prefix, proofs
        self._rejects = None if rejects is None else RejectsFile(rejects, source)
        self.faults: FaultCollector = FaultCollector(source)
        """What is wrong with rows."""
        self.good: int = 0
        """Rows without a fault."""
        self.totals: dict[str, Decimal] = {}
        """{currency: the sum of their amounts, major units}."""
        self.warnings: list[str] = []
        """The first of what is allowed and yet worth a look."""
        self.fingerprint: str = ""

    @property
    def error(self) -> SourceErrors | None:
        """All faults together; None when there was none."""
        return self.faults.error()

    async def rows(self) -> AsyncGenerator[Row, None]:
        """The rows without a fault. Raises SourceUnreadable, and OSError where rejects cannot be written."""
        with self._rejects or nullcontext():
            async for item in checked(self.source, prefix=self._prefix, proofs=self._proofs):
                if isinstance(item, RowFault):
                    self._refuse(item)
                else:
                    self._count(item)
                    yield item
        self.fingerprint = self.source.fingerprint()

    async def through(self) -> None:
        """Read to the end for what it comes to. Raises as `rows` does."""
        async with aclosing(self.rows()) as rows:
            async for _ in rows:
                pass

    def _refuse(self, fault: RowFault) -> None:
        self.faults.add(fault)
        if self._rejects is not None:
            self._rejects.add(fault)

    def _count(self, row: Row) -> None:
        self.good += 1
        request, totals = row.request, self.totals
        amount: Decimal = request.amount  # type: ignore[assignment] # a source's amounts are Decimal
        totals[request.currency] = EXACT.add(totals.get(request.currency, _NOTHING), amount)
        if row.warnings and len(self.warnings) < _WARNINGS:
            where = f"row {row.number}" if row.line is None else f"line {row.line}"
            self.warnings.extend(f"{where}, {warning}" for warning in row.warnings)
