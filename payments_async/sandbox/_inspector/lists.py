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
    """A field by which a list is filtered: a text with an `example`, else links of the values there are."""

    name: str
    label: str
    value: Callable[[T], str]
    example: str = ""
    also: Callable[[T], str] | None = None
    """Another text of a record that may fit."""

    def test(self, wanted: str) -> Callable[[T], bool]:
        """Make the test of a record for a value."""
        fits, also = glob(wanted) if self.example else wanted.__eq__, self.also
        if also is None:
            return lambda one: fits(self.value(one))
        return lambda one: fits(self.value(one)) or fits(also(one))


@attrs.frozen
class FilterField(Generic[T]):
    """The same as the template writes it."""

    name: str
    label: str
    value: str
    choices: Mapping[str, Sequence[T]]
    """The records of each value that fit the other fields, the most frequent value first."""
    divides: bool
    """True if it has a value, or if not all of these records have the same."""
    example: str


@attrs.frozen
class FilteredList(Generic[T]):
    """The records that fit the fields, and the fields."""

    found: Sequence[T]
    left: Sequence[T]
    """Those among them below the record that the address names by `before`."""
    fields: Sequence[FilterField[T]]

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
    left = below(every, name, query.get("before", ""))
    texts = {one.name: query.get(one.name, "").strip() for one in filters}
    fits = {one.name: _fits(every, one, texts[one.name]) for one in filters}
    both = [all(tests) for tests in zip(*fits.values(), strict=True)]
    fields = []
    for one in filters:
        others = [tests for other, tests in fits.items() if other != one.name]
        near = compress(every, map(all, zip(*others, strict=True))) if others else every
        choices: dict[str, list[T]] = {}
        for record in () if one.example else near:
            choices.setdefault(one.value(record), []).append(record)
        if texts[one.name] and not one.example:
            choices.setdefault(texts[one.name], [])  # what was asked for is shown
        divides = bool(texts[one.name]) or len(choices) > 1
        choices.pop("", None)
        chosen = texts[one.name]
        by_size = dict(sorted(choices.items(), key=lambda choice: (choice[0] != chosen, -len(choice[1]))))
        fields.append(FilterField(one.name, one.label, texts[one.name], by_size, divides, one.example))
    return FilteredList(
        list(compress(every, both)), list(compress(left, both[len(every) - len(left) :])), fields
    )


def _fits(every: Sequence[T], one: ListFilter[T], wanted: str) -> list[bool]:
    return list(map(one.test(wanted), every)) if wanted else [True] * len(every)
