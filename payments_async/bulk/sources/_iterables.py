"""Rows from the caller's own code: a list, a generator, a database cursor, async or not."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import attrs

from ...params import Instrument, Params, PayoutRequest
from ..errors import SourceUnreadable
from ._base import Source
from ._cells import checked, flatten, type_missing, type_of
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

    columns: tuple[str, ...] = (ROW_KEY, REFERENCE)

    def __init__(self, items: Iterable[Item] | AsyncIterable[Item], *, name: str = "the given rows") -> None:
        super().__init__()
        self._items = items
        self.name = name
        self._used = False

    async def rows(self) -> AsyncIterator[SourceItem]:
        """Every row in order. Raises SourceUnreadable for an iterator that was read before."""
        if self._used and isinstance(self._items, Iterator | AsyncIterator):
            raise SourceUnreadable(
                self.name, "were read before, and an iterator gives them once: pass a list"
            )
        self._used = True
        maker = self._begin()
        async for item in _awaited(self._items):
            for made in _row(maker, item):
                yield made
        self._fingerprint = maker.fingerprint.hexdigest()

    def stat(self) -> None:
        """None: there is no file."""
        return


async def _awaited(items: Iterable[Item] | AsyncIterable[Item]) -> AsyncIterator[Item]:
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item


def _row(maker: RowMaker, item: object) -> Sequence[SourceItem]:
    row_key, request = item if isinstance(item, tuple) and len(item) == 2 else (None, item)
    if not isinstance(request, PayoutRequest):
        reason = f"must be a PayoutRequest or (row_key, PayoutRequest), not {type(item).__name__}"
        return maker.broken(reason, (), cells=None if row_key is None else {ROW_KEY: str(row_key)})
    request, faults = typed(request)
    request, found = checked(request)
    faults |= found
    cells: dict[str, Any] = {}
    if not faults:  # the hash may not encode an invalid value
        cells = {**flatten(_record(request))[0], AMOUNT: request.amount}
    maker.count(cells if row_key is None else {**cells, ROW_KEY: str(row_key)})
    original = [str(value or "") for value in (row_key, request.reference)]
    return maker.finished(request, row_key, original, line=None, faults=faults)


def typed(request: PayoutRequest) -> tuple[PayoutRequest, dict[str, str]]:
    """Add the instrument's type to a request when it was left out and exactly one fits (gap L)."""
    instrument = request.instrument
    if not isinstance(instrument, Instrument) or instrument.type:
        return request, {}
    kind = type_of(given := _record(instrument))
    if kind is None:
        return request, {"instrument.type": type_missing(given)}
    return attrs.evolve(request, instrument=attrs.evolve(instrument, type=kind)), {}


def _record(request: Params) -> dict[str, Any]:
    """List the fields that are set in a request, nested ones as mappings."""
    fields = request.to_dict().items()
    return {name: _record(value) if isinstance(value, Params) else value for name, value in fields}
