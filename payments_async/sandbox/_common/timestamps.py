"""Timestamps: ISO 8601 text on the wire, seconds since 1970 (UTC) inside."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from email.utils import formatdate
from functools import lru_cache

_ORIGIN = datetime(1970, 1, 1, tzinfo=UTC)
_DATE_LENGTH = len("2026-01-01")


_FIRST = (datetime.min.replace(tzinfo=UTC) - _ORIGIN).total_seconds()
_LAST = (datetime.max.replace(tzinfo=UTC, microsecond=0) - _ORIGIN).total_seconds()
"""The range of dates: a `delay:999999999h` lies beyond it, and is shown as the last second."""


def date_of(seconds: float) -> datetime:
    """The date and time in UTC, within the range of dates."""
    return _ORIGIN + timedelta(seconds=min(max(seconds, _FIRST), _LAST))


@lru_cache(maxsize=4096)
def stamp(seconds: float) -> str:
    """Format a time as ISO 8601 in UTC, to the microsecond."""
    return date_of(seconds).isoformat(timespec="microseconds")[:-6] + "Z"


def stamp_or_null(seconds: float | None) -> str | None:
    """Format a time as `stamp` does; None for an event that has not happened."""
    return None if seconds is None else stamp(seconds)


@lru_cache(maxsize=64)
def http_date(seconds: int) -> str:
    """Format a time as in an HTTP header, to the second."""
    return formatdate(seconds, usegmt=True)


def read_timestamp(text: str) -> float | None:
    """Parse an ISO 8601 date-time (UTC unless it says otherwise) to seconds; None for any other text."""
    if len(text) <= _DATE_LENGTH:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _ORIGIN).total_seconds()


def read_bound(text: str, *, end_of_day: bool) -> float | None:
    """Parse a filter's date or date-time to seconds; None when it is neither.

    A bare date means the start of that day, or its last microsecond with `end_of_day`.
    """
    if len(text) != _DATE_LENGTH:
        return read_timestamp(text)
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    start = (datetime(day.year, day.month, day.day, tzinfo=UTC) - _ORIGIN).total_seconds()
    return start + 86_399.999999 if end_of_day else start
