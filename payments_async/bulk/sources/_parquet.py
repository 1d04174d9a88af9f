"""Parquet files: typed columns, under dotted names or nested in structs; metadata may be a map."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ..._extras import needs
from ..errors import RowFault, SourceErrors, SourceUnreadable
from ._base import FileSource
from ._cells import flatten
from ._columns import PARTS, header_faults
from ._requests import RowMaker, SourceItem

try:
    import pyarrow
    import pyarrow.parquet
except ImportError as _missing:
    raise ImportError(needs("Parquet files need", "parquet")) from _missing

_BATCH: Final = 2_048
"""Rows held in memory at a time, besides the row group that pyarrow reads them from."""
_MOST: Final = 256 << 20
"""Bytes of a row group without its compression; those of ordinary files have 128 MiB at most."""
_MOST_TEXT: Final = 64 << 20
"""Bytes of text that are made of a batch at a time."""


class ParquetSource(FileSource):
    """Rows of a Parquet file. A null or an empty text leaves a field out; amounts are decimals or text."""

    def _items(self, maker: RowMaker) -> Iterator[SourceItem]:
        try:
            with pyarrow.parquet.ParquetFile(
                self.path, read_dictionary=self._texts(), pre_buffer=False
            ) as file:
                schema = file.schema_arrow
                self.columns: tuple[str, ...] = tuple(schema.names)
                self._check_header(schema)
                maps = [field.name for field in schema if pyarrow.types.is_map(field.type)]
                for batch in file.iter_batches(batch_size=_BATCH):
                    for record in _records(batch):
                        yield from _row(maker, record, maps)
        except (pyarrow.ArrowException, UnicodeDecodeError) as error:
            problem = f"is not a Parquet file that can be read ({type(error).__name__})"
            raise SourceUnreadable(self.name, problem) from error

    def _texts(self) -> list[str]:
        """The columns of text: a text that the file has once for many rows stays one in memory.

        Raises SourceUnreadable for a file whose footer says that reading it would fill the memory.
        """
        footer = pyarrow.parquet.read_metadata(self.path)
        for group in range(footer.num_row_groups):
            if (size := footer.row_group(group).total_byte_size) > _MOST:
                problem = f"row group {group + 1:,} takes {size >> 20:,} MiB in memory"
                most = f"and may take {_MOST >> 20} MiB at most: write the file with smaller row groups"
                raise SourceUnreadable(self.name, f"{problem}, {most}")
        columns = (footer.schema.column(place) for place in range(footer.num_columns))
        return [column.path for column in columns if column.logical_type.type == "STRING"]

    def _check_header(self, schema: Any) -> None:
        faults = [RowFault(None, None, *fault) for fault in header_faults(list(_names(schema)))]
        faults += [
            RowFault(None, None, field.name, "is a floating-point column, which is not exact: use a decimal")
            for field in schema
            if field.name == "amount" and pyarrow.types.is_floating(field.type)
        ]
        if faults:
            raise SourceErrors(self.name, faults, total=len(faults), rows=0)


def _records(batch: Any) -> Iterator[dict[str, Any]]:
    """The rows of a batch, so many at a time that their texts fit, as each may have all that it holds."""
    rows = max(1, min(_BATCH, _MOST_TEXT // max(1, batch.nbytes)))
    for start in range(0, batch.num_rows, rows):
        yield from batch.slice(start, rows).to_pylist()


def _names(schema: Any) -> Iterator[str]:
    """List a schema's column names, those of structs dotted. A map's keys differ from row to row."""
    for field in schema:
        if field.name in PARTS and pyarrow.types.is_struct(field.type):
            yield from (f"{field.name}.{inner.name}" for inner in field.type)
        elif field.name != "metadata" or not pyarrow.types.is_map(field.type):
            yield field.name


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
