"""Structure hooks for cattrs, generated per record class: strict about types, open to unknown fields.

A generated hook goes through the fields in order, checks each value's type, and fills the slots of a
writable twin that becomes the frozen record at the end (`_attrs`); the frozen class's own `__init__` costs
several times as much. Where a value is not of its usual type, the slow path decides: a shape that varies in
practice (gap AC) is taken, anything else is a `WrongType`.
"""

from __future__ import annotations

import sys
import types
import typing
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache, lru_cache
from typing import Any

import attrs

from .._attrs import writable
from ..models import Country, ExchangeRate, Method, Record

if typing.TYPE_CHECKING:
    import cattrs

Hook = Callable[..., Any]

_OURS = f"{Record.__module__.rpartition('.')[0]}."
"""Where our own record classes are."""


class WrongType(Exception):
    """A field's value is not of its type; the text names the field and both types, never the value."""


def wrong(where: str, wanted: str, value: object) -> typing.NoReturn:
    """Refuse a value."""
    raise WrongType(f"{where} should be {wanted} and is {type(value).__name__}")


def number(value: Any, where: str) -> Decimal:
    """A JSON number, or decimal text, as a Decimal."""
    if value.__class__ is int:
        return Decimal(value)
    if isinstance(value, str) and len(value) <= 100 and (found := _number_in(value)) is not None:
        return found
    return wrong(where, "a number", value)


@lru_cache(maxsize=256)
def _number_in(text: str) -> Decimal | None:
    """A finite number. Exchange rates come as text, the same few all day: it is cheaper to remember them."""
    if not text.isascii() or "_" in text:
        return None
    try:
        found = Decimal(text)
    except ArithmeticError:
        return None
    return found if found.is_finite() else None


def integer(value: Any, where: str) -> int:
    """A whole number; 3.0 counts as 3."""
    if isinstance(value, Decimal) and value.is_finite() and abs(value) < 10**18 and value == int(value):
        return int(value)
    return wrong(where, "a whole number", value)


def moment(value: Any) -> datetime | None:
    """An ISO 8601 moment, UTC where it does not say; None when it cannot be read."""
    try:
        found = datetime.fromisoformat(value)
        return found if found.tzinfo else found.replace(tzinfo=UTC)
    except (TypeError, ValueError, OverflowError):
        return None


def rate(value: Any, where: str, hook: Hook) -> ExchangeRate | Decimal:
    """An exchange rate in its object form or its number form."""
    if isinstance(value, dict):
        return hook(value)  # type: ignore[no-any-return] # cattrs hooks return Any
    return value if value.__class__ is Decimal else number(value, where)


def mapping(value: Any, where: str) -> dict[str, Any]:
    """An object; the empty list that some services write for an empty object counts as one."""
    return {} if value == [] else wrong(where, "an object", value)


def texts(value: Any, where: str) -> tuple[str, ...]:
    """A list of texts."""
    if isinstance(value, list) and all(item.__class__ is str for item in value):
        return tuple(value)
    return wrong(where, "a list of texts", value)


def objects(value: Any, where: str) -> tuple[dict[str, Any], ...]:
    """A list of objects."""
    if isinstance(value, list) and all(item.__class__ is dict for item in value):
        return tuple(value)
    return wrong(where, "a list of objects", value)


_BARE_CODES: dict[type[Any], str] = {Method: "value", Country: "code"}


def record(value: Any, where: str, cls: type[Any]) -> Any:
    """A record that came in another shape: a bare code, or an empty list for nothing (gap AC)."""
    if isinstance(value, str) and cls in _BARE_CODES:
        return cls(**{_BARE_CODES[cls]: value})
    return None if value == [] else wrong(where, "an object", value)


def hook_factory(cls: type[Record], converter: cattrs.BaseConverter) -> Hook:
    """The structure hook of one record class, compiled when it is first wanted."""
    hints = hints_of(cls)
    fields = [field.name for field in attrs.fields(cls) if not field.name.startswith("_")]
    scope: dict[str, Any] = {
        "C": cls,
        "T": writable(cls),
        "Decimal": Decimal,
        "known": frozenset(fields).issuperset,
        "fields": frozenset(fields),
        "moment": moment,
        "wrong": wrong,
    }
    lines = [
        "def structure(o, _=None):",
        f"  if o.__class__ is not dict: wrong({cls.__name__!r}, 'an object', o)",
        "  g = o.get",
        "  r = T()",
        "  x = None if known(o) else {k: o[k] for k in o if k not in fields}",
    ]
    for name in fields:
        lines += _field_lines(cls, name, bare(hints[name]), scope, converter)
    lines += ["  r._extra = x", "  r._response = None", "  r.__class__ = C", "  return r"]
    exec("\n".join(lines), scope)  # noqa: S102 - source made above from our own field names
    return scope["structure"]  # type: ignore[no-any-return] # it comes from exec


def _hints(cls: Any) -> dict[str, Any]:
    """The types of a record's fields. Ours are written in few words: each is evaluated once a module."""
    if cls.__bases__ != (Record,) or not cls.__module__.startswith(_OURS):
        return typing.get_type_hints(cls)
    fields = [field for field in attrs.fields(cls) if not field.name.startswith("_")]
    return {field.name: _evaluated(field.type, cls.__module__) for field in fields}


hints_of: Callable[[Any], dict[str, Any]] = cache(_hints)


@cache
def _evaluated(text: Any, module: str) -> Any:
    written = types.SimpleNamespace(__annotations__={"field": text})
    return typing.get_type_hints(written, vars(sys.modules[module]))["field"]


def is_record(hint: Any) -> bool:
    """Whether a type is a record class."""
    return isinstance(hint, type) and issubclass(hint, Record)


def bare(hint: Any) -> Any:
    """A type without its `| None`."""
    if not isinstance(hint, types.UnionType) and typing.get_origin(hint) is not typing.Union:
        return hint
    members = [member for member in typing.get_args(hint) if member is not type(None)]
    return members[0] if len(members) == 1 else typing.Union[tuple(members)]  # noqa: UP007 - built at run time


def _field_lines(
    cls: type[Record], name: str, hint: Any, scope: dict[str, Any], converter: cattrs.BaseConverter
) -> list[str]:
    """Source that reads one field into its slot."""
    where = f"{cls.__name__}.{name}"
    get = f"  v = g({name!r})"
    put = f"  r.{name} = v"
    if hint is Any:
        return [get, put]
    if hint is datetime:
        keep = f"    if w is None: x = {{**(x or {{}}), {name!r}: v}}"
        return [get, "  if v is not None:", "    w = moment(v)", keep, "    v = w", put]
    test, slow = _check(hint, where, f"_{name}", scope, converter)
    return [get, f"  if v is not None and {test}: v = {slow}", put]


def _check(
    hint: Any, where: str, tag: str, scope: dict[str, Any], converter: cattrs.BaseConverter
) -> tuple[str, str]:
    """When a value needs more than to be taken as it is, and what to do with it then."""
    scope.update(number=number, integer=integer, mapping=mapping, texts=texts, objects=objects)
    scope.update(record=record, rate=rate)
    if hint is str or hint is bool:
        return f"v.__class__ is not {hint.__name__}", f"wrong({where!r}, {hint.__name__!r}, v)"
    if hint is int:
        return "v.__class__ is not int", f"integer(v, {where!r})"
    if hint is Decimal:
        return "v.__class__ is not Decimal", f"number(v, {where!r})"
    if is_record(hint):
        scope[f"hook{tag}"], scope[f"cls{tag}"] = converter.get_structure_hook(hint), hint
        return "True", f"hook{tag}(v) if v.__class__ is dict else record(v, {where!r}, cls{tag})"
    if typing.get_origin(hint) is dict:
        return "v.__class__ is not dict", f"mapping(v, {where!r})"
    if typing.get_origin(hint) is tuple:
        return "True", f"{'texts' if typing.get_args(hint)[0] is str else 'objects'}(v, {where!r})"
    scope[f"hook{tag}"] = converter.get_structure_hook(ExchangeRate)
    return "True", f"rate(v, {where!r}, hook{tag})"
