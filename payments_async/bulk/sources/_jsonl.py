"""JSON Lines: one object a line, its fields nested as in the interface or under dotted names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ._base import FileSource, SourceLines, open_text
from ._cells import NotJson, flatten, parse
from ._requests import RowMaker, SourceItem


class JsonLinesSource(FileSource):
    """Rows of a JSON Lines file in UTF-8. Numbers are exact; empty lines are skipped."""

    columns: tuple[str, ...] = ("row",)

    def _items(self, maker: RowMaker) -> Iterator[SourceItem]:
        with open_text(self.path, self.name) as file:
            lines = SourceLines(file, self.name)
            while True:
                number = lines.begin_row()
                text = next(lines, None)
                if text is None:
                    return
                if text := text.strip():
                    yield from _row(maker, number, text)


def _row(maker: RowMaker, line: int, text: str) -> Sequence[SourceItem]:
    try:
        record = parse(text)
    except NotJson as error:
        return maker.broken(str(error), [text], line=line)
    if not isinstance(record, dict):
        return maker.broken("is not a JSON object", [text], line=line)
    cells, faults = flatten(record)
    return maker.row(cells, [text], line=line, faults=faults)
