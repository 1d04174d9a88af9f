"""Schemas of requests for pydantic. The rules of `_validation` check a body as they check a call."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any

from pydantic_core import InitErrorDetails, PydanticCustomError, ValidationError, core_schema

from .._codec.encode import given
from .._runtime import SYSTEM
from .._validation import rules
from .._validation.tables import REQUIRED, RULES, check
from ..models._masking import HIDDEN, clean

Faults = dict[tuple[str, ...], str]
"""What is wrong, by the path to each field."""
_AMOUNT = r"^[0-9]+(\.[0-9]+)?$"
"""How a text has an amount: what documents say and what is taken."""


def request_schema(cls: Any, handler: Any) -> core_schema.CoreSchema:
    """Make the schema of a class of requests. Raises TypeError for a class without rules."""
    if cls not in RULES:
        raise TypeError(f"{cls.__name__} has no rules: use a class of payments_async.params itself")
    needed = REQUIRED.get(cls, frozenset())
    fields = {name: _field(rule, handler, is_required=name in needed) for name, rule in RULES[cls].items()}
    return core_schema.no_info_plain_validator_function(
        partial(_checked, cls),
        ref=reference_of(cls, cls.__name__),
        json_schema_input_schema=core_schema.typed_dict_schema(
            fields, cls=blank_class(cls.__name__), extra_behavior="forbid"
        ),
        serialization=core_schema.plain_serializer_function_ser_schema(given),
    )


def reference_of(cls: Any, name: str) -> str:
    """The name of a schema in documents, and what makes it unique."""
    return f"{cls.__module__}.{name}:{id(cls)}"


def blank_class(name: str) -> type[Any]:
    """A class that gives an object its title in documents: ours would add a text for programmers."""
    return type(name, (), {})


def reported(title: str, faults: Faults) -> ValidationError:
    """The error with all faults. It holds no value, which may be account data."""
    details = [
        InitErrorDetails(type=PydanticCustomError("invalid_request", problem), loc=where, input=HIDDEN)
        for where, problem in faults.items()
    ]
    return ValidationError.from_exception_data(title, details)


def _checked(cls: Any, value: Any) -> Any:
    """Make a request of a body, and check it. Every fault is in the error that it raises."""
    faults: Faults = {}
    request = _read(cls, value, (), faults)
    if type(request) is cls:
        for name, problems in check(request, now=SYSTEM.now()).items():
            faults.setdefault(tuple(filter(None, name.split("."))), problems[0])
    else:
        faults[()] = str(rules.Nested(cls)(request))
    if faults:
        raise reported(cls.__name__, faults)
    return request


def _read(cls: Any, value: Any, at: tuple[str, ...], faults: Faults) -> Any:
    """Make a request of a mapping, with objects in it; leave anything else for the rules."""
    if not isinstance(value, Mapping):
        return value
    known = RULES[cls]
    for name in value:
        if name not in known:
            near = rules.suggestion(str(name), known)
            faults[(*at, _shown_key(str(name)))] = f"is not a field of {cls.__name__}{near}"
    fields = {name: _value(known[name], value[name], (*at, name), faults) for name in value if name in known}
    return cls(**{**dict.fromkeys(REQUIRED.get(cls, ())), **fields})


def _shown_key(name: str) -> str:
    """An unknown key that may be a field's name; hidden when it may be account data."""
    return name if rules.is_identifier(f"{clean(name)}0") else HIDDEN


def _value(rule: rules.Rule, value: Any, at: tuple[str, ...], faults: Faults) -> Any:
    """Read a field's value from JSON."""
    if isinstance(rule, rules.Nested):
        return _read(rule.cls, value, at, faults)
    if rule is rules.timestamp and isinstance(value, str):
        try:
            return datetime.fromisoformat(value)
        except ValueError:
            faults[at] = "must be an ISO 8601 date-time with its time zone"
            return None
    if rule is rules.amount and isinstance(value, str) and not re.fullmatch(_AMOUNT, value):
        faults[at] = 'must be a plain decimal number as text, such as "10.50": digits and a point alone'
        return None
    return value


def _field(rule: rules.Rule, handler: Any, *, is_required: bool) -> core_schema.TypedDictField:
    """A field in documents."""
    shown = _shown(rule, handler)
    if not is_required:
        shown = core_schema.with_default_schema(core_schema.nullable_schema(shown), default=None)
    return core_schema.typed_dict_field(shown, required=is_required)


def _shown(rule: rules.Rule, handler: Any) -> core_schema.CoreSchema:
    """What documents say of a rule. Nothing is checked by it."""
    if isinstance(rule, rules.Nested):
        return handler.generate_schema(rule.cls)  # type: ignore[no-any-return] # pydantic's own
    if isinstance(rule, rules.Text):
        return core_schema.str_schema(max_length=rule.maximum)
    if isinstance(rule, rules.Letters):
        return core_schema.str_schema(pattern=f"^{rule.form}$")
    decimal_text = core_schema.str_schema(pattern=_AMOUNT)
    pairs = partial(core_schema.dict_schema, core_schema.str_schema(), core_schema.any_schema())
    schemas: Mapping[rules.Rule, core_schema.CoreSchema] = {
        rules.amount: core_schema.union_schema(
            [decimal_text, core_schema.int_schema(ge=int(rules.LEAST_AMOUNT))]
        ),
        rules.reference: core_schema.str_schema(min_length=1, max_length=rules.MOST_OF_REFERENCE),
        rules.statement_descriptor: core_schema.str_schema(
            max_length=rules.MOST_OF_DESCRIPTOR, pattern=f"^{rules.STATEMENT}$"
        ),
        rules.metadata: pairs(max_length=rules.MOST_PAIRS),
        rules.json_object: pairs(),
        rules.minutes: core_schema.int_schema(ge=rules.MINUTES[0], le=rules.MINUTES[-1]),
        rules.timestamp: core_schema.datetime_schema(),
        rules.color: core_schema.str_schema(pattern=f"^{rules.COLOR}$"),
        rules.boolean: core_schema.bool_schema(),
    }
    return schemas[rule]
