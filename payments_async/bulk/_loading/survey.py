"""Reads an input before the import: finds all faults and rows that share a name, writes the rejects file.

The input is read once. It is read a second time when rows share a name, or when rejects are to be
written: they carry references, which may be made of the hash of the whole input.
"""

from __future__ import annotations

import os
from contextlib import aclosing, closing
from typing import Final

import attrs

from ..errors import BatchIdRequired, SourceUnreadable
from ..sources import RejectsFile, Source
from .duplicates import NameTable, SharedNames
from .new_rows import RowIdentifiers
from .reader import CHANGED, SourceReader

_WITHOUT: Final = (
    "the rejects have no references, which depend on the key's environment: before you pay the other rows, "
    "write them again with the key that pays"
)


@attrs.frozen
class Survey:
    """The results of one reading of an input."""

    reading: SourceReader
    shared: SharedNames

    @property
    def fingerprint(self) -> str:
        """The hash of the input's content."""
        return self.reading.fingerprint


async def survey(source: Source, identifiers: RowIdentifiers, *, must_name: bool = False) -> Survey:
    """Read an input once. Raises SourceUnreadable, and BulkError without room for temporary files.

    `must_name`: raises BatchIdRequired at the first row whose reference would be made of the input's hash.
    """
    with closing(NameTable()) as names:
        reading = SourceReader(source, identifiers, watcher=names.add)
        async with aclosing(reading.rows()) as rows:
            async for row in rows:
                if must_name and row.reference is None:
                    raise BatchIdRequired(source.name)
        return Survey(reading, names.shared())


async def accepted(
    found: Survey, identifiers: RowIdentifiers, *, skip: bool, rejects: str | os.PathLike[str] | None
) -> SourceReader:
    """Write the rejects. Returns the reading with all its faults.

    Raises SourceErrors with all faults together unless `skip`; rows that share a name, or may share one, are
    never skipped: the operator has to decide between them. Raises SourceUnreadable.
    """
    reading = found.reading
    if found.shared.faults or rejects is not None:
        reading = await _read_again(found, identifiers, rejects)
    reading.warnings[:0] = found.shared.warnings
    if (error := reading.error) and not (skip and error.can_skip):
        raise error
    return reading


async def _read_again(
    found: Survey, identifiers: RowIdentifiers, path: str | os.PathLike[str] | None
) -> SourceReader:
    source, shared = found.reading.source, found.shared
    references = identifiers.reference_of if identifiers.environment else None
    rejects = None if path is None else RejectsFile(path, source, references)
    reading = SourceReader(source, identifiers, watcher=shared.faults_of, rejects=rejects)
    await reading.read()
    if reading.fingerprint != found.fingerprint:
        raise SourceUnreadable(source.name, CHANGED)
    reading.can_skip &= not shared.faults
    if rejects is not None and rejects.rows and references is None:
        reading.warnings[:0] = [_WITHOUT]
    return reading
