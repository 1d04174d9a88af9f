"""Whether a record says exactly what the JSON said, by the interface's rules and not by the client's code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import attrs

from payments_async.models import Country, Method, Page, Record

FARTHEST = 30
"""Places before or after the point of a number that is read as one; another is kept as text, in `extra`."""


@attrs.frozen
class Beyond:
    """A number in JSON with an exponent that no Decimal has."""

    text: str


def number(text: str) -> Decimal | Beyond:
    try:
        return Decimal(text)
    except ArithmeticError:
        return Beyond(text)


def differences(raw: Any, value: Any, where: str = "") -> Iterator[str]:
    """Every place where the decoded value is not what the JSON value says."""
    match value:
        case Page():
            yield from _of_items(raw.get("data"), value, f"{where}.data")
            yield from differences(raw.get("pagination") or {}, value.pagination, f"{where}.pagination")
        case Record() if isinstance(raw, dict):
            yield from _of_record(raw, value, where)
        case Method() | Country() if isinstance(raw, str):
            code = value.value if isinstance(value, Method) else value.code
            if code != raw:
                yield where
        case tuple() if isinstance(raw, list) and len(raw) == len(value):
            for number, (part, item) in enumerate(zip(raw, value, strict=True)):
                yield from differences(part, item, f"{where}[{number}]")
        case _:
            if not _same(raw, value):
                yield where


def _of_items(raw: Any, page: Page[Any], where: str) -> Iterator[str]:
    """What was read is the rest of the list, and what was not is kept as it came, under its id."""
    unread = {one.index: one for one in page.unread}
    rest = [item for index, item in enumerate(raw) if index not in unread]
    yield from differences(rest, page.items, where)
    for index, one in unread.items():
        named = raw[index].get("id") if isinstance(raw[index], dict) else None
        known = named if isinstance(named, str) and named else None
        if (plain(one.raw), one.record_id) != (plain(raw[index]), known):
            yield f"{where}[{index}] (unread)"


def _of_record(raw: dict[str, Any], record: Record, where: str) -> Iterator[str]:
    fields = {each.name: each.default for each in attrs.fields(type(record)) if not each.name.startswith("_")}
    for name in raw.keys() | fields.keys():
        known = getattr(record, name) if name in fields else None
        if name in record.extra:
            if plain(record.extra[name]) != plain(raw.get(name)) or known is not None:
                yield f"{where}.{name}"
        elif name not in fields:
            yield f"{where}.{name} (lost)"
        elif raw.get(name) is None and known == fields[name]:
            pass  # an id that is not shown is the empty text
        else:
            yield from differences(raw.get(name), known, f"{where}.{name}")


def _same(raw: Any, value: Any) -> bool:
    if isinstance(value, datetime):
        moment = datetime.fromisoformat(raw)
        return value.utcoffset() is not None and value == (
            moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        )
    if isinstance(value, Decimal):
        return not isinstance(raw, bool) and Decimal(raw) == value
    if isinstance(value, bool) or isinstance(raw, bool):
        return raw is value
    if type(value) is str:
        return bool(raw == value)  # no number is a text
    if raw == []:
        return value is None or value in ({}, (), [])
    return bool(plain(raw) == plain(value)) and isinstance(value, float) is False


def plain(value: Any) -> Any:
    """A value of JSON in which a number beyond any amount is the same as its text."""
    if isinstance(value, Beyond):
        return value.text
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, str | Decimal | int) and not isinstance(value, bool):
        with suppress(ArithmeticError):
            number = Decimal(value)
            if number.is_finite() and abs(number.adjusted()) > FARTHEST:
                return "beyond", number
    return value
