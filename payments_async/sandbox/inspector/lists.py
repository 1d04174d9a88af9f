"""Cuts a list into pages, and filters it by what the address of its page says. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import compress
from typing import Generic, TypeVar

import attrs

T = TypeVar("T")


@attrs.frozen
class ListCut(Generic[T]):
    """What one page of a list shows."""

    shown: Sequence[T]
    more: int
    """How many come after them."""
    last: str
    """The name of the last one that is shown: the next page begins after it."""


def cut(found: Iterable[T], most: int, name: Callable[[T], str], before: str = "") -> ListCut[T]:
    """The first `most` of those below the name `before`, so that a page stays as it is while newer ones come.

    `LookupError` when there is none of this name.
    """
    left = below(found, name, before)
    return ListCut(left[:most], max(0, len(left) - most), name(left[most - 1]) if len(left) > most else "")


def below(found: Iterable[T], name: Callable[[T], str], before: str) -> list[T]:
    """Those after the one of the name `before`; all when it is empty. `LookupError`."""
    rest = iter(found)
    if before and not any(name(one) == before for one in rest):
        raise LookupError(f"{before!r} is not in this list any more")
    return list(rest)


@attrs.frozen
class ListFilter(Generic[T]):
    """A field of a list's form: a choice of the values that there are, or, with an `example`, a text."""

    name: str
    label: str
    value: Callable[[T], str]
    example: str = ""

    def fits(self, one: T, wanted: str) -> bool:
        """True if a record has the value."""
        return glob(wanted)(self.value(one)) if self.example else self.value(one) == wanted


@attrs.frozen
class FilterField:
    """The same as the template writes it."""

    name: str
    label: str
    value: str
    choices: Sequence[str] | None
    """None for a field to type in."""
    example: str


@attrs.frozen
class FilteredList(Generic[T]):
    """The records that fit the fields of a form, and the form."""

    found: Sequence[T]
    left: Sequence[T]
    """Those among them below the record that the address names by `before`."""
    fields: Sequence[FilterField]

    @property
    def is_filtered(self) -> bool:
        """True if a field was filled in."""
        return any(field.value for field in self.fields)


def filtered(
    every: Sequence[T],
    filters: Sequence[ListFilter[T]],
    query: Mapping[str, str],
    name: Callable[[T], str],
) -> FilteredList[T]:
    """Filter the records by the fields in a query. `LookupError` for a `before` that is none of them."""
    wanted = [(one, query[one.name].strip()) for one in filters if query.get(one.name, "").strip()]
    left = below(every, name, query.get("before", ""))
    fits = [all(one.fits(record, text) for one, text in wanted) for record in every] if wanted else ()
    found = list(compress(every, fits)) if wanted else every
    if wanted:
        left = list(compress(left, fits[len(every) - len(left) :]))
    fields = []
    for one in filters:
        value = query.get(one.name, "").strip()
        there_are = {one.value(record) for record in every} | {value}
        choices = None if one.example else sorted(there_are - {""})
        fields.append(FilterField(one.name, one.label, value, choices, one.example))
    return FilteredList(found, left, fields)


def glob(pattern: str) -> Callable[[str], bool]:
    """Make the test of a text in which `*` stands for any characters; capitals do not count."""
    first, *others = pattern.lower().split("*")
    if not others:
        return lambda text: text.lower() == first
    *middle, last = others

    def test(text: str) -> bool:
        low = text.lower()
        place, end = len(first), len(low) - len(last)
        if place > end or not (low.startswith(first) and low.endswith(last)):
            return False
        for part in middle:
            place = low.find(part, place, end)
            if place < 0:
                return False
            place += len(part)
        return True

    return test
