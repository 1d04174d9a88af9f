"""The fast path to a record: a msgspec Struct for each record class, with no dict in between.

A `WireStruct` has its record class's fields. It accepts nearly every answer and refuses the rest: an unknown
field, a shape that varies (gap AC), a timestamp that cannot be read. `hooks` reads the refused answers. The
fast path may refuse too much, but must never read an answer differently from `hooks`;
`tests/codec/test_fast_path.py` compares the two.
"""

from __future__ import annotations

import typing
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache, partial
from typing import Any

import msgspec

from .. import models
from .._attrs import named, writable
from ..models import ExchangeRate, Record
from .hooks import Hook, fields_of, is_record, number, shown_in_all

if typing.TYPE_CHECKING:
    import cattrs


class Parsed(msgspec.Struct, gc=False):
    """Base of parsed JSON: alive for microseconds, so the garbage collector does not track it.

    A traceback with local variables may print an instance, so the repr hides the content.
    """

    __repr__ = named


class WireStruct(Parsed, gc=False, forbid_unknown_fields=True):
    """A parsed record with its usual fields and types."""


@cache
def wire_struct_of(cls: Any) -> type[WireStruct]:
    """Make the WireStruct of a record class. Fields not typed here are checked by the hook."""
    shown, hints = shown_in_all(cls), _fields(cls)
    fields: list[Any] = [(name, _SET) for name in hints if name in shown]
    fields += [(name, _wire_type(hint), None) for name, hint in hints.items() if name not in shown]
    made: type[Any] = msgspec.defstruct(f"{cls.__name__}Wire", fields, bases=(WireStruct,))
    _RECORD_CLASSES[made] = cls
    return made


_RECORD_CLASSES: dict[type[WireStruct], type[Record]] = {}


def _fields(cls: Any) -> dict[str, Any]:
    """The fields of a record class, with the types of their usual values.

    An exchange rate comes as an object; a payment attempt's as an object or a number (Resources).
    """
    kinds = fields_of(cls)
    if "exchange_rate" in kinds and cls is not models.PaymentAttempt:
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


@cache
def envelope_reader(cls: Any, *, page: bool) -> Callable[[bytes], Any]:
    """Make a reader of answers that hold one record, or a page of them, and no unknown field.

    The reader raises msgspec's own exceptions.
    """
    wire = wire_struct_of(cls)
    fields: list[Any] = [("data", list[wire] if page else wire), ("message", Any, None)]  # type: ignore[valid-type] # made at run time
    if page:
        fields.append(("pagination", wire_struct_of(models.Pagination) | None, None))
    made = msgspec.defstruct(
        f"{cls.__name__}Answer", fields, bases=(Parsed,), gc=False, forbid_unknown_fields=True
    )
    return msgspec.json.Decoder(made, float_hook=Decimal).decode


def is_wire_struct(cls: Any) -> bool:
    """Return whether a type is a WireStruct."""
    return isinstance(cls, type) and issubclass(cls, WireStruct)


def hook_factory(wire: Any, converter: cattrs.BaseConverter) -> Hook:
    """Make the structure hook from a WireStruct to its record, compiled at its first use.

    The hook fills nested records as well: separate hooks would be ten calls for one payout.
    """
    scope: dict[str, Any] = {"iso": datetime.fromisoformat, "Decimal": Decimal, "UTC": UTC}
    scope.update(number=number, rate=partial(converter.structure, cl=ExchangeRate))
    lines = ["def fill(o, _=None):", *_record_lines(_RECORD_CLASSES[wire], "", scope), "return r"]
    exec("\n  ".join(lines), scope)  # noqa: S102 - source made above from our own field names
    return scope["fill"]  # type: ignore[no-any-return] # it comes from exec


def _record_lines(cls: type[Record], place: str, scope: dict[str, Any]) -> list[str]:
    """Source that makes record `r` from WireStruct `o`; for a nested record at place 9, `r9` from `o9`."""
    scope[f"T{place}"], scope[f"C{place}"] = writable(cls), cls
    lines = [f"r{place} = T{place}()"]
    for name, hint in _fields(cls).items():
        lines += _field_lines(name, hint, place, scope)
    return [*lines, f"r{place}._extra = None", f"r{place}._response = None", f"r{place}.__class__ = C{place}"]


def _field_lines(name: str, hint: Any, place: str, scope: dict[str, Any]) -> list[str]:
    """Source that copies one field. A value of a wrong type raises; the slow path then gives the reason."""
    source, target = f"o{place}.{name}", f"r{place}.{name}"
    read = _reading(name, hint, scope)
    if read is None:
        return [f"{target} = {source}"]
    return [f"v = {source}", "if v is not None:", *(f"  {line}" for line in read), f"{target} = v"]


def _reading(name: str, hint: Any, scope: dict[str, Any]) -> list[str] | None:
    """Source that converts the WireStruct's value `v` to the record's; None when it needs no conversion."""
    if hint is datetime:
        return ["v = iso(v)", "if v.tzinfo is None: v = v.replace(tzinfo=UTC)"]
    if hint is Decimal:
        return [f"if v.__class__ is not Decimal: v = number(v, {name!r})"]
    if is_record(hint):
        inside = str(len(scope))
        return [f"o{inside} = v", *_record_lines(hint, inside, scope), f"v = r{inside}"]
    if hint is Any or hint in _CHECKED or typing.get_origin(hint) in (dict, tuple):
        return None
    return [f"v = rate(v) if v.__class__ is dict else number(v, {name!r})"]
