"""Pages of records (Resources, Pagination object). Lists come newest first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import attrs

from .._attrs import ValueMixin
from ._record import Record, masked
from ._response import ResponseInfo

T_co = TypeVar("T_co", covariant=True)


@attrs.frozen(weakref_slot=False, eq=False, repr=False)
class Pagination(Record):
    """The position of a page in its list."""

    count: int | None = None
    path: str | None = None
    per_page: int | None = None
    next_cursor: str | None = None
    next_page_url: str | None = None
    prev_cursor: str | None = None
    prev_page_url: str | None = None
    has_more_pages: bool | None = None
    has_pages: bool | None = None


def proves_end(pagination: Pagination, *, is_empty: bool, names_next: bool) -> bool:
    """Whether a page is surely the last of its list (gap C): the one place where that is decided.

    The service says so by `has_more_pages`, else by a `next_cursor` that is null or empty. A page that says
    neither proves no end, however short it is; one that holds nothing does.

    Args:
        pagination: what the page says of its position.
        is_empty: it holds no record, readable or not.
        names_next: its answer has the key `next_cursor`, perhaps with null.
    """
    if pagination.has_more_pages is not None:
        return not pagination.has_more_pages
    return not pagination.next_cursor and (names_next or is_empty)


@attrs.frozen(weakref_slot=False, eq=False, repr=False)
class Unread(ValueMixin):
    """An item of a page that could not be read as its record: one odd field of one record, say."""

    index: int
    """Its place in the list as it came, from 0."""
    reason: str
    """Which field is not what it should be, without its value."""
    record_id: str | None = None
    """The record's id, when that much could be read."""
    raw: Any = attrs.field(default=None, repr=masked, hash=False)
    """The item as it came, any JSON; it may hold account data."""


@attrs.frozen(weakref_slot=False, eq=False, repr=False)
class Page(ValueMixin, Generic[T_co]):
    """One page of a list, newest first. Iterate it, take its `len`, continue with `next_cursor`.

    An item that cannot be read fails neither the page nor a walk over pages: it is in `unread` instead.
    """

    items: tuple[T_co, ...] = ()
    pagination: Pagination = Pagination()
    response: ResponseInfo | None = attrs.field(default=None, eq=False, hash=False, repr=False)
    """The answer this page came with."""
    unread: tuple[Unread, ...] = ()
    """What the page held beside `items` and could not be read; empty while the service keeps to its forms."""
    is_last: bool = attrs.field()
    """Whether the list surely ends here. Where it is false and `next_cursor` is None, the service does not
    say what follows, and what the list has not shown until then may still be in it."""

    @is_last.default
    def _is_last(self) -> bool:
        is_empty, cursor = not (self.items or self.unread), self.pagination.next_cursor
        return proves_end(self.pagination, is_empty=is_empty, names_next=cursor is not None)

    @property
    def next_cursor(self) -> str | None:
        """Give it as `cursor=` for the next page; None on the last one, and where it is not given (gap C)."""
        if self.pagination.has_more_pages is False:
            return None
        return self.pagination.next_cursor or None

    def __iter__(self) -> Iterator[T_co]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)
