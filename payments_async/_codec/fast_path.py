"""The fast path to a record: a msgspec Struct for each record class, with no dict in between.

A `WireStruct` has its record class's fields, and the unknown fields that earlier answers had. It accepts
nearly every answer and refuses the rest: an unknown field, or a field of another shape (gap AC), for the
first time; a timestamp that cannot be read. `hooks` reads the refused answers. The fast path may refuse too
much, but must never read an answer differently from `hooks`: `tests/codec/test_fast_path.py` compares them.

The whole answer is checked at once. A nested record is made when somebody asks for it; until then its slot
has the WireStruct.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC
from decimal import Decimal
from functools import cache, partial
from typing import Any, ClassVar, Final

import msgspec

from .._attrs import made_when_asked, named, writable
from ..models import ExchangeRate, Record
from .hooks import (
    BARE_CODES,
    DATETIME,
    NUMBERS,
    Hook,
    fields_of,
    is_record,
    reader,
    shown_in_all,
    usual,
    usual_number,
)

if typing.TYPE_CHECKING:
    import cattrs

MOST_LEARNED: Final = 16
"""Unknown fields of a class that the fast path learns; `hooks` reads the answers that have more."""
_LEARNABLE: Final = r'[^"\\]{,100}'
"""A printable name that msgspec takes for a field's."""
_AT_ONCE: Final = "amount"
"""The nested record that is made with the record around it: the client compares it, most programs read it."""
_LEARNED: dict[Any, list[str]] = {}
"""Names of unknown fields that answers had, by record class, and for `Envelope`."""
_VARYING: dict[Any, dict[str, Varying]] = {}
"""Fields that came in another shape than the usual one, by record class and name."""


class Varying(typing.NamedTuple):
    """The type of a field that comes in several shapes, and the name of the function that reads it."""

    hint: Any
    reader: str
    where: str


class Parsed(msgspec.Struct, gc=False):
    """Base of parsed JSON. It is in no cycle, so the garbage collector does not track it.

    A traceback with local variables may print an instance, so the repr hides the content.
    """

    __repr__ = named


class Envelope(Parsed, gc=False, forbid_unknown_fields=True):
    """A parsed answer: its record or records, and what is beside them."""


class WireStruct(Parsed, gc=False, forbid_unknown_fields=True):
    """A parsed record with its usual fields and types."""

    record_class: ClassVar[type[Record]]

    def to_record(self) -> Record:
        """Make the record. The values are converted already."""
        self.compile()
        return self.to_record()

    @classmethod
    def compile(cls) -> None:
        """Replace `to_record` by a function made for this class."""
        cls.to_record = _compiled(cls, _copying(cls, is_converted=True))  # type: ignore[method-assign]


def learn(cls: Any, names: Iterable[str]) -> bool:
    """Have the fast path read fields of a record class, or of `Envelope`, from the next answer on.

    They are unknown, or known and come in another shape. Returns False if all of them are learned already, or
    too many or too odd to be.
    """
    learned, varying = _LEARNED.setdefault(cls, []), _VARYING.setdefault(cls, {})
    known = {} if cls is Envelope else fields_of(cls)
    unknown = [name for name in names if name not in known]
    usable = [name for name in unknown if name.isprintable() and re.fullmatch(_LEARNABLE, name)]
    new = [name for name in usable if name not in learned][: max(MOST_LEARNED - len(learned), 0)]
    changed = [name for name in names if name in known and name not in varying]
    for name in changed:
        place = f"{cls.__name__}.{name}"
        varying[name] = Varying(known[name], f"read_{place.replace('.', '_')}", place)
    learned.extend(new)
    if new or changed:
        wire_struct_of.cache_clear()
    return bool(new or changed)


def _learned_fields(cls: Any, known: Iterable[str]) -> list[Any]:
    """The learned fields, for a struct that has the known ones; they may be any JSON."""
    names = [name for name in _LEARNED.get(cls, ()) if name not in known]
    unset = [msgspec.field(default=msgspec.UNSET, name=name) for name in names]
    return [(f"unknown{number}", Any, field) for number, field in enumerate(unset)]


@cache
def wire_struct_of(cls: Any) -> type[WireStruct]:
    """Make the WireStruct of a record class. Fields not typed here are checked by the hook."""
    shown, hints = shown_in_all(cls), _fields(cls)
    fields: list[Any] = [(name, _SET) for name in hints if name in shown]
    fields += [(name, _wire_type(hint), None) for name, hint in hints.items() if name not in shown]
    fields += _learned_fields(cls, hints)
    made: Any = msgspec.defstruct(f"{cls.__name__}Wire", fields, bases=(WireStruct,))
    made.record_class = cls
    return made  # type: ignore[no-any-return] # it is made at run time


def _fields(cls: Any) -> dict[str, Any]:
    """The fields of a record class, with the types of their values in the answers so far."""
    return {**_usual_fields(cls), **_VARYING.get(cls, {})}


def _usual_fields(cls: Any) -> dict[str, Any]:
    """The fields of a record class, with the types of their usual values.

    An exchange rate comes as an object; a payment attempt's as an object or a number (Resources).
    """
    kinds = fields_of(cls)
    if "exchange_rate" in kinds and cls.__name__ != "PaymentAttempt":
        return {**kinds, "exchange_rate": ExchangeRate}
    return kinds


_SET = typing.Annotated[str, msgspec.Meta(min_length=1)]
"""A text that is there; the slow path decides what an answer without it means."""
_CHECKED = (str, bool, int)
"""Types that msgspec checks. It would read decimals and timestamps by other rules than `hooks`."""


def _wire_type(hint: Any) -> Any:
    if is_record(hint):
        return wire_struct_of(hint) | None
    if hint in _CHECKED or typing.get_origin(hint) in (dict, tuple):
        return hint | None
    return Any


def envelope_reader(wire: Any, pagination: Any = None) -> Callable[[bytes], Any]:
    """Make a reader of answers that hold a record, or a page of them if the pagination has a WireStruct too.

    The reader raises msgspec's own exceptions, also for an unknown field that is not learned.
    """
    fields: list[Any] = [("data", list[wire] if pagination else wire), ("message", Any, None)]
    if pagination:
        fields.append(("pagination", pagination | None, None))
    fields += _learned_fields(Envelope, [name for name, *_ in fields])
    made = msgspec.defstruct(f"{wire.record_class.__name__}Answer", fields, bases=(Envelope,))
    return msgspec.json.Decoder(made, float_hook=usual).decode


def hook_factory(wire: Any, converter: cattrs.BaseConverter) -> Hook:
    """Make the structure hook from a WireStruct to its record.

    It converts the values of nested records as well. A value of a wrong type raises; the slow path then gives
    the reason.
    """
    nested = {name: hint for name, hint in _fields(wire.record_class).items() if is_record(hint)}
    lines = [*_converting(nested, "o"), *_copying(wire, is_converted=False)]
    varying = [field for fields in _VARYING.values() for field in fields.values()]
    readers = {field.reader: _reader_of(field, converter) for field in varying}
    return _compiled(wire, lines, rate=partial(converter.structure, cl=ExchangeRate), **readers)


def _reader_of(field: Varying, converter: cattrs.BaseConverter) -> Callable[[Any], Any]:
    read = reader(field.hint, field.where, converter)
    if field.hint not in BARE_CODES:
        return read
    wire, code = wire_struct_of(field.hint), BARE_CODES[field.hint]
    return lambda value: wire(**{code: value}) if value.__class__ is str else read(value)


def load_nested(cls: Any) -> None:
    """Compile what makes the records inside those of a class."""
    for hint in filter(is_record, _fields(cls).values()):
        wire_struct_of(hint).compile()
        load_nested(hint)


def _compiled(wire: type[WireStruct], lines: list[str], **scope: Any) -> Hook:
    """Compile a function that makes the record of a WireStruct."""
    cls: Any = wire.record_class
    _defer_nested(cls)
    scope.update(C=cls, T=writable(cls), UNSET=msgspec.UNSET, iso=DATETIME[0].fromisoformat, UTC=UTC)
    scope.update(Decimal=Decimal, known=NUMBERS.get, usual=usual, number=usual_number)
    exec("\n  ".join(["def function(o, _=None):", *lines]), scope)  # noqa: S102 - source made here: no name from outside but as a literal
    return scope["function"]  # type: ignore[no-any-return] # it comes from exec


def _copying(wire: Any, *, is_converted: bool) -> list[str]:
    """Source that makes record `r` from WireStruct `o`, with its unknown fields."""
    lines, known = ["r = T()"], _fields(wire.record_class)
    for name, hint in known.items():
        if (is_record(hint) or not is_converted) and (found := _conversion(name, hint)):
            lines += [f"v = o.{name}", f"if {found[0]}: v = {found[1]}", f"r.{name} = v"]
        else:
            lines.append(f"r.{name} = o.{name}")
    names = zip(wire.__struct_encode_fields__, wire.__struct_fields__, strict=True)
    unknown = [(name, f"o.{field}") for name, field in names if field not in known]
    pairs = "".join(f"({name!r}, {value}), " for name, value in unknown)
    some = " or ".join(f"{value} is not UNSET" for _, value in unknown)
    lines.append(f"r._extra = {{n: v for n, v in ({pairs}) if v is not UNSET}} if {some or None} else None")
    return [*lines, "r._response = None", "r.__class__ = C", "return r"]


def _converting(fields: Mapping[str, Any], source: str) -> list[str]:
    """Source that converts fields of WireStruct `source`, and of those in it, to the records' types."""
    lines = []
    for name, hint in fields.items():
        value = f"{source}.{name}"
        if is_record(hint):
            inside = [f"  {line}" for line in _converting(_fields(hint), f"{source}_")]
            lines += [f"{source}_ = {value}", f"if {source}_ is not None:", *inside] if inside else []
        elif conversion := _conversion(name, hint):
            lines += [f"v = {value}", f"if {conversion[0]}: {value} = {conversion[1]}"]
    return lines


def _conversion(name: str, hint: Any) -> tuple[str, str] | None:
    """Source of the test whether a value `v` needs conversion, and of the result; None if it never does."""
    if isinstance(hint, Varying):
        return "v is not None", f"{hint.reader}(v)"
    if hint is DATETIME[0]:
        return "v is not None", "t if (t := iso(v)).tzinfo else t.replace(tzinfo=UTC)"
    if hint is Decimal:
        other = f"known(v) or (usual(v) if v.__class__ is int else number(v, {name!r}))"
        return "v.__class__ is not Decimal and v is not None", other
    if is_record(hint):
        return ("v is not None", "v.to_record()") if name == _AT_ONCE else None
    if hint is Any or hint in _CHECKED or typing.get_origin(hint) in (dict, tuple):
        return None
    return "v is not None", f"rate(v) if v.__class__ is dict else number(v, {name!r})"


@cache
def _defer_nested(cls: Any) -> None:
    """Let the slots of nested records hold WireStructs, of which a record is made when it is asked for."""
    for name in [name for name, hint in _usual_fields(cls).items() if is_record(hint) and name != _AT_ONCE]:
        owner = next(base for base in cls.__mro__ if name in vars(base))
        if not isinstance(vars(owner)[name], property):
            made_when_asked(owner, name, _record_of)
        setattr(writable(cls), name, vars(owner)[name].slot)


def _record_of(held: Any) -> Any:
    return held.to_record() if type(type(held)) is _STRUCT_TYPE else held


_STRUCT_TYPE: Final = type(WireStruct)
