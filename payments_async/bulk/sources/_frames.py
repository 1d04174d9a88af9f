"""DataFrames and other Arrow data in memory: pandas, polars, DuckDB, pyarrow."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any, Final

from ..._extras import needs
from ..errors import SourceUnreadable
from ._base import Source
from ._columns import shown
from ._requests import SourceItem

if TYPE_CHECKING:
    from ._iterables import Frame

try:
    import pyarrow
except ImportError as _missing:
    raise ImportError(needs("DataFrames need", "parquet")) from _missing

from ._arrow import ArrowRows  # it needs pyarrow too

_ONCE: Final = "gives its rows once, and they are read twice: pass a table, such as reader.read_all()"
_COLUMN: Final = re.compile(r"Conversion failed for column (.+) with type \S+")
"""How pyarrow names the column of a pandas frame; its other texts quote values."""


class FrameSource(Source):
    """Rows of a frame, which must not change while it is read. Its owner converts it to Arrow data.

    Raises SourceUnreadable for a stream that can be read only once.
    """

    name = "the given frame"

    def __init__(self, frame: Frame, *, strict_amounts: bool = False) -> None:
        super().__init__(strict_amounts=strict_amounts)
        if isinstance(frame, Iterator):
            raise SourceUnreadable(self.name, _ONCE)
        self._frame = frame

    async def rows(self) -> AsyncIterator[SourceItem]:
        """Every row in order: a `Row`, or one or more `RowFault`s. Raises as `Source.rows` does."""
        maker = self._begin()
        stream = self._stream()
        rows = ArrowRows(self.name, next(stream))
        self.columns: tuple[str, ...] = rows.columns
        for batch in stream:
            for item in rows.of(maker, batch):
                yield item
        self._fingerprint = maker.fingerprint.hexdigest()

    def stat(self) -> None:
        """None: there is no file."""
        return

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
            problem = _problem(error)
        raise SourceUnreadable(self.name, problem)


def _problem(error: Exception) -> str:
    """Describe why a frame cannot be converted, without the values that its library may quote."""
    if isinstance(error, OSError):
        return f"cannot be read to its end ({type(error).__name__}): ask its own library why"
    found = next(filter(None, (_COLUMN.search(str(text)) for text in error.args)), None)
    if found is None:
        return f"cannot be read as Arrow data ({type(error).__name__}): give each column a name and one type"
    return f"column {shown(found[1])} mixes types ({type(error).__name__}): make all of it text"
