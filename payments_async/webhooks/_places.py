"""Where in the list to look for a URL's record: where it was, or where the search for it was cut off."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

MOST: Final = 10_000
"""URLs whose places are known; the one that was looked for least lately is forgotten first."""


class Places:
    """The cursor of each URL's page. A page stays where it is while records are added."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._cursors: OrderedDict[str, str] = OrderedDict()

    def of(self, token: str) -> str | None:
        """Where to begin; None for the newest records."""
        return self._cursors.get(token)

    def note(self, token: str, cursor: str | None) -> None:
        """Begin there the next time."""
        self._cursors.pop(token, None)
        if cursor is not None:
            self._cursors[token] = cursor
        if len(self._cursors) > self._most:
            self._cursors.popitem(last=False)
