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
from .._validation.receivers import PlainText
from .._validation.tables import REQUIRED, RULES
from ..params.requests import has_three_decimals

_write = msgspec.json.Encoder(decimal_format="number").encode


class Unwritable(Exception):
    """A request that cannot be written as JSON; the message says why, without quoting it."""


def encode(request: params.Params, extra: Mapping[str, Any] | None = None) -> bytes:
    """Write a request as canonical JSON: the fields that are set, in the interface's order, then `extra`."""
    return encode_json({**given(request), **(extra or {})})


def encode_json(value: Mapping[str, Any]) -> bytes:
    """Write a body: a JSON object in which an exact amount has the one spelling of its value.

    Raises Unwritable as `encode_value` does.
    """
    amount = value.get("amount")
    if isinstance(amount, Decimal):
        value = {**value, "amount": params.decimal_if_readable(amount)}
    return encode_value(value)


def encode_value(value: Any) -> bytes:
    """Write any JSON value, its numbers as they are.

    Raises Unwritable for lone surrogates and types that JSON does not have.
    """
    try:
        return _write(_nested(value))
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


def checked_body(request: params.Params, now: datetime | None = None) -> bytes | None:
    """Check and write a request in one pass. None when it may have a fault or a doubt: `tables` decides.

    `now`: what no moment of the request may be after.
    """
    cls = type(request)
    try:
        filled = _FILLED.get(cls) or _compiled(cls)
        body = filled(request, True, now)
        if body is None:
            return None
        written = _write(body)
        if written.isascii() and _BACKSLASH not in written and _DELETE not in written:
            return written  # no text of it holds a control sign, or one of another alphabet
        return written if filled(request, False, now) is not None else None
    # a class of the caller's has no rules; a lone surrogate is a ValueError, no number an ArithmeticError
    except (LookupError, ValueError, TypeError, RuntimeError, ArithmeticError):
        return None


_MOST = Decimal(10**15)
_BACKSLASH, _DELETE = b"\\\x7f"
_Fill = Callable[[Any, bool, datetime | None], RequestBody | None]
_FILLED: dict[type[Any], _Fill] = {}
"""For each class of requests, what makes the body of a request that clearly has no fault.

Its second argument: whether all texts are taken to be of printable ASCII signs; its third: the time.
"""


def _compiled(cls: Any) -> _Fill:
    scope: dict[str, Any] = {"from_mapping": _from_mapping}
    lines = _filling(cls, "v", scope)
    exec("\n  ".join(["def filled(v, is_plain, now):", *lines, "return v"]), scope)  # noqa: S102 - source made of our own field names
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
    lines = [f"if type({name}) is dict: {name} = from_mapping({name}_class, {name})"] if name != "v" else []
    lines.append(f"if type({name}) is not {name}_class: return")
    if cls is params.CheckoutRestriction:  # to one of both
        lines.append(f"if ({name}.country_code is None) is ({name}.phone is None): return")
    for field, rule in fields.items():
        value, is_needed = f"{name}_{field}", field in needed
        tests = _tests(rule, value, scope, is_required=is_needed)
        lines.append(f"{value} = {name}.{field}")
        lines += tests if is_needed else [f"if {value} is not None:", *[f"  {line}" for line in tests]]
    return [*lines, f"{name} = {name}_body({', '.join(f'{name}_{field}' for field in fields)})"]


def _from_mapping(cls: type[Any], pairs: dict[Any, Any]) -> Any:
    """The object of what a mapping holds. None where that is not the same: a null in a mapping is written.

    Raises TypeError for names that the class does not have.
    """
    return None if None in pairs.values() else cls(**pairs)


def _are_plain(pairs: dict[Any, Any], depth: int = 3) -> bool:
    """Return whether pairs hold text, whole numbers and the like, or such pairs; all names are text."""
    for name, value in pairs.items():
        if type(name) is not str:
            return False
        kind = type(value)
        if kind not in _FLAT and not (kind is dict and depth and _are_plain(value, depth - 1)):
            return False
    return True


def _tests(rule: rules.Rule, value: str, scope: dict[str, Any], *, is_required: bool) -> list[str]:
    """Source that tests a value, and replaces an object or pairs by what is written."""
    if isinstance(rule, rules.Nested):
        return _filling(rule.cls, value, scope, is_required=is_required)
    if isinstance(rule, rules.Text):
        wrong = [f"type({value}) is not str"]
        wrong += [f"not {value}"] if is_required else []
        wrong += [f"len({value}) > {rule.maximum}"] if rule.maximum else []
        if isinstance(rule, PlainText):
            scope[f"{value}_problem"] = rule
            quick = rule.quick and f" and {rule.quick.format(value)}"
            wrong += [f"not (is_plain{quick} or {value}_problem({value}) is None)"]
        return [f"if {' or '.join(wrong)}: return"]
    if isinstance(rule, rules.Letters):
        scope[f"{value}_known"], scope[f"{value}_unclear"] = rule.known, rule.are_not_capitals
        test = f"{value} not in {value}_known and {value}_unclear({value})"
        return [f"if type({value}) is not str or {test}: return"]
    if rule in _MOST_PAIRS:
        scope.update({f"{value}_most": _MOST_PAIRS[rule], "are_plain": _are_plain})
        unusual = f"type({value}) is not dict or len({value}) > {value}_most"
        return [f"if {unusual} or not are_plain({value}): return"]
    if rule is rules.timestamp:
        scope.update({f"{value}_problem": rule, "written": _nested})
        is_late = f"now is None or {value}_problem({value}) or {value} > now"
        return [f"if {is_late}: return", f"{value} = written({value})"]
    scope.update({f"{value}_problem": rule, "Decimal": Decimal, "least": rules.LEAST_AMOUNT, "most": _MOST})
    if rule is rules.amount:
        usual = f"type({value}) is Decimal and least <= {value} < most and len(str({value})) < 30"
        return [f"if not ({usual}) and (type({value}) is not Decimal or {value}_problem({value})): return"]
    is_usual = "False"
    if rule is rules.reference:
        is_short = f"0 < len({value}) <= {rules.MOST_OF_REFERENCE}"
        is_usual = f'is_plain and type({value}) is str and {is_short} and " " not in {value}'
    return [f"if not ({is_usual}) and {value}_problem({value}): return"]


def _nested(value: Any) -> Any:
    """Convert a value to what is written: what is of a class of the caller's, to its plain one."""
    if value.__class__ in _PLAIN:
        return value
    if isinstance(value, params.Params):
        return given(value)
    if isinstance(value, Mapping):
        return {_nested(name): _nested(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_nested(item) for item in value]
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, str):
        return str.__str__(value)
    return next((cls(value) for cls in (Decimal, int, float) if isinstance(value, cls)), value)


def given(request: params.Params) -> dict[str, Any]:
    """The fields of a request that are set, in the interface's order."""
    fields = {name: _nested(value) for name, value in request.to_dict().items()}
    if has_three_decimals(amount := fields.get("amount")):
        fields["amount"] = params.decimal_if_readable(Decimal(amount))
    return fields
