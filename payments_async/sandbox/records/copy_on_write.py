"""What records were like at one moment, seen one after another while they go on changing.

A record is copied when its turn comes, or just before it changes for the first time, whichever is earlier: so
nobody has to stand still until all of them have been copied. What a record holds is never changed itself, so
that a copy is no more than a tuple. A sandbox's lock is around every call.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final, TypeVar

import attrs

T = TypeVar("T")
Image = tuple[object, ...]

_taking: tuple[Images, ...] = ()
"""Those under way, of any sandbox of the process; hardly ever more than one. Replaced as a whole: other
sandboxes' threads look at it."""
_replacing: Final = threading.Lock()

_getters: Final[dict[type, Callable[[Any], Image]]] = {}


def before_change(record: Any, _attribute: object, value: T) -> T:
    """For `attrs.define(on_setattr=...)`: whoever still needs the record as it was has a copy now."""
    for images in _taking:
        images.keep(record)
    return value


def image(record: Any) -> Image:
    """A record's fields in their order."""
    kind = type(record)
    if kind not in _getters:
        _getters[kind] = attrgetter(*(field.name for field in attrs.fields(kind)))
    return _getters[kind](record)


class Images:
    """The records of one moment, from its making to `close`."""

    def __init__(self) -> None:
        self._early: dict[object, Image] = {}
        """Copies of what changed before its turn."""
        self._taken: set[object] = set()
        _replace(lambda those: (*those, self))

    def keep(self, record: object) -> None:
        """It is about to change."""
        if record not in self._taken and record not in self._early:
            self._early[record] = image(record)

    def take(self, record: object) -> Image:
        """What it was like; once for each."""
        self._taken.add(record)
        return self._early.pop(record, None) or image(record)

    def close(self) -> None:
        """Nobody needs them any more."""
        _replace(lambda those: tuple(each for each in those if each is not self))


def _replace(change: Callable[[tuple[Images, ...]], tuple[Images, ...]]) -> None:
    global _taking
    with _replacing:
        _taking = change(_taking)
