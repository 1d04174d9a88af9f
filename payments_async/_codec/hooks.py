"""Structure hooks for cattrs: parsed JSON to records. Strict about types, open to unknown fields.

A hook takes a value of its field's usual type unchanged. One function for each type reads other values: it
accepts a shape that varies in practice (gap AC) and refuses anything else with a `WrongType`.
"""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from decimal import Clamped, Context, Decimal, InvalidOperation, Overflow, Rounded, Subnormal
from functools import cache, partial
from typing import Any, Final

import attrs

from .._attrs import writable
from ..models import Country, ExchangeRate, Method, Record

if typing.TYPE_CHECKING:
    import cattrs

Hook = Callable[..., Any]
Learn = Callable[[Any, Iterable[str]], None]
Reader = Callable[[Any, str], Any]
"""Reads a value; the text names the field, for the error message."""

FARTHEST: Final = 30
"""Places before or after the point that a number may have to be read as one."""
_NUMBER: Final = re.compile(r"\s*[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\s*", re.ASCII)
DATETIME: Final[tuple[type[datetime], ...]] = (datetime.isoformat.__objclass__,)  # type: ignore[attr-defined] # of C
"""The class itself, in a place where a test that stops the clock, as by freezegun, does not replace it."""
NUMBERS: Final[dict[str, Decimal]] = {}
"""Numbers that were read from text, a few hundred: the same exchange rates come all day."""


class FarNumber(str):
    """The text of a number that is beyond any amount or rate, of a class that no field of texts takes."""

    __slots__ = ()


class WrongType(ValueError):
    """A field's value has a wrong type; the message names the field and both types, never the value."""


def refuse(value: object, where: str, wanted: str) -> typing.NoReturn:
    raise WrongType(f"{where} should be {wanted} and is {type(value).__name__}")


usual: Final[Callable[[Any], Decimal]] = Context(
    prec=10_000,
    Emin=-FARTHEST,
    Emax=FARTHEST,
    traps=[Clamped, InvalidOperation, Overflow, Rounded, Subnormal],
).create_decimal
"""Reads a number, in C. Raises ArithmeticError for one beyond any amount or rate, or of 10,001 digits."""


def number(value: Any, where: str) -> Decimal | None:
    """Read a JSON number, or decimal text, as a Decimal; None for one that is beyond any amount or rate."""
    if value.__class__ not in (Decimal, int) and (not isinstance(value, str) or not _NUMBER.fullmatch(value)):
        return refuse(value, where, "a number")
    try:
        found = usual(value.strip() if isinstance(value, str) else value)
    except ArithmeticError:
        return None
    if isinstance(value, str):
        if len(NUMBERS) >= 256:
            NUMBERS.clear()
        NUMBERS[value] = found
    return found


def usual_number(value: Any, where: str) -> Decimal:
    """Read a number that is within the bounds of `number`; refuse any other."""
    found = number(value, where)
    return refuse(value, where, "a usual number") if found is None else found


def exact(text: str) -> Decimal | FarNumber:
    """Read a number; its text for one beyond any amount or rate: written out, it may be a gigabyte."""
    try:
        return usual(text)
    except ArithmeticError:
        return FarNumber(text)


def integer(value: Any, where: str) -> int:
    """Read a whole number; 3.0 counts as 3."""
    if isinstance(value, Decimal) and value.is_finite() and abs(value) < 10**18 and value == int(value):
        return int(value)
    return refuse(value, where, "a whole number")


def moment(value: Any, _: str = "") -> datetime | None:
    """Read an ISO 8601 timestamp, UTC by default; None when it cannot be read."""
    try:
        found = value if isinstance(value, DATETIME[0]) else DATETIME[0].fromisoformat(value)
        return found if found.tzinfo else found.replace(tzinfo=UTC)
    except (TypeError, ValueError, OverflowError):
        return None


def mapping(value: Any, where: str) -> dict[str, Any]:
    """Read an object; an empty list, which some services write for an empty object, counts as one."""
    return {} if value == [] else refuse(value, where, "an object")


def items(value: Any, where: str, cls: type[Any], wanted: str) -> tuple[Any, ...]:
    """Read a list of texts, or of objects."""
    if isinstance(value, list) and all(item.__class__ is cls for item in value):
        return tuple(value)
    return refuse(value, where, wanted)


_READERS: dict[Any, tuple[type[Any] | None, Reader]] = {
    str: (str, partial(refuse, wanted="str")),
    bool: (bool, partial(refuse, wanted="bool")),
    int: (int, integer),
    Decimal: (None, number),
    DATETIME[0]: (None, moment),
    dict: (dict, mapping),
    Any: (None, lambda value, _: value),
}
"""Readers by the type of a field, except for records, lists and rates."""
BARE_CODES: Final[dict[type[Any], str]] = {Method: "value", Country: "code"}
"""The field of a record that its bare code stands for."""


def record_in_another_shape(value: Any, where: str, cls: type[Any]) -> Any:
    """Read a nested record that came as no object: a bare code, or an empty list for none (gap AC)."""
    if value.__class__ is str and cls in BARE_CODES:
        return cls(**{BARE_CODES[cls]: value})
    return None if value == [] else refuse(value, where, "an object")


def hook_factory(cls: Any, converter: cattrs.BaseConverter, learn: Learn) -> Hook:
    """Make the structure hook of one record class. It fills the writable subclass of `_attrs`.

    With the constructor of the frozen class, decoding would cost half as much again. `learn` is called with
    the names of fields that are unknown, or came in another shape.
    """
    hints, blank, defaults = fields_of(cls), writable(cls), attrs.fields_dict(cls)
    fields = [
        (name, defaults[name].default, *_readers(hint, converter), f"{cls.__name__}.{name}")
        for name, hint in hints.items()
    ]
    all_known = frozenset(hints).issuperset
    checked = {name for name, _, usual, nested, *_ in fields if usual is not None or nested is not None}

    def structure(value: Any, _: Any = None) -> Any:
        if value.__class__ is not dict:
            refuse(value, cls.__name__, "an object")
        made, get = blank(), value.get
        extra = {} if all_known(value) else {name: value[name] for name in value if name not in hints}
        new = [*extra]
        for name, default, usual, nested, read, where in fields:
            item = get(name)
            if item is None:
                item = default
            elif item.__class__ is not usual:
                if nested is not None and item.__class__ is dict:
                    item = nested(item)
                else:
                    if (item := read(item, where)) is None and read in (moment, number):
                        extra[name] = get(name) if read is moment else str(get(name))
                    elif name in checked:
                        new.append(name)
            setattr(made, name, item)
        if new:
            learn(cls, new)
        made._extra, made._response = extra or None, None
        made.__class__ = cls
        return made

    return structure


def reader(hint: Any, where: str, converter: cattrs.BaseConverter) -> Callable[[Any], Any]:
    """A function that reads a field's value of any shape, but None, as the hook of its record does.

    It refuses a number that the hook keeps as text among the unknown fields.
    """
    usual, nested, read = _readers(hint, converter)
    read = usual_number if read is number else read

    def one(value: Any) -> Any:
        if value.__class__ is usual:
            return value
        if nested is not None and value.__class__ is dict:
            return nested(value)
        return read(value, where)

    return one


def _readers(hint: Any, converter: cattrs.BaseConverter) -> tuple[type[Any] | None, Hook | None, Reader]:
    """The readers of a field's type.

    Returns the class of values that are taken unchanged, the hook for an object, and the reader of all
    others.
    """
    if is_record(hint):
        return None, converter.get_structure_hook(hint), partial(record_in_another_shape, cls=hint)
    origin = typing.get_origin(hint) or hint
    if origin is tuple:
        is_texts = typing.get_args(hint)[0] is str
        cls, wanted = (str, "a list of texts") if is_texts else (dict, "a list of objects")
        return None, None, partial(items, cls=cls, wanted=wanted)
    if origin in _READERS:
        usual, read = _READERS[origin]
        return usual, None, read
    return None, converter.get_structure_hook(ExchangeRate), number


@cache
def shown_in_all(cls: Any) -> frozenset[str]:
    """The text fields that the usual answers of a record class all have: None is not among their values."""
    return frozenset(field.name for field in attrs.fields(cls) if field.default == "")


@cache
def fields_of(cls: Any) -> dict[str, Any]:
    """A record class's fields and their types, without `None`."""
    hints: dict[str, Any] = {f.name: f.type for f in attrs.fields(cls) if not f.name.startswith("_")}
    if str in map(type, hints.values()):  # of a user's own class
        meant = typing.get_type_hints(cls)
        hints = {name: meant[name] for name in hints}
    return {name: without_none(hint) for name, hint in hints.items()}


def is_record(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Record)


def without_none(hint: Any) -> Any:
    """A type without its `| None`. A class made while a test had stopped the clock has other datetimes."""
    if isinstance(hint, type) and issubclass(hint, DATETIME):
        return DATETIME[0]
    if not isinstance(hint, types.UnionType) and typing.get_origin(hint) is not typing.Union:
        return hint
    members = [member for member in typing.get_args(hint) if member is not type(None)]
    return without_none(members[0]) if len(members) == 1 else typing.Union[tuple(members)]  # noqa: UP007 - built at run time
