"""Rows from the caller's own code: a list, a generator, a database cursor, async or not."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

from ...params import Params, PayoutRequest
from ..errors import SourceUnreadable
from ._base import Source
from ._cells import checked, flatten
from ._columns import AMOUNT, REFERENCE, ROW_KEY
from ._requests import RowMaker, SourceItem

Item = PayoutRequest | tuple[str, PayoutRequest]
"""A payout, or its row key and the payout."""


@runtime_checkable
class Frame(Protocol):
    """A DataFrame of pandas (from 2.2) or polars, a relation of DuckDB, a table of pyarrow, or their like."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the rows as a stream of Arrow data, anew at each call."""


class IterableSource(Source):
    """Rows of any iterable, async or not. An iterator gives them once, a list as often as asked."""

    name = "the given rows"
    columns: tuple[str, ...] = (ROW_KEY, REFERENCE)

    def __init__(self, items: Iterable[Item] | AsyncIterable[Item]) -> None:
        self._items = items
        self._used = False

    async def rows(self) -> AsyncIterator[SourceItem]:
        """Every row in order. Raises SourceUnreadable for an iterator that was read before."""
        if self._used and isinstance(self._items, Iterator | AsyncIterator):
            raise SourceUnreadable(
                self.name, "were read before, and an iterator gives them once: pass a list"
            )
        self._used, self._fingerprint, maker = True, None, RowMaker()
        async for item in _awaited(self._items):
            for made in _row(maker, item):
                yield made
        self._fingerprint = maker.fingerprint


async def _awaited(items: Iterable[Item] | AsyncIterable[Item]) -> AsyncIterator[Item]:
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item


def _row(maker: RowMaker, item: object) -> Sequence[SourceItem]:
    row_key, request = item if isinstance(item, tuple) and len(item) == 2 else (None, item)
    keys = {} if row_key is None else {ROW_KEY: str(row_key)}
    if not isinstance(request, PayoutRequest):
        reason = f"must be a PayoutRequest or (row_key, PayoutRequest), not {type(item).__name__}"
        return maker.broken(reason, (), cells=keys)
    request, faults = checked(request)
    # the hash may not encode an invalid value
    cells = {} if faults else {**flatten(_record(request))[0], AMOUNT: str(request.amount)}
    maker.count({**cells, **keys})
    original = [str(value or "") for value in (row_key, request.reference)]
    return maker.checked_row(request, row_key, original, faults)


def _record(request: Params) -> dict[str, Any]:
    """List the fields that are set in a request, nested ones as mappings."""
    fields = request.to_dict().items()
    return {name: _record(value) if isinstance(value, Params) else value for name, value in fields}
