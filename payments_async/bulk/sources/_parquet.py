"""Parquet files, whose rows are Arrow data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..._extras import needs
from ..errors import SourceUnreadable
from ._base import FileSource
from ._requests import RowMaker, SourceItem

try:
    import pyarrow
    import pyarrow.parquet
except ImportError as _missing:
    raise ImportError(needs("Parquet files need", "parquet")) from _missing

from ._arrow import BATCH, ArrowRows  # it needs pyarrow too

_MOST: Final = 256 << 20
"""Bytes of a row group without its compression; those of ordinary files have 128 MiB at most."""


class ParquetSource(FileSource):
    """Rows of a Parquet file. A null or an empty text leaves a field out; amounts are decimals or text."""

    def _items(self, maker: RowMaker) -> Iterator[SourceItem]:
        try:
            with pyarrow.parquet.ParquetFile(
                self.path, read_dictionary=self._texts(), pre_buffer=False
            ) as file:
                rows = ArrowRows(self.name, file.schema_arrow)
                self.columns: tuple[str, ...] = rows.columns
                for batch in file.iter_batches(batch_size=BATCH):
                    yield from rows.of(maker, batch)
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
