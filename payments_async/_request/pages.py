"""Reads the pages of a list, newest first: filters, page size, cursors, end of the list (gaps A to D).

Everything that reads a list reads it here: `list`, `iterate` and `find` of the resources, the waits, the
batches and the webhook lookups.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar

import attrs

from .. import _assumptions
from .._emitter import warn_caller
from .._validation import rules
from ..errors import SearchIncomplete, UnprocessableError
from ..models import PaymentIntentStatus, Payout, PayoutStatus
from ..models.statuses import words_of
from ..params.operations import INTENTS_LIST, PAYOUTS_LIST, Operation
from .pipeline import Pipeline
from .prepare import READ_OPTIONS, Errors, reading, refuse_unknown, split
from .settings import count

if TYPE_CHECKING:
    from ..models import Page, PaymentIntent

R = TypeVar("R")
LARGEST: Final = _assumptions.PAGE_SIZE[-1]  # the most records on a page
REPEATED: Final = "the service gave the same cursor twice"


@attrs.frozen(eq=False)
class RecordList(Generic[R]):
    """A list of the service: its operation, and its query names by the names of our arguments."""

    operation: Operation[R]
    names: Mapping[str, str]
    statuses: frozenset[str]
    """The statuses that have a name here. Others are sent as they are: the service may know more."""

    def named(self, name: str) -> Self:
        """The same list with the name of another method, for errors."""
        return attrs.evolve(self, operation=self.operation.changed(name=name))


PAYOUTS: Final[RecordList[Payout]] = RecordList(
    PAYOUTS_LIST, _assumptions.PAYOUT_FILTERS, words_of(PayoutStatus)
)
PAYMENT_INTENTS: Final[RecordList[PaymentIntent]] = RecordList(
    INTENTS_LIST, _assumptions.INTENT_FILTERS, words_of(PaymentIntentStatus)
)


async def read_page(pipeline: Pipeline, records: RecordList[R], arguments: Mapping[str, Any]) -> Page[R]:
    """Read one page. `arguments`: filters, `page_size`, `cursor` and options of the call."""
    refuse_unknown(arguments, READ_OPTIONS.union(records.names), records.operation.name)
    given, options = split(arguments, READ_OPTIONS)
    query, errors = filters(records.names, given)
    call = reading(records.operation, options, query=query, errors=errors)
    _warn_of_status(records, given.get("status"))
    page: Page[R] = await pipeline.run(call)
    return page


def _warn_of_status(records: RecordList[Any], status: object) -> None:
    """Warn of a status that nobody has named: the list may be empty for a slip of the pen."""
    if isinstance(status, str) and status not in records.statuses:
        word = repr(status) if rules.is_identifier(f"{status}0") else rules.described(status)
        known = ", ".join(sorted(records.statuses))
        warn_caller(f"{records.operation.name}: status {word} is none of the known ones ({known})")


class ListPosition:
    """Position in a list: the next page, and whether the list has ended (gap C)."""

    def __init__(self, operation: str, cursor: str | None = None) -> None:
        self._operation = operation
        self.cursor: str | None = cursor
        """Cursor of the next page; None for the newest, and after the last."""
        self.pages: int = 0  # pages read so far
        self.unread: int = 0  # records on these pages that could not be read
        self.is_over: bool = False  # True if the list was read to its end
        self.is_repeated: bool = False
        """True if the next page was read before: the list's cursors form a circle."""
        self.problem: str | None = None
        """The reason why no page follows although the list has not ended; None while there is none."""
        self._read: set[str | None] = set()

    def advance(self, page: Page[Any]) -> None:
        """Note that the next page was read."""
        self._read.add(self.cursor)
        self.pages += 1
        self.unread += len(page.unread)
        self.cursor, self.is_over = page.next_cursor, page.is_last
        self.is_repeated = self.cursor is not None and self.cursor in self._read
        if not self.is_over and (self.cursor is None or self.is_repeated):
            self.problem = _assumptions.NO_END if self.cursor is None else REPEATED

    def check(self) -> None:
        """Raise SearchIncomplete when the list cannot be read any further."""
        if self.problem is not None:
            raise self.incomplete(f"the list cannot be read to its end: {self.problem}")

    def incomplete(self, reason: str, cursor: str | None = None) -> SearchIncomplete:
        """Make the error of a reading that did not reach the list's end; `cursor` continues it, if given."""
        message = f"{self._operation}: {reason}"
        return SearchIncomplete(message, pages=self.pages, cursor=cursor, operation=self._operation)


class ListReader(Generic[R]):
    """Reads one list for one client. Where large pages are refused, the service chooses its own (gap D)."""

    def __init__(self, pipeline: Pipeline, records: RecordList[R], *, large: bool = True) -> None:
        self._pipeline = pipeline
        self._records = records
        self._size: int | None = LARGEST if large else None

    async def page(self, arguments: Mapping[str, Any], cursor: str | None = None) -> Page[R]:
        """Read one page, as large as the service allows. See `read_page` for `arguments`."""
        size = {} if self._size is None else {"page_size": self._size}
        try:
            return await read_page(self._pipeline, self._records, {**arguments, **size, "cursor": cursor})
        except UnprocessableError as error:
            if not size or _assumptions.PAYOUT_FILTERS["page_size"] not in error.errors:
                raise
        self._size = None  # perhaps once more: other pages may have been asked for meanwhile
        return await self.page(arguments, cursor)

    async def pages(self, arguments: Mapping[str, Any], position: ListPosition) -> AsyncIterator[Page[R]]:
        """Yield each page from a position on, read when needed, until none follows.

        Raises SearchIncomplete where a cursor repeats.
        """
        while not position.pages or position.cursor is not None:
            position.check()
            page = await self.page(arguments, position.cursor)
            position.advance(page)
            yield page


def filters(names: Mapping[str, str], given: Mapping[str, Any]) -> tuple[dict[str, str], Errors]:
    """Convert list filters to query pairs, and check them (Endpoints, lists; gaps A, B, D)."""
    query: dict[str, str] = {}
    errors: Errors = {}
    for name, value in given.items():
        if value is None:
            continue
        text, problem = _filter(name, value)
        if problem:
            errors[name] = [problem]
        else:
            query[names[name]] = text
    return query, errors


def _filter(name: str, value: object) -> tuple[str, str | None]:
    if name == "page_size":
        fits = count(value) and value in _assumptions.PAGE_SIZE
        return str(value), None if fits else "must be a whole number from 1 to 100"
    if isinstance(value, datetime) and value.utcoffset() is None:
        return "", "must say its time zone: use an aware datetime, or a date"
    if isinstance(value, date) and name.startswith("created_on"):
        return (value.astimezone(UTC) if isinstance(value, datetime) else value).isoformat(), None
    if not isinstance(value, str) or not value or not value.isprintable() or len(value) > 4096:
        return "", f"must be 1 to 4096 printable characters, not {rules.described(value)}"
    return value, None
