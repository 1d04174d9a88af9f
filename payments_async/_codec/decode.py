"""Bytes to records: JSON by msgspec, records by cattrs hooks made for each class.

Only the modules of this folder import msgspec or cattrs. Numbers stay exact both ways: a JSON number becomes
an int or a Decimal and never passes through a float.

There are two paths from bytes to a record. `fast_path` reads an answer whose fields are of their usual types,
and all known or learned from an earlier answer. An answer that it refuses is parsed here and read by `hooks`,
which alone decide what unusual values mean. A list of more than 1,000 records is refused before any record is
made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import cache
from typing import Any, Final, TypeVar

import cattrs
import msgspec

from .. import models
from ..models import Record
from . import fast_path, hooks

R = TypeVar("R", bound=Record)

MAX_RECORDS: Final = 1_000
"""The most records in one answer's list; the largest page has 100 (gap D)."""
TOO_MANY_RECORDS: Final = f"a list of more than {MAX_RECORDS:,} records"
_LARGE: Final = 256 * 1024
"""Bytes; the records of a larger body are counted before it is parsed. 100 records take a third of this."""
_UNKNOWN_FIELD: Final = "Object contains unknown field `([^`]*)`"
"""What msgspec says of a field that is beside `data`; of one in `data`, it says more."""


class UnreadableJSON(Exception):
    """Bytes that are not valid or not the expected JSON; the message says why, without quoting them."""


class RequestedFields(fast_path.Parsed, gc=False):
    """The fields of a request that its answer repeats; None for one that is absent."""

    amount: Any = None
    currency: Any = None
    reference: Any = None
    method: Any = None
    instrument: Any = None


_parse = msgspec.json.Decoder(float_hook=Decimal).decode
_parse_answer = msgspec.json.Decoder(float_hook=hooks.exact).decode
_requested_fields = msgspec.json.Decoder(RequestedFields, float_hook=Decimal).decode


def parse(body: bytes) -> Any:
    """Parse a JSON body, numbers exact.

    Raises UnreadableJSON: not JSON, nested too deeply, or a number that is not finite.
    """
    return _read(_parse, body)


def parse_answer(body: bytes) -> Any:
    """Parse an answer as `parse` does, but with text for each number that is beyond any amount or rate."""
    return _read(_parse_answer, body)


def requested_fields(request: bytes) -> RequestedFields:
    """Read the fields of a request's body that its answer repeats. Raises UnreadableJSON."""
    return _read(_requested_fields, request)  # type: ignore[no-any-return] # `_read` is for any reader


def _read(reader: Callable[[bytes], Any], body: bytes) -> Any:
    try:
        return reader(body)
    except (ValueError, ArithmeticError, RecursionError) as error:
        problem = f"not JSON that can be read ({type(error).__name__})"
    raise UnreadableJSON(problem)


class _DataUnread(msgspec.Struct):
    """An answer whose `data` is left unparsed."""

    data: msgspec.Raw = msgspec.Raw(b"null")


_data_unread = msgspec.json.Decoder(_DataUnread).decode


def has_too_many_records(body: bytes) -> bool:
    """Check whether a large body holds a list, as `data` or at the top, of more than `MAX_RECORDS` records.

    The body is read up to the first record too many, without making objects: parsed, 4 MiB of empty objects
    would be 300 MiB.
    """
    if len(body) < _LARGE:
        return False
    try:
        data = _data_unread(body).data
    except msgspec.ValidationError:  # the body is no object
        data = msgspec.Raw(body.lstrip())
    except (ValueError, RecursionError):
        return False
    if bytes(memoryview(data)[:1]) != b"[":
        return False
    try:
        _bounded_list()(data)
    except msgspec.ValidationError:
        return True
    except (ValueError, RecursionError):
        return False
    return False


@cache
def _bounded_list() -> Callable[[Any], Any]:
    """Make a reader of a list of at most `MAX_RECORDS`; it stops at the first record too many."""
    values = [(f"value{number}", msgspec.Raw, None) for number in range(MAX_RECORDS)]
    made = msgspec.defstruct("BoundedList", values, array_like=True, forbid_unknown_fields=True)
    return msgspec.json.Decoder(made).decode


def structure(value: Any, cls: type[R]) -> R:
    """Make a record from a parsed JSON value. Raises UnreadableJSON when a field has a wrong type."""
    try:
        return _CONVERTER.get_structure_hook(cls)(value, cls)  # type: ignore[no-any-return] # cattrs hooks return Any
    except (hooks.WrongType, ArithmeticError, RecursionError) as error:
        problem = str(error) if isinstance(error, hooks.WrongType) else type(error).__name__
    raise UnreadableJSON(problem)


def usual_answer(body: bytes, cls: Any, *, page: bool) -> Any:
    """Read an answer's envelope with its record or records in `data`; None when anything in it is unusual.

    This costs less than half of `parse` and `structure`, which read the unusual answers, and give the same
    result for the usual ones.
    """
    try:
        return _usual_reader(cls, page)(body)
    except (hooks.WrongType, TypeError, ValueError, ArithmeticError, RecursionError) as error:
        if found := re.fullmatch(_UNKNOWN_FIELD, str(error)):
            _learn(fast_path.Envelope, found.groups())
        return None


def load(cls: Any, *, page: bool) -> None:
    """Compile the readers of a record class's answers."""
    _usual_reader(cls, page)
    fast_path.load_nested(cls)
    _CONVERTER.get_structure_hook(cls)


@cache
def _usual_reader(cls: Any, page: bool) -> Callable[[bytes], Any]:
    wire = fast_path.wire_struct_of(cls)
    wire_pagination = fast_path.wire_struct_of(models.Pagination) if page else None
    read = fast_path.envelope_reader(wire, wire_pagination)
    fill: Callable[..., Any] = _CONVERTER.get_structure_hook(wire, cache_result=False)

    def one(body: bytes) -> Any:
        found = read(body)
        found.data = fill(found.data)
        return found

    if wire_pagination is None:
        return one
    fill_pagination: Callable[..., Any] = _CONVERTER.get_structure_hook(wire_pagination, cache_result=False)

    def many(body: bytes) -> Any:
        if has_too_many_records(body) or len((found := read(body)).data) > MAX_RECORDS:
            raise hooks.WrongType(TOO_MANY_RECORDS)
        found.data = tuple([fill(item) for item in found.data])
        if found.pagination is not None:
            found.pagination = fill_pagination(found.pagination)
        return found

    return many


def _learn(cls: Any, names: Iterable[str]) -> None:
    """Have unknown fields read on the fast path, whose readers are then compiled again."""
    if fast_path.learn(cls, names):
        _usual_reader.cache_clear()


def _register(converter: cattrs.BaseConverter, learn: hooks.Learn) -> None:
    """Have a converter read records. `learn` is called with a class and its unknown fields."""
    converter.register_structure_hook_factory(
        hooks.is_record, lambda cls, owner: hooks.hook_factory(cls, owner, learn)
    )


def register_hooks(converter: cattrs.BaseConverter) -> None:
    """Have a cattrs converter of your own make records of parsed JSON, and of `to_dict(unmasked=True)`.

    After it `converter.structure(mapping, Payout)` works for every record, also within classes of your own. A
    field of a wrong type is a ValueError.
    """
    _register(converter, lambda cls, names: None)


_CONVERTER = cattrs.BaseConverter(detailed_validation=False)
_register(_CONVERTER, _learn)
_CONVERTER.register_structure_hook_factory(
    lambda cls: isinstance(cls, type) and issubclass(cls, fast_path.WireStruct), fast_path.hook_factory
)
