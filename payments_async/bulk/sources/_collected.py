"""All faults of an input together: the first of them to read, all of them counted."""

from __future__ import annotations

from ..errors import SourceErrors, SourceUnreadable
from ._base import Source
from ._rows import RowFault


class FaultCollector:
    """Counts every fault and keeps the first `limit`."""

    def __init__(self, source: Source, limit: int = 100) -> None:
        self._source = source
        self._limit = limit
        self._kept: list[RowFault] = []
        self._last: int | None = None
        self.total: int = 0
        """Faults so far."""
        self.rows: int = 0
        """Rows with one or more faults so far."""
        self.can_skip: bool = True
        """Whether the other rows may be paid without these."""

    def add(self, fault: RowFault) -> None:
        """Count one fault. The faults of one row follow each other, as `Source.rows` gives them."""
        self.total += 1
        if fault.number is not None and fault.number != self._last:
            self._last = fault.number
            self.rows += 1
        if len(self._kept) < self._limit:
            self._kept.append(fault)

    def error(self) -> SourceErrors | None:
        """The error to raise; None when there was no fault."""
        if not self.total:
            return None
        facts = {"total": self.total, "rows": self.rows}
        return SourceErrors(self._source.name, self._kept, **facts, can_skip=self.can_skip)


async def read_all_faults(source: Source, limit: int = 100) -> SourceErrors | None:
    """Read a source to its end and give every fault of it; None when it is clean.

    Where reading ends early, that is the last of the faults. Raises SourceUnreadable when it cannot begin.
    """
    collector = FaultCollector(source, limit)
    try:
        async for item in source.rows():
            if isinstance(item, RowFault):
                collector.add(item)
    except SourceErrors as error:
        return error
    except SourceUnreadable as error:
        if error.line is None:
            raise
        collector.add(RowFault(error.line, None, None, f"{error.reason} Reading ended here."))
    return collector.error()
