"""The input, watched while it is read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Final

from ..._runtime import SYSTEM
from ...bulk.sources import Source, SourceItem
from ...bulk.sources import open_source as open_file
from ...bulk.sources._base import FileStat

_EACH: Final = 500


class Watched(Source):
    """A source that tells how many rows were read, and lets signals through meanwhile."""

    def __init__(self, source: Source, tell: Callable[[int, int], object]) -> None:
        super().__init__()
        self._source, self._tell, self._passes = source, tell, 0
        self.name: str = source.name

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override] # the source's own, known once reading has begun
        """The names of the source's columns."""
        return self._source.columns

    async def rows(self) -> AsyncIterator[SourceItem]:
        """The source's rows. Raises what it raises."""
        number, self._passes = 0, self._passes + 1
        async for item in self._source.rows():
            number += 1
            if number % _EACH == 0:
                self._tell(number, self._passes)
                await SYSTEM.sleep(0)  # a file is read without waiting: signals are heard here
            yield item
        self._tell(number, self._passes)

    def stat(self) -> FileStat | None:
        """What shows a change of the source."""
        return self._source.stat()

    def fingerprint(self) -> str:
        """The hash of what the source's rows say."""
        return self._source.fingerprint()


def readable(path: str, *, strict_amounts: bool, delimiter: str | None) -> Source:
    """The file as a source. Raises SourceUnreadable when it cannot be one."""
    source = open_file(path, strict_amounts=strict_amounts, delimiter=delimiter)
    source.stat()
    return source
