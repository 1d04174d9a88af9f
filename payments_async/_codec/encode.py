"""Requests to canonical JSON. Amounts stay exact.

`checked_body` checks and writes nearly every request in one pass: a function made of the rules in
`_validation/tables.py` fills a struct. What it does not take is checked by these rules, and written by
`encode`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec

from .. import params
from .._attrs import named
from .._validation import rules
from .._validation.tables import REQUIRED, RULES

_write = msgspec.json.Encoder(decimal_format="number").encode


class Unwritable(Exception):
    """A request that cannot be written as JSON; the message says why, without quoting it."""


def encode(request: params.Params, extra: Mapping[str, Any] | None = None) -> bytes:
    """Write a request as canonical JSON: the fields that are set, in the interface's order, then `extra`."""
    return encode_json({**given(request), **(extra or {})})


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
_FLAT = _PLAIN - {Decimal}
_MOST_PAIRS: dict[Any, float] = {rules.json_object: math.inf, rules.metadata: rules.MOST_PAIRS}
_REQUESTS = (params.PayoutRequest, params.CheckoutRequest, params.PaymentIntentRequest)


def checked_body(request: params.Params) -> bytes | None:
    """Check and write a request in one pass. None when it may have a fault or a doubt: `tables` decides."""
    cls = type(request)
    try:
        body = (_FILLED.get(cls) or _compiled(cls))(request)
        return None if body is None else _write(body)
    except (ValueError, TypeError, RuntimeError, OverflowError):  # a lone surrogate is a ValueError
        return None


_FILLED: dict[type[Any], Callable[[Any], RequestBody | None]] = {}
"""For each class of requests, what makes the body of a request that clearly has no fault."""


def _compiled(cls: Any) -> Callable[[Any], RequestBody | None]:
    if cls not in _REQUESTS:
        return lambda request: None
    scope: dict[str, Any] = {}
    lines = _filling(cls, "v", scope)
    exec("\n  ".join(["def filled(v):", *lines, "return v"]), scope)  # noqa: S102 - source made of our own field names
    return _FILLED.setdefault(cls, scope["filled"])


def _filling(cls: Any, name: str, scope: dict[str, Any], *, is_required: bool = True) -> list[str]:
    """Source that replaces an object in a variable by its body. It returns at a value that is not clear.

    It may refuse a good request, and must never pass one that has a fault or a doubt.
    """
    fields = RULES[cls]
    needed = REQUIRED.get(cls) or frozenset([next(iter(fields))] if is_required else [])
    scope[f"{name}_class"] = cls
    scope[f"{name}_body"] = msgspec.defstruct(
        f"{cls.__name__}Body", [(field, Any, None) for field in fields], bases=(RequestBody,)
    )
    lines = [f"if type({name}) is not {name}_class: return"]
    for field, rule in fields.items():
        value, is_needed = f"{name}_{field}", field in needed
        tests = _tests(rule, value, scope, is_required=is_needed)
        lines.append(f"{value} = {name}.{field}")
        lines += tests if is_needed else [f"if {value} is not None:", *[f"  {line}" for line in tests]]
    return [*lines, f"{name} = {name}_body({', '.join(f'{name}_{field}' for field in fields)})"]


def _are_flat(pairs: dict[Any, Any]) -> bool:
    """Return whether pairs hold text, whole numbers and the like, under names that are text."""
    for name, value in pairs.items():
        if type(name) is not str:
            return False
        if type(value) not in _FLAT:
            return False
    return True


def _tests(rule: rules.Rule, value: str, scope: dict[str, Any], *, is_required: bool) -> list[str]:
    """Source that tests a value, and replaces an object or pairs by what is written."""
    if isinstance(rule, rules.Nested) and rule.cls is not params.CheckoutRestriction:
        return _filling(rule.cls, value, scope, is_required=is_required)
    if isinstance(rule, rules.Text):
        wrong = [f"type({value}) is not str"]
        wrong += [f"not {value}"] if is_required else []
        wrong += [f"len({value}) > {rule.maximum}"] if rule.maximum else []
        return [f"if {' or '.join(wrong)}: return"]
    if isinstance(rule, rules.Letters):
        scope[f"{value}_known"], scope[f"{value}_unclear"] = rule.known, rule.are_not_capitals
        test = f"{value} not in {value}_known and {value}_unclear({value})"
        return [f"if type({value}) is not str or {test}: return"]
    if rule in _MOST_PAIRS:
        scope.update({f"{value}_most": _MOST_PAIRS[rule], "are_flat": _are_flat})
        unusual = f"type({value}) is not dict or len({value}) > {value}_most"
        return [f"if {unusual} or not are_flat({value}): return"]
    if rule is rules.timestamp or isinstance(rule, rules.Nested):
        return ["return"]  # one is compared with the present time, the other has a rule for both its fields
    scope[f"{value}_problem"] = rule
    return [f"if {value}_problem({value}): return"]


def _nested(value: Any) -> Any:
    """Convert the value of a field that may hold nested values. Flat pairs, the usual case, stay as is."""
    if value.__class__ in _PLAIN:
        return value
    if isinstance(value, params.Params):
        return given(value)
    if isinstance(value, Mapping):
        return {name: _nested(item) for name, item in value.items()}
    if isinstance(value, int):
        return int(value)  # of a class of the caller's
    return value.astimezone(UTC) if isinstance(value, datetime) else value


def given(request: params.Params) -> dict[str, Any]:
    """The fields of a request that are set, in the interface's order."""
    return {name: _nested(value) for name, value in request.to_dict().items()}
