"""Rows of an input that share a key or a reference, found without a ledger."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import aclosing
from typing import Final

from ._reading import Reading
from ._records import Duplicate
from ._repeats import Repeats
from .sources import Row, RowFault

_TOLD: Final = 100
_BITS: Final = (1 << 64) - 1
_Name = tuple[str, str]


class Names(Repeats):
    """What must be unique in a batch, as it goes by: eight bytes of each, which are soon on the disk."""

    def add(self, row: Row) -> None:
        """Note a row's own names. What the batch makes for a row is unique with its key."""
        self.extend(hash(name) & _BITS for name in _names(row))

    def suspects(self) -> set[int]:
        """Hashes that occurred more than once, a hundred at most."""
        return self.found(_TOLD)


def _names(row: Row) -> Iterator[_Name]:
    yield "row_key", row.row_key
    if row.reference is not None:
        yield "reference", row.reference


async def duplicates(reading: Reading, suspects: set[int]) -> list[Duplicate]:
    """The first two rows of each name that is there twice, by reading the input once more."""
    first: dict[_Name, Row] = {}
    found: dict[_Name, Duplicate] = {}
    async with aclosing(reading.rows()) as rows:
        async for row in rows:
            for name in _names(row):
                if hash(name) & _BITS not in suspects or name in found:
                    continue
                one = first.setdefault(name, row)
                if one is not row:
                    numbers, lines = (one.number, row.number), (one.line, row.line)
                    found[name] = Duplicate(name[0], name[1], numbers, lines)
    return [*found.values()]


def repeated(found: Iterable[Duplicate]) -> list[RowFault]:
    """What to say of the second row of each name, in the order of these rows."""
    faults = []
    for each in sorted(found, key=lambda each: each.rows[1]):
        (first, line), (again, line_again) = zip(each.rows, each.lines, strict=True)
        where = f"row {first}" if line is None else f"line {line}"
        faults.append(RowFault(line_again, again, each.column, f"is that of {where} too; make each unique"))
    return faults
