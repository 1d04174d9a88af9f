"""Rows of Arrow data: typed columns, under dotted names or nested in structs; metadata may be a map."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow

from ..errors import RowFault, SourceErrors
from ._cells import flatten, parse
from ._columns import PARTS, header_faults, place
from ._requests import RowMaker, SourceItem

BATCH: Final = 2_048
"""Rows held in memory at a time, besides what the data's owner holds."""
_MOST_TEXT: Final = 64 << 20
"""Bytes of text that are made of a batch at a time."""
_VIEWS: Final = 64
"""Rows made at a time where they share their texts' memory, so that its size says nothing of theirs."""


class ArrowRows:
    """Makes rows of record batches of one schema. Raises SourceErrors for one that is no payout file's.

    A null or an empty text leaves a field out; amounts are decimals, whole numbers or text. The index of a
    pandas frame is left out, unless it has the name of a column of payout files.
    """

    def __init__(self, source: str, schema: Any) -> None:
        index = _index_names(schema)
        self._kept = [number for number, field in enumerate(schema) if field.name not in index]
        schema = pyarrow.schema([schema.field(number) for number in self._kept])
        self.columns: tuple[str, ...] = tuple(schema.names)
        _check_header(source, schema)
        self._maps = [field.name for field in schema if pyarrow.types.is_map(field.type)]
        self._has_views = any(_is_view(field.type) for field in schema)

    def of(self, maker: RowMaker, batch: Any) -> Iterator[SourceItem]:
        """The rows of a batch, in order."""
        for record in self._records(batch.select(self._kept)):
            yield from _row(maker, record, self._maps)

    def _records(self, batch: Any) -> Iterator[dict[str, Any]]:
        """The batch's rows, so many at a time that their texts fit, as each may have all that it holds."""
        for first in range(0, batch.num_rows, BATCH):
            part = batch.slice(first, BATCH)
            rows = _VIEWS if self._has_views else max(1, min(BATCH, _MOST_TEXT // max(1, part.nbytes)))
            for start in range(0, part.num_rows, rows):
                yield from part.slice(start, rows).to_pylist()


def _index_names(schema: Any) -> set[str]:
    """The columns that are the index of a pandas frame, as its note in the schema's metadata says."""
    try:
        note = parse((schema.metadata or {}).get(b"pandas", b"{}").decode())
    except ValueError:  # another writer's
        return set()
    names = note.get("index_columns") if isinstance(note, dict) else None
    found = {name for name in names if isinstance(name, str)} if isinstance(names, list) else set()
    return {name for name in found if place(name.strip().lower()) is None}


def _check_header(source: str, schema: Any) -> None:
    faults = [RowFault(None, None, *fault) for fault in header_faults(list(_names(schema)))]
    faults += [
        RowFault(None, None, field.name, "is a floating-point column, which is not exact: use a decimal")
        for field in schema
        if field.name == "amount" and pyarrow.types.is_floating(field.type)
    ]
    if faults:
        raise SourceErrors(source, faults, total=len(faults), rows=0)


def _names(schema: Any) -> Iterator[str]:
    """List a schema's column names, those of structs dotted. A map's keys differ from row to row."""
    for field in schema:
        if field.name in PARTS and pyarrow.types.is_struct(field.type):
            yield from (f"{field.name}.{inner.name}" for inner in field.type)
        elif field.name != "metadata" or not pyarrow.types.is_map(field.type):
            yield field.name


def _is_view(kind: Any) -> bool:
    """True for a type whose texts may share memory, or one that has such a part."""
    inner = (kind.field(number).type for number in range(kind.num_fields))
    return pyarrow.types.is_string_view(kind) or any(_is_view(part) for part in inner)


def _row(maker: RowMaker, record: dict[str, Any], maps: Sequence[str]) -> Sequence[SourceItem]:
    original = ["" if value is None else str(value) for value in record.values()]
    twice = {}
    for name in maps:
        pairs = record[name] or []
        record[name] = dict(pairs)
        if len(record[name]) != len(pairs):
            twice[name] = "gives one name twice"
    cells, faults = flatten({name: _without_nulls(value) for name, value in record.items()})
    return maker.row(cells, original, faults={**faults, **twice})


def _without_nulls(value: Any) -> Any:
    """Remove nulls: a struct has all its fields in every row, null where the row has no value."""
    if not isinstance(value, Mapping):
        return value
    return {name: item for name, item in value.items() if item is not None}
