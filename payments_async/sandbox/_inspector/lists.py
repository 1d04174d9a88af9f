"""Cuts a list into pages, and filters it by what the address of its page says. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import compress
from typing import Generic, TypeVar

import attrs

from .._common.patterns import glob

T = TypeVar("T")


@attrs.frozen
class ListCut(Generic[T]):
    """What one page of a list shows."""

    shown: Sequence[T]
    more: int
    """How many come after them."""
    last: str
    """The name of the last one that is shown: the next page begins after it."""


def cut(records: Iterable[T], most: int, name: Callable[[T], str], before: str = "") -> ListCut[T]:
    """The first `most` of those below the name `before`, so that a page stays as it is while newer ones come.

    `LookupError` when there is none of this name.
    """
    left = below(records, name, before)
    return ListCut(left[:most], max(0, len(left) - most), name(left[most - 1]) if len(left) > most else "")


def below(records: Iterable[T], name: Callable[[T], str], before: str) -> list[T]:
    """Those after the one of the name `before`; all when it is empty. `LookupError`."""
    rest = iter(records)
    if before and not any(name(one) == before for one in rest):
        raise LookupError(f"{before!r} is not in this list any more")
    return list(rest)


@attrs.frozen
class ListFilter(Generic[T]):
    """A field of a list's filter form: a text with an `example`, else a menu of the values in the list."""

    name: str
    label: str
    value: Callable[[T], str]
    example: str = ""

    def test(self, wanted: str) -> Callable[[T], bool]:
        """Make the test of a record for a value."""
        fits = glob(wanted) if self.example else wanted.__eq__
        return lambda one: fits(self.value(one))


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
    texts = {one.name: query.get(one.name, "").strip() for one in filters}
    tests = [one.test(texts[one.name]) for one in filters if texts[one.name]]
    left = below(every, name, query.get("before", ""))
    fits = [all(test(record) for test in tests) for record in every] if tests else ()
    matching = list(compress(every, fits)) if tests else every
    if tests:
        left = list(compress(left, fits[len(every) - len(left) :]))
    fields = []
    for one in filters:
        value = texts[one.name]
        choices = None if one.example else sorted({value, *map(one.value, every)} - {""})
        fields.append(FilterField(one.name, one.label, value, choices, one.example))
    return FilteredList(matching, left, fields)
