"""A source whose rows a guard judges: those that it would refuse are faults, as any others."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

from ..._codec import encode
from ..._guard.rules import GuardRefusal
from ..errors import RowFault
from ..sources import FileStat, Row, Source, SourceItem

if TYPE_CHECKING:
    from ..._guard.key_guard import KeyGuard

_COLUMNS: Final = {
    **dict.fromkeys(("most", "sums", "decimals"), "amount"),
    "currency": "currency",
    "methods": "method",
    "countries": "instrument.country",
}
"""{rule of a guard: the column at fault}."""


class GuardedSource(Source):
    """The rows of another source, without those that a guard's rules refuse. Sums are for the run."""

    def __init__(self, source: Source, guard: KeyGuard) -> None:
        super().__init__()
        self._source, self._guard = source, guard
        self.name: str = source.name

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override] # known once reading has begun
        """The names of the source's columns."""
        return self._source.columns

    async def rows(self) -> AsyncIterator[SourceItem]:
        """Every row in order: a `Row`, or one or more `RowFault`s. Raises as `Source.rows` does."""
        async for item in self._source.rows():
            yield (self._fault(item) or item) if isinstance(item, Row) else item

    def _fault(self, row: Row) -> RowFault | None:
        refusal = self._guard.judged(encode.encode(row.request))
        if not isinstance(refusal, GuardRefusal):
            return None
        kept = (tuple(row.original), row.row_key, row.reference)
        return RowFault(row.line, row.number, _COLUMNS[refusal.rule], f"the guard: {refusal.text}", *kept)

    def stat(self) -> FileStat | None:
        """Facts that show a change without a full reading."""
        return self._source.stat()

    def fingerprint(self) -> str:
        """The hash of the input, with the rows that are refused."""
        return self._source.fingerprint()
