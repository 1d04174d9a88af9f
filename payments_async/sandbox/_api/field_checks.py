"""The kinds of constraint a request field can have. A check adds every breach it finds."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TypeGuard

import attrs

from .._common.timestamps import read_timestamp

LARGEST = Decimal(10) ** 24
"""Larger amounts are refused: an exponent could make the simulation print a gigabyte."""


class Breaches:
    """The breaches of a body: texts by dotted field name."""

    def __init__(self, now: float) -> None:
        self.now = now
        self.errors: dict[str, list[str]] = {}

    def add(self, path: str, text: str) -> None:
        self.errors.setdefault(path, []).append(f"The {path} field {text}.")


Check = Callable[[object, str, Breaches], None]


@attrs.frozen
class RequestField:
    """A named member of an object. A null counts as left out."""

    check: Check
    required: bool = False


def check_members(value: object, fields: Mapping[str, RequestField], path: str, breaches: Breaches) -> None:
    """Check the members of an object; members that no field names are let through."""
    if not isinstance(value, dict):
        breaches.add(path, "must be an object")
        return
    for name, field in fields.items():
        item = value.get(name)
        if item is not None:
            field.check(item, f"{path}.{name}" if path else name, breaches)
        elif field.required:
            breaches.add(f"{path}.{name}" if path else name, "is required")


def members(fields: Mapping[str, RequestField]) -> Check:

    def check(value: object, path: str, breaches: Breaches) -> None:
        check_members(value, fields, path, breaches)

    return check


def text(longest: int | None = None, *, pattern: str | None = None, rule: str = "") -> Check:
    """A string of at most `longest` characters that matches `pattern` whole; `rule` says so in words."""
    compiled = None if pattern is None else re.compile(pattern)

    def check(value: object, path: str, breaches: Breaches) -> None:
        if not isinstance(value, str):
            breaches.add(path, "must be a string")
            return
        if longest is not None and len(value) > longest:
            breaches.add(path, f"must not be longer than {longest} characters")
        if compiled is not None and compiled.fullmatch(value) is None:
            breaches.add(path, rule)

    return check


def amount(value: object, path: str, breaches: Breaches) -> None:
    """A number of at least 1, in major units."""
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        breaches.add(path, "must be a number")
    elif value < 1:
        breaches.add(path, "must be at least 1")
    elif value > LARGEST:
        breaches.add(path, "must not be greater than 10^24")


def _is_whole(value: object) -> TypeGuard[int | Decimal]:
    """True if a JSON number is an integer: 60 is, and so is 60.0."""
    if isinstance(value, Decimal):
        return value == value.to_integral_value()
    return isinstance(value, int) and not isinstance(value, bool)


def whole(least: int, most: int) -> Check:
    """An integer between two bounds, both included."""

    def check(value: object, path: str, breaches: Breaches) -> None:
        if not _is_whole(value):
            breaches.add(path, "must be an integer")
        elif not least <= value <= most:
            breaches.add(path, f"must be between {least} and {most}")

    return check


def flag(value: object, path: str, breaches: Breaches) -> None:
    if not isinstance(value, bool):
        breaches.add(path, "must be true or false")


def past_timestamp(value: object, path: str, breaches: Breaches) -> None:
    """An ISO 8601 date-time that is not in the future."""
    moment = read_timestamp(value) if isinstance(value, str) else None
    if moment is None:
        breaches.add(path, "must be an ISO 8601 date-time")
    elif moment > breaches.now:
        breaches.add(path, "must not be in the future")


def pairs(most: int) -> Check:
    """An object with at most so many members of any kind."""

    def check(value: object, path: str, breaches: Breaches) -> None:
        if not isinstance(value, dict):
            breaches.add(path, "must be an object")
        elif len(value) > most:
            breaches.add(path, f"must not have more than {most} pairs")

    return check
