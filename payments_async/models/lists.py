"""Pages of records (Resources, Pagination object). Lists come newest first."""

from collections.abc import Iterator
from typing import Any, Final, Generic, NoReturn, TypeVar

import attrs

from .._attrs import ValueMixin, made_when_asked
from ._masking import masked
from ._record import Record
from ._response import ResponseInfo, answer_of

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
    """Return whether a page is certainly the last of its list (gap C); nothing else decides this.

    The service says it by `has_more_pages`, or else by a `next_cursor` that is null or empty. A page with
    neither does not prove the end, however short it is, unless it is empty.

    Args:
        pagination: the page's own pagination object.
        is_empty: the page has no record, readable or not.
        names_next: the answer has the key `next_cursor`, perhaps with null.
    """
    if pagination.has_more_pages is not None:
        return not pagination.has_more_pages
    return not pagination.next_cursor and (names_next or is_empty)


@attrs.frozen(weakref_slot=False, eq=False, repr=False)
class Unread(ValueMixin):
    """An item of a page that could not be read as a record, such as for one field of a wrong type."""

    index: int
    """Position of the item on the page, from 0."""
    reason: str
    """The field that is wrong, without its value."""
    record_id: str | None = None
    """The record's id, if it could be read."""
    raw: Any = attrs.field(default=None, repr=masked, hash=False)
    """The item as received, any JSON; it may hold account data."""


@attrs.frozen(weakref_slot=False, eq=False, repr=False)
class Page(ValueMixin, Generic[T_co]):
    """One page of a list, newest first. It can be iterated and has a `len`; continue with `next_cursor`.

    An item that cannot be read fails neither the page nor an iteration over pages: it is in `unread` instead.
    """

    items: tuple[T_co, ...] = ()
    pagination: Pagination = Pagination()
    response: ResponseInfo | None = attrs.field(default=None, eq=False, hash=False, repr=False)
    """The answer with this page."""
    unread: tuple[Unread, ...] = ()
    """Items of the page that could not be read; usually empty."""
    is_last: bool = attrs.field()
    """True if the list certainly ends here. When it is false and `next_cursor` is None, the service does not
    say what follows, and the list may have more records."""

    @is_last.default
    def _is_last(self) -> bool:
        is_empty, cursor = not (self.items or self.unread), self.pagination.next_cursor
        return proves_end(self.pagination, is_empty=is_empty, names_next=cursor is not None)

    @property
    def next_cursor(self) -> str | None:
        """The `cursor=` of the next page; None on the last page, and when the service gives none (gap C)."""
        if self.pagination.has_more_pages is False:
            return None
        return self.pagination.next_cursor or None

    def __iter__(self) -> Iterator[T_co]:
        return iter(self.items)

    def __aiter__(self) -> NoReturn:
        raise TypeError(
            "a page is in memory: for record in page; for all pages: async for record in iterate(...)"
        )

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        """How much there is, and where the list continues."""
        unread = f", {len(self.unread)} unread" if self.unread else ""
        items, cursor = len(self.items), self.next_cursor
        return f"Page({items} items{unread}, next_cursor={cursor!r}, is_last={self.is_last})"


attach_to_page: Final = made_when_asked(Page, "response", answer_of)
"""Attach to a page what `answer_of` makes its response of."""
