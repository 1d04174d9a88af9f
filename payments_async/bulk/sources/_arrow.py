"""Rows of Arrow data: Parquet files, and frames in memory (pandas, polars, DuckDB, pyarrow).

Columns are typed, under dotted names or nested in structs; metadata may be a map. A null or an empty text
leaves a field out; amounts are decimals, whole numbers or text.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ..._extras import needs
from ..errors import RowFault, SourceUnreadable
from ._base import FileSource, Source
from ._cells import flatten
from ._columns import PARTS, header_faults
from ._requests import RowMaker, SourceItem

if TYPE_CHECKING:
    from ._iterables import Frame

try:
    import pyarrow
    import pyarrow.parquet
except ImportError as _missing:
    raise ImportError(needs("Parquet files and DataFrames need", "parquet")) from _missing

_BATCH: Final = 2_048
"""Rows held in memory at a time, besides what the data's owner holds."""
_INDEX: Final = re.compile("__index_level_[0-9]+__")
"""A column that is the index of a pandas frame, without a name."""
_ONCE: Final = "gives its rows once, and they are read twice: pass a table, such as reader.read_all()"


class ParquetSource(FileSource):
    """Rows of a Parquet file."""

    def _items(self, maker: RowMaker) -> Iterator[SourceItem]:
        try:
            with pyarrow.parquet.ParquetFile(self.path, pre_buffer=False) as file:
                yield from _rows(self, maker, file.schema_arrow, file.iter_batches(batch_size=_BATCH))
        except (pyarrow.ArrowException, UnicodeDecodeError) as error:
            problem = f"is not a Parquet file that can be read ({type(error).__name__})"
            raise SourceUnreadable(self.name, problem) from error


class FrameSource(Source):
    """Rows of a frame, which must not change while it is read. Its owner converts it to Arrow data.

    Raises SourceUnreadable for a stream that can be read only once.
    """

    name = "the given frame"

    def __init__(self, frame: Frame) -> None:
        if isinstance(frame, Iterator):
            raise SourceUnreadable(self.name, _ONCE)
        self._frame = frame

    async def rows(self) -> AsyncIterator[SourceItem]:
        """Every row in order: a `Row`, or one or more `RowFault`s. Raises as `Source.rows` does."""
        self._fingerprint, maker = None, RowMaker()
        stream = self._stream()
        for item in _rows(self, maker, next(stream), stream):
            yield item
        self._fingerprint = maker.fingerprint

    def _stream(self) -> Iterator[Any]:
        """The schema, then the batches. Raises SourceUnreadable without its cause, which may quote values."""
        try:
            reader = pyarrow.RecordBatchReader.from_stream(self._frame)
            yield reader.schema
            yield from reader
            return
        except ImportError:  # the frame's own library lacks one
            raise
        except Exception as error:  # each library has errors of its own
            kind = type(error).__name__
        problem = f"cannot be read to its end as Arrow data ({kind}): give each column a name and one type"
        raise SourceUnreadable(self.name, problem)


def _rows(source: Source, maker: RowMaker, schema: Any, batches: Iterable[Any]) -> Iterator[SourceItem]:
    """The rows of a source's batches. Raises SourceErrors for a schema that is no payout file's."""
    fields = [field for field in schema if not _INDEX.fullmatch(field.name)]
    faults = [RowFault(None, None, *fault) for fault in header_faults(list(_names(fields)))]
    faults += [
        RowFault(None, None, field.name, "is a floating-point column, which is not exact: use a decimal")
        for field in fields
        if field.name == "amount" and pyarrow.types.is_floating(field.type)
    ]
    source._begin(maker, [field.name for field in fields], faults)
    for batch in batches:
        for start in range(0, batch.num_rows, _BATCH):
            for record in batch.select(source.columns).slice(start, _BATCH).to_pylist():
                yield from _row(maker, record)


def _row(maker: RowMaker, record: dict[str, Any]) -> Sequence[SourceItem]:
    original = ["" if value is None else str(value) for value in record.values()]
    twice = {}
    if isinstance(pairs := record.get("metadata"), list):  # of a map
        record["metadata"] = dict(pairs)
        if len(record["metadata"]) != len(pairs):
            twice["metadata"] = "gives one name twice"
    for name, value in record.items():
        if isinstance(value, Mapping):  # a struct has all its fields in every row, null without a value
            record[name] = {field: item for field, item in value.items() if item is not None}
    cells, faults = flatten(record)
    return maker.row(cells, original, faults={**faults, **twice})


def _names(fields: Iterable[Any]) -> Iterator[str]:
    """List column names, those of structs dotted. A map's keys differ from row to row."""
    for field in fields:
        if field.name in PARTS and pyarrow.types.is_struct(field.type):
            yield from (f"{field.name}.{inner.name}" for inner in field.type)
        elif field.name != "metadata" or not pyarrow.types.is_map(field.type):
            yield field.name
