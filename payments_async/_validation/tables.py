"""The interface's limits on requests, as tables of rules. Pure: a request in, its faults out."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import attrs

from .. import _assumptions, params
from . import compiled
from .rules import (
    Nested,
    Rule,
    Text,
    amount,
    any_text,
    country,
    currency,
    customer,
    is_empty,
    is_restriction,
    json_object,
    kind,
    metadata,
    not_both,
    other_class,
    reference,
)

Errors = dict[str, list[str]]

RULES: dict[type, Mapping[str, Rule]] = {
    params.CustomerInput: {
        **dict.fromkeys(("email", "first_name", "last_name", "address", "city", "state", "zip"), any_text),
        "country": country,
    },
    params.Instrument: {
        **dict.fromkeys([field.name for field in attrs.fields(params.Instrument)], any_text),
        "country": country,
    },
    params.PayoutRequest: {
        "amount": amount,
        "currency": currency,
        "method": any_text,
        "instrument": Nested(params.Instrument),
        "reference": reference,
        "description": Text(500),
        "customer": customer,
        "webhook_url": Text(2048),
        "metadata": metadata,
        "gateway_options": json_object,
    },
}

REQUIRED: dict[type, frozenset[str]] = {params.PayoutRequest: _assumptions.REQUIRED_OF_PAYOUTS}

_NOTHING: frozenset[str] = frozenset()
_TESTS: dict[type, compiled.Test] = {}


def all_rules() -> Mapping[type, Mapping[str, Rule]]:
    """Every table. Those of payments are loaded when they are first wanted."""
    from . import payment_tables

    REQUIRED.update(payment_tables.REQUIRED)  # first: whoever finds a table, in another thread, finds this
    RULES.update(payment_tables.RULES)
    return RULES


def rules_of(cls: type) -> Mapping[str, Rule] | None:
    """The table of a request class; None for a class that is not ours."""
    return RULES.get(cls) or all_rules().get(cls)


def check(request: params.Params, *, now: datetime) -> Errors:
    """Every fault of a request, nested objects included, by dotted field name (Endpoints)."""
    cls = type(request)
    return {} if (_TESTS.get(cls) or test_of(cls))(request, now) else faults(request, now=now)


def test_of(cls: type) -> compiled.Test:
    """The test that tells at once whether a request has a fault; made when its class is first seen."""
    rules = rules_of(cls)
    if rules is None:
        return _never
    if cls not in _TESTS:
        _TESTS[cls] = compiled.make_test(cls, rules, REQUIRED.get(cls, _NOTHING), test_of)
    return _TESTS[cls]


def faults(request: params.Params, *, now: datetime) -> Errors:
    """The faults in words: a walk through the tables."""
    if rules_of(type(request)) is None:
        return {"request": [_foreign(request)]}
    errors: Errors = {}
    _check_into(errors, request, "")
    created = getattr(request, "entity_created_at", None)
    if isinstance(created, datetime) and "entity_created_at" not in errors and created > now:
        errors["entity_created_at"] = ["must not be in the future"]
    return errors


def _never(_request: object, _now: datetime) -> bool:
    """The test of a class that has no table."""
    return False


def _foreign(request: object) -> str:
    """What to pass instead of an object of a class that is not ours."""
    problems = (other_class(request, cls) for cls in all_rules())
    return next(filter(None, problems), f"must be a class of params, not {kind(request)}")


def _check_into(errors: Errors, request: params.Params, prefix: str) -> None:
    cls = type(request)
    required = REQUIRED.get(cls, _NOTHING)
    for name, rule in RULES[cls].items():
        value = getattr(request, name)
        if name in required and is_empty(value):
            errors[prefix + name] = ["is required"]
        elif isinstance(rule, Nested) and type(value) is rule.cls:
            _check_into(errors, value, f"{prefix}{name}.")
        elif value is None or (value == "" and rule is not reference):
            continue
        elif problem := rule(value):
            errors[prefix + name] = [problem]
    if (
        is_restriction(cls)
        and isinstance(request, params.CheckoutRestriction)
        and (problem := not_both(request.country_code, request.phone))
    ):
        errors[prefix.rstrip(".")] = [problem]
