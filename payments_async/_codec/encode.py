"""Requests to canonical JSON. Amounts stay exact.

`checked_body` checks and writes nearly every request in one pass: msgspec fills a struct that is made of the
rules in `_validation/tables.py`. What it does not take is checked by these rules, and written by `encode`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any

import attrs
import msgspec

from .. import params
from .._attrs import named
from .._validation import rules
from .._validation.tables import REQUIRED, RULES, Form, is_no_dict

_write = msgspec.json.Encoder(decimal_format="number").encode
_convert = msgspec.convert


class Unwritable(Exception):
    """A request that cannot be written as JSON; the message says why, without quoting it."""


def encode(request: params.Params, extra: Mapping[str, Any] | None = None) -> bytes:
    """Write a request as canonical JSON: the fields that are set, in the interface's order, then `extra`."""
    return encode_json({**_given(request), **(extra or {})})


def encode_json(value: Any) -> bytes:
    """Write any JSON value. Raises Unwritable for lone surrogates and types that JSON does not have."""
    try:
        return _write(value)
    except UnicodeEncodeError:
        problem = "holds text that is not valid Unicode (a lone surrogate)"
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        problem = f"cannot be written as JSON ({type(error).__name__})"
    del value  # it holds account data, and tracebacks print locals
    raise Unwritable(problem)


class RequestBody(msgspec.Struct, gc=False, omit_defaults=True):
    """A request about to be written as JSON, without None fields. Alive for microseconds, like `Parsed`."""

    __repr__ = named


_PLAIN = frozenset({str, Decimal, int, bool, type(None)})
"""Types of values that are written unchanged."""
_Pairs = dict[str, str | int | bool | None]
_REQUESTS = (params.PayoutRequest, params.CheckoutRequest, params.PaymentIntentRequest)
_FORMS: dict[type[Any], Form] = {}
_TYPES: dict[Any, Any] = {
    rules.json_object: _Pairs,
    rules.metadata: Annotated[_Pairs, msgspec.Meta(max_length=rules.MOST_PAIRS)],
    rules.timestamp: None,  # compared with the present time, which is not known here
    rules.boolean: bool,
}


def checked_body(request: params.Params) -> bytes | None:
    """Check and write a request in one pass. None when it may have a fault or a doubt: `tables` decides."""
    form = _FORMS.get(type(request)) or _form_of(type(request))
    try:
        if form is None or form.is_doubtful(request):
            return None
        return _write(_convert(request, form.body, from_attributes=True))
    except (ValueError, TypeError, RecursionError, OverflowError):  # a lone surrogate is a ValueError
        return None


def _form_of(cls: Any) -> Form | None:
    return _FORMS.setdefault(cls, _make_form(cls)) if cls in _REQUESTS else None


def _make_form(cls: Any, *, is_required: bool = False) -> Form:
    form = Form(cls, next(iter(RULES[cls])) if is_required else None)
    fields: list[Any] = []
    required = REQUIRED.get(cls, frozenset())
    for name, rule in RULES[cls].items():
        kind, test = _type_of(name in required, rule)
        fields.append((name, kind) if name in required else (name, kind | None if kind else None, None))
        if test is not None:
            form.tests.append((name, name in required, test))
    form.body = msgspec.defstruct(f"{cls.__name__}Body", fields, bases=(RequestBody,))
    return form


def _type_of(is_required: bool, rule: rules.Rule) -> tuple[Any, Callable[[Any], Any] | None]:
    """A type of the field's clear values for msgspec, and a test of what that cannot say."""
    if isinstance(rule, rules.Text):
        return Annotated[str, msgspec.Meta(min_length=int(is_required), max_length=rule.maximum)], None
    if isinstance(rule, rules.Nested):
        if rule.cls is params.CheckoutRestriction:  # one rule for both of its fields
            return None, None
        nested = _make_form(rule.cls, is_required=is_required)
        return nested.body, nested.is_doubtful
    if rule in (rules.json_object, rules.metadata):
        return _TYPES[rule], is_no_dict
    if rule in _TYPES:
        return _TYPES[rule], None
    return Any, rule.are_not_capitals if isinstance(rule, rules.Letters) else rule


def _nested(value: Any) -> Any:
    """Convert the value of a field that may hold nested values. Flat pairs, the usual case, stay as is."""
    if value.__class__ in _PLAIN:
        return value
    if isinstance(value, params.Params):
        return _given(value)
    if isinstance(value, Mapping):
        return {name: _nested(item) for name, item in value.items()}
    if isinstance(value, int):
        return int(value)  # of a class of the caller's
    return value.astimezone(UTC) if isinstance(value, datetime) else value


def _given(request: params.Params) -> dict[str, Any]:
    """The fields of a request that are set, in the interface's order."""
    cls: Any = type(request)
    values = [(field.name, getattr(request, field.name)) for field in attrs.fields(cls)]
    return {
        name: value if value.__class__ in _PLAIN else _nested(value)
        for name, value in values
        if value is not None
    }
