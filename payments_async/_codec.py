"""Bytes to records and requests to bytes: cattrs with hooks generated per class, msgspec for the JSON.

Only this module and its two halves, `_structure` and `_forms`, import either. Numbers stay exact both ways: a
JSON number becomes an int or a Decimal and never passes through a float.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from typing import Any, TypeVar

import attrs
import cattrs
import msgspec

from . import _forms, _structure, params
from .models import Pagination, Record

R = TypeVar("R", bound=Record)

_parse = msgspec.json.Decoder(float_hook=Decimal).decode
_write = msgspec.json.Encoder(decimal_format="number").encode


class Unreadable(Exception):
    """Bytes that are not the JSON they should be; the text says how, without quoting them."""


class Unwritable(Exception):
    """A request that cannot be JSON; the text says why, without quoting it."""


class Asked(_forms.Parsed, gc=False):
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
    raise Unreadable(problem)


def structure(value: Any, cls: type[R]) -> R:
    """A parsed JSON value as a record. Raises Unreadable where a field has another type than it should."""
    try:
        return _CONVERTER.get_structure_hook(cls)(value, cls)  # type: ignore[no-any-return] # cattrs hooks return Any
    except (_structure.WrongType, ArithmeticError, RecursionError) as error:
        problem = str(error) if isinstance(error, _structure.WrongType) else type(error).__name__
    raise Unreadable(problem)


def well_formed(body: bytes, cls: Any, *, page: bool) -> Any:
    """An answer's envelope with its record or records in `data`; None for one that is not quite as expected.

    Half the cost of `parse` and `structure`, which decide what the others are, and agree wherever this one
    takes an answer.
    """
    try:
        return _reader(cls, page)(body)
    except (_structure.WrongType, TypeError, ValueError, ArithmeticError, RecursionError):
        return None


@cache
def _reader(cls: Any, page: bool) -> Callable[[bytes], Any]:
    read = _forms.envelope(cls, page=page)
    fill: Callable[..., Any] = _CONVERTER.get_structure_hook(_forms.form_of(cls))

    def one(body: bytes) -> Any:
        found = read(body)
        found.data = fill(found.data)
        return found

    if not page:
        return one
    stands: Callable[..., Any] = _CONVERTER.get_structure_hook(_forms.form_of(Pagination))

    def many(body: bytes) -> Any:
        found = read(body)
        found.data = tuple([fill(item) for item in found.data])
        if found.pagination is not None:
            found.pagination = stands(found.pagination)
        return found

    return many


def encode(request: params.Params, extra: Mapping[str, Any] | None = None) -> bytes:
    """A request as canonical JSON: the keys that are set, in the interface's order, `extra` over them."""
    body = _CONVERTER.get_unstructure_hook(type(request))(request)
    return encode_json({**body, **extra} if extra else body)


def encode_json(value: Any) -> bytes:
    """Any JSON value as bytes. Raises Unwritable for lone surrogates and foreign types."""
    try:
        return _write(value)
    except UnicodeEncodeError:
        problem = "holds text that is not valid Unicode (a lone surrogate)"
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        problem = f"cannot be written as JSON ({type(error).__name__})"
    raise Unwritable(problem)


_PLAIN = frozenset({str, Decimal, int, bool, type(None)})
"""What is written as it is."""


def _unstructure_factory(cls: type[Any], converter: cattrs.Converter) -> Callable[[Any], dict[str, Any]]:
    """Writes the set fields of a request class: no loop, no look-up, nothing for the fields left out."""
    lines = ["def unstructure(o):", "  d = {}"]
    for field in attrs.fields(cls):
        lines += [f"  v = o.{field.name}", "  if v is not None:"]
        lines += [f"    d[{field.name!r}] = v if v.__class__ in plain else nested(v)"]
    scope: dict[str, Any] = {"plain": _PLAIN, "nested": _nested(converter)}
    exec("\n".join([*lines, "  return d"]), scope)  # noqa: S102 - source made above from our own field names
    return scope["unstructure"]  # type: ignore[no-any-return] # it comes from exec


def _nested(converter: cattrs.Converter) -> Callable[[Any], Any]:
    def nested(value: Any) -> Any:
        if value.__class__ is dict and _PLAIN.issuperset(map(type, value.values())):
            return value
        if isinstance(value, params.Params):
            return converter.get_unstructure_hook(type(value))(value)
        if isinstance(value, Mapping):
            return {name: nested(item) for name, item in value.items()}
        return value.astimezone(UTC) if isinstance(value, datetime) else value

    return nested


def _is_params(cls: Any) -> bool:
    return isinstance(cls, type) and issubclass(cls, params.Params)


_CONVERTER = cattrs.Converter(detailed_validation=False)
_CONVERTER.register_unstructure_hook_factory(_is_params, _unstructure_factory)
_CONVERTER.register_structure_hook_factory(_structure.is_record, _structure.hook_factory)
_CONVERTER.register_structure_hook_factory(_forms.is_form, _forms.hook_factory)
