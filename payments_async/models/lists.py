"""Pages of records (Resources, Pagination object). Lists come newest first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

import attrs

from ._record import Record
from ._response import ResponseInfo

T_co = TypeVar("T_co", covariant=True)


@attrs.frozen(weakref_slot=False, repr=False)
class Pagination(Record):
    """Where a page stands in its list."""

    count: int | None = None
    path: str | None = None
    per_page: int | None = None
    next_cursor: str | None = None
    next_page_url: str | None = None
    prev_cursor: str | None = None
    prev_page_url: str | None = None
    has_more_pages: bool | None = None
    has_pages: bool | None = None


@attrs.frozen(weakref_slot=False)
class Page(Generic[T_co]):
    """One page of a list, newest first. Iterate it, take its `len`, or go on with `next_cursor`."""

    items: tuple[T_co, ...] = ()
    pagination: Pagination = Pagination()
    response: ResponseInfo | None = attrs.field(default=None, eq=False, hash=False, repr=False)
    """The answer this page came with."""

    @property
    def next_cursor(self) -> str | None:
        """Give it as `cursor=` for the next page; None on the last one (gap C)."""
        if self.pagination.has_more_pages is False:
            return None
        return self.pagination.next_cursor or None

    def __iter__(self) -> Iterator[T_co]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)
