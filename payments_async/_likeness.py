"""Equality, hash and repr for all attrs classes at once.

attrs writes these methods for each class and compiles them when the class is made: for some fifty classes
that is a tenth of what importing the package costs, and most programs compare and show few of them. These say
the same. A class takes them from `Alike` with `eq=False, repr=False`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import attrs


class Alike:
    """A base whose objects are equal when they are of one class and equal in every compared field."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        cls: Any = self.__class__
        return all(getattr(self, name) == getattr(other, name) for name in _compared(cls))

    def __hash__(self) -> int:
        cls: Any = self.__class__
        return hash((cls.__qualname__, *[getattr(self, name) for name in _hashed(cls)]))

    def __repr__(self) -> str:
        """Every field that is shown, as the constructor takes it; personal and account data masked."""
        cls: Any = self.__class__
        shown = (f"{name}={show(getattr(self, name))}" for name, show in _shown(cls))
        return f"{cls.__qualname__}({', '.join(shown)})"


@cache
def _compared(cls: Any) -> tuple[str, ...]:
    return tuple(field.name for field in attrs.fields(cls) if field.eq)


@cache
def _hashed(cls: Any) -> tuple[str, ...]:
    fields = attrs.fields(cls)
    return tuple(field.name for field in fields if (field.eq if field.hash is None else field.hash))


@cache
def _shown(cls: Any) -> tuple[tuple[str, Any], ...]:
    fields = attrs.fields(cls)
    return tuple((field.name, field.repr if callable(field.repr) else repr) for field in fields if field.repr)
