"""Lists: filters and cursor pages, newest first (gaps A to D).

A cursor names a place in the tenant's append-only list, so pages stay put while records are added.
"""

from __future__ import annotations

import base64
import binascii
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Generic, Literal, TypeVar
from urllib.parse import parse_qsl, urlencode

import attrs

from .._common.json import JsonObject
from .._common.profiles import Profile
from .._common.timestamps import read_bound
from .._common.values import RequestRefused
from .._records.records import PaymentRecord, PayoutRecord
from .request_schemas import INVALID

_CURSOR = re.compile(r"(older|newer)\.(\d{1,15})", re.ASCII)
_PER_PAGE = re.compile(r"\d{1,9}", re.ASCII)
_NEVER_BLANK = frozenset({"per_page", "created_at[gte]", "created_at[lte]"})
_NAMES = _NEVER_BLANK | {"cursor"}


R = TypeVar("R", bound=PayoutRecord | PaymentRecord)


@attrs.frozen
class Cursor:
    """The start of a page: the records `older` or `newer` than the one at `position`."""

    direction: str
    position: int

    def encode(self) -> str:
        """The opaque text of `next_cursor` and `prev_cursor`."""
        return base64.urlsafe_b64encode(f"{self.direction}.{self.position}".encode()).decode().rstrip("=")


@attrs.frozen
class PageQuery:
    """The paging parameters of a list request, without the filters of the kind of record."""

    per_page: int
    since: float | None
    until: float | None
    cursor: Cursor | None
    last_cursor: Literal["null", "empty", "kept"] = "null"
    """The value of `next_cursor` on the last page."""


@attrs.frozen
class RecordPage(Generic[R]):
    """One page. The cursors are None where the list ends."""

    items: Sequence[R]
    next: Cursor | None
    previous: Cursor | None


def read_parameters(query: str) -> dict[str, str]:
    """The query parameters that count; `RequestRefused` with 400 when they are not UTF-8.

    A blank filter or cursor does not; a blank date or page size does, and is refused later.
    """
    try:
        pairs = parse_qsl(query, keep_blank_values=True, errors="strict")
    except ValueError as unreadable:
        raise RequestRefused(400, "The query string is not readable.") from unreadable
    return {name: value for name, value in pairs if value or name in _NEVER_BLANK}


def read_page_query(parameters: Mapping[str, str], filters: Sequence[str], profile: Profile) -> PageQuery:
    """The paging part of a query; `filters` are the names of its other part.

    `RequestRefused` with 422 and every breach, by parameter; of an unknown name only if the profile says so.
    """
    errors: dict[str, list[str]] = {}
    if profile.unknown_query == "refuse":
        for name in parameters:
            if name not in _NAMES and name not in filters:
                errors[name] = [f"There is no parameter {name}."]
    query = PageQuery(
        _per_page(parameters.get("per_page"), profile, errors),
        _bound(parameters, "created_at[gte]", errors, end_of_day=False),
        _bound(parameters, "created_at[lte]", errors, end_of_day=True),
        _cursor(parameters.get("cursor"), errors),
        profile.last_cursor,
    )
    if errors:
        raise RequestRefused(422, INVALID, errors)
    return query


def _per_page(text: str | None, profile: Profile, errors: dict[str, list[str]]) -> int:
    if text is None:
        return profile.page_size
    most = profile.max_page_size if profile.oversized_page == "refuse" else 10**9
    if _PER_PAGE.fullmatch(text) is None or not 1 <= int(text) <= most:
        errors["per_page"] = [f"The per_page field must be an integer between 1 and {profile.max_page_size}."]
        return profile.page_size
    return min(int(text), profile.max_page_size)


def _bound(
    parameters: Mapping[str, str], name: str, errors: dict[str, list[str]], *, end_of_day: bool
) -> float | None:
    text = parameters.get(name)
    moment = None if text is None else read_bound(text, end_of_day=end_of_day)
    if text is not None and moment is None:
        errors[name] = [f"The {name} field must be an ISO 8601 date or date-time."]
    return moment


def _cursor(text: str | None, errors: dict[str, list[str]]) -> Cursor | None:
    if text is None:
        return None
    try:
        plain = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    except (binascii.Error, ValueError):
        plain = ""
    if (match := _CURSOR.fullmatch(plain)) is None:
        errors["cursor"] = ["The cursor field must be a cursor that a list gave."]
        return None
    return Cursor(match[1], int(match[2]))


def find_page(records: Sequence[R], keep: Callable[[R], bool], query: PageQuery) -> RecordPage[R]:
    """The page of the `records` (oldest first) that `keep` lets through."""
    first = 0 if query.since is None else bisect_left(records, query.since, key=lambda item: item.created_at)
    end = len(records)
    if query.until is not None:
        end = bisect_right(records, query.until, key=lambda item: item.created_at)
    if query.cursor is None or query.cursor.direction == "older":
        return _older(records, keep, query, first, end)
    return _newer(records, keep, query, first, end)


def _older(
    records: Sequence[R], keep: Callable[[R], bool], query: PageQuery, first: int, end: int
) -> RecordPage[R]:
    if query.cursor is not None:
        end = min(end, query.cursor.position)
    taken = _take(records, keep, range(end - 1, first - 1, -1), query.per_page + 1)
    items = taken[: query.per_page]
    has_more = len(taken) > query.per_page
    return RecordPage(
        items,
        Cursor("older", items[-1].position) if has_more else None,
        Cursor("newer", items[0].position) if items and query.cursor is not None else None,
    )


def _newer(
    records: Sequence[R], keep: Callable[[R], bool], query: PageQuery, first: int, end: int
) -> RecordPage[R]:
    assert query.cursor is not None
    start = max(first, query.cursor.position + 1)
    taken = _take(records, keep, range(start, end), query.per_page + 1)
    items = taken[: query.per_page][::-1]
    has_newer = len(taken) > query.per_page
    return RecordPage(
        items,
        Cursor("older", items[-1].position) if items else None,
        Cursor("newer", items[0].position) if has_newer else None,
    )


def _take(records: Sequence[R], keep: Callable[[R], bool], indices: Iterable[int], most: int) -> list[R]:
    return list(islice(filter(keep, (records[index] for index in indices)), most))


def pagination_form(
    page: RecordPage[R], query: PageQuery, path: str, parameters: Mapping[str, str]
) -> JsonObject:
    """Pagination object (`docs/interface.md`, Resources and their fields); `path` is absolute."""
    kept = {name: value for name, value in parameters.items() if name != "cursor"}

    def url(cursor: Cursor | None) -> str | None:
        return None if cursor is None else f"{path}?{urlencode({**kept, 'cursor': cursor.encode()})}"

    return {
        "count": len(page.items),
        "path": path,
        "per_page": query.per_page,
        "next_cursor": page.next.encode() if page.next else _last_cursor(page, query),
        "next_page_url": url(page.next),
        "prev_cursor": page.previous.encode() if page.previous else None,
        "prev_page_url": url(page.previous),
        "has_more_pages": page.next is not None,
        "has_pages": page.next is not None or page.previous is not None,
    }


def _last_cursor(page: RecordPage[R], query: PageQuery) -> str | None:
    """Gap C: `next_cursor` of the last page."""
    if query.last_cursor == "kept" and page.items:
        return Cursor("older", page.items[-1].position).encode()
    return "" if query.last_cursor == "empty" else None
