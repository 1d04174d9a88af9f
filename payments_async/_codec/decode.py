"""Bytes to records by cattrs hooks made per class; msgspec for the JSON.

Only the modules of this folder import either. Numbers stay exact both ways: a JSON number becomes
an int or a Decimal and never passes through a float.

There are two ways from bytes to a record. `fast_path` takes an answer whose fields are all known and of
their usual types. What it refuses is parsed here and read by `hooks`, which alone decide what unusual values
mean. A list of more than 1,000 records is refused before any record is made.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import cache
from typing import Any, Final, TypeVar

import cattrs
import msgspec

from .. import models
from ..models import Record
from . import fast_path, hooks

R = TypeVar("R", bound=Record)

_parse = msgspec.json.Decoder(float_hook=Decimal).decode


MOST_RECORDS: Final = 1_000
"""Records of one answer's list; the largest page there is has 100 (gap D)."""
TOO_MANY: Final = f"a list of more than {MOST_RECORDS:,} records"
_LARGE: Final = 256 * 1024
"""Bytes of a body that is looked through before it is parsed; a page of 100 records has a third of that."""


class UnreadableJSON(Exception):
    """Bytes that are not the JSON they should be; the text says how, without quoting them."""


class Asked(fast_path.Parsed, gc=False):
    """What a request says that its answer repeats; an Ellipsis where it says nothing."""

    amount: Any = ...
    currency: Any = ...
    reference: Any = ...


_asked = msgspec.json.Decoder(Asked, float_hook=Decimal).decode


def parse(body: bytes) -> Any:
    """The JSON value in `body`, numbers exact. Raises Unreadable: not JSON, too deep, a senseless number."""
    return _read(_parse, body)


def asked(request: bytes) -> Asked:
    """What a request's bytes say, of what an answer repeats. Raises Unreadable."""
    return _read(_asked, request)  # type: ignore[no-any-return] # `_read` is for any reader


def _read(reader: Callable[[bytes], Any], body: bytes) -> Any:
    try:
        return reader(body)
    except (ValueError, ArithmeticError, RecursionError) as error:
        problem = f"not JSON that can be read ({type(error).__name__})"
    raise UnreadableJSON(problem)


def is_crowded(body: bytes) -> bool:
    """Whether a large body holds a list, as `data` or by itself, of more records than any page.

    It is read up to the first record too many, and nothing of it is made: parsed, 16 MiB of empty objects
    would be a gigabyte.
    """
    if len(body) < _LARGE:
        return False
    try:
        data = _outline(body).data
    except msgspec.ValidationError:  # it is no object
        data = msgspec.Raw(body.lstrip())
    except (ValueError, RecursionError):
        return False
    if bytes(memoryview(data)[:1]) != b"[":
        return False
    try:
        _room()(data)
    except msgspec.ValidationError:
        return True
    except (ValueError, RecursionError):
        return False
    return False


class _Outline(msgspec.Struct):
    """An answer, its data unread."""

    data: msgspec.Raw = msgspec.Raw(b"null")


_outline = msgspec.json.Decoder(_Outline).decode


@cache
def _room() -> Callable[[Any], Any]:
    """Reads a list of so many values and no more; the first one too many ends the reading."""
    values = [(f"value{number}", msgspec.Raw, None) for number in range(MOST_RECORDS)]
    made = msgspec.defstruct("Room", values, array_like=True, forbid_unknown_fields=True)
    return msgspec.json.Decoder(made).decode


def structure(value: Any, cls: type[R]) -> R:
    """A parsed JSON value as a record. Raises Unreadable where a field has another type than it should."""
    try:
        return _CONVERTER.get_structure_hook(cls)(value, cls)  # type: ignore[no-any-return] # cattrs hooks return Any
    except (hooks.WrongType, ArithmeticError, RecursionError) as error:
        problem = str(error) if isinstance(error, hooks.WrongType) else type(error).__name__
    raise UnreadableJSON(problem)


def well_formed(body: bytes, cls: Any, *, page: bool) -> Any:
    """An answer's envelope with its record or records in `data`; None for one that is not quite as expected.

    Half the cost of `parse` and `structure`, which decide what the others are, and agree wherever this one
    takes an answer.
    """
    try:
        return _reader(cls, page)(body)
    except (hooks.WrongType, TypeError, ValueError, ArithmeticError, RecursionError):
        return None


@cache
def _reader(cls: Any, page: bool) -> Callable[[bytes], Any]:
    read = fast_path.envelope(cls, page=page)
    fill: Callable[..., Any] = _CONVERTER.get_structure_hook(fast_path.form_of(cls))

    def one(body: bytes) -> Any:
        found = read(body)
        found.data = fill(found.data)
        return found

    if not page:
        return one
    stands: Callable[..., Any] = _CONVERTER.get_structure_hook(fast_path.form_of(models.Pagination))

    def many(body: bytes) -> Any:
        if is_crowded(body) or len((found := read(body)).data) > MOST_RECORDS:
            raise hooks.WrongType(TOO_MANY)
        found.data = tuple([fill(item) for item in found.data])
        if found.pagination is not None:
            found.pagination = stands(found.pagination)
        return found

    return many


_CONVERTER = cattrs.BaseConverter(detailed_validation=False)
_CONVERTER.register_structure_hook_factory(hooks.is_record, hooks.hook_factory)
_CONVERTER.register_structure_hook_factory(fast_path.is_form, fast_path.hook_factory)
