"""The interface's limits on requests, as tables of rules. Pure: a request in, its faults out."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import attrs

from . import _gaps, _sound, params
from ._rules import (
    Matching,
    Nested,
    Rule,
    Text,
    amount,
    boolean,
    color,
    is_empty,
    json_object,
    kind,
    metadata,
    minutes,
    not_both,
    other_class,
    reference,
    statement_descriptor,
    timestamp,
)

Errors = dict[str, list[str]]

_country = Matching("[A-Za-z]{2}", "a two-letter country code")
_currency = Matching("[A-Z]{3}", "three uppercase letters (ISO 4217)")
_any_text = Text()
_customer = Nested(params.CustomerInput)
_phone = Nested(params.PhoneInput)

_PAYMENT_FIELDS: Mapping[str, Rule] = {
    "amount": amount,
    "currency": _currency,
    "description": Text(500),
    "customer": _customer,
    "return_url": Text(2048),
    "webhook_url": Text(2048),
    "statement_descriptor": statement_descriptor,
    "receipt_email": Text(255),
    "entity_id": Text(191),
    "entity_created_at": timestamp,
    "gateway_options": json_object,
    "metadata": metadata,
}

RULES: Mapping[type, Mapping[str, Rule]] = {
    params.CustomerInput: {
        **dict.fromkeys(("email", "first_name", "last_name", "address", "city", "state", "zip"), _any_text),
        "country": _country,
    },
    params.PhoneInput: {"number": _any_text, "country": _country},
    params.Instrument: {
        **dict.fromkeys([field.name for field in attrs.fields(params.Instrument)], _any_text),
        "country": _country,
    },
    params.AttemptInput: {
        "method_code": _any_text,
        "country": _country,
        "phone": _phone,
        "currency": _currency,
    },
    params.CheckoutRestriction: {"country_code": _country, "phone": _phone},
    params.AppearanceInput: {
        "color": color,
        "display_platform_badge": boolean,
        "brand": _any_text,
        "icon_url": _any_text,
    },
    params.CheckoutRequest: {
        **_PAYMENT_FIELDS,
        "expires_in_minutes": minutes,
        "restriction": Nested(params.CheckoutRestriction),
        "appearance": Nested(params.AppearanceInput),
    },
    params.PaymentIntentRequest: {**_PAYMENT_FIELDS, "attempt": Nested(params.AttemptInput)},
    params.PayoutRequest: {
        "amount": amount,
        "currency": _currency,
        "method": _any_text,
        "instrument": Nested(params.Instrument),
        "reference": reference,
        "description": Text(500),
        "customer": _customer,
        "webhook_url": Text(2048),
        "metadata": metadata,
        "gateway_options": json_object,
    },
}

REQUIRED: Mapping[type, frozenset[str]] = {
    params.CheckoutRequest: _gaps.REQUIRED_OF_PAYMENTS,
    params.PaymentIntentRequest: _gaps.REQUIRED_OF_PAYMENTS,
    params.PayoutRequest: _gaps.REQUIRED_OF_PAYOUTS,
    params.AttemptInput: frozenset({"method_code"}),
    params.PhoneInput: frozenset({"number"}),
}

_NOTHING: frozenset[str] = frozenset()
_TESTS: dict[type, _sound.Test] = {}


def check(request: params.Params, *, now: datetime) -> Errors:
    """Every fault of a request, nested objects included, by dotted field name (Endpoints)."""
    cls = type(request)
    return {} if (_TESTS.get(cls) or test_of(cls))(request, now) else faults(request, now=now)


def test_of(cls: type) -> _sound.Test:
    """The test that tells at once whether a request has a fault; made when its class is first seen."""
    if cls not in RULES:
        return _never
    if cls not in _TESTS:
        _TESTS[cls] = _sound.make_test(cls, RULES[cls], REQUIRED.get(cls, _NOTHING), test_of)
    return _TESTS[cls]


def faults(request: params.Params, *, now: datetime) -> Errors:
    """The faults in words: a walk through the tables."""
    if type(request) not in RULES:
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
    problems = (other_class(request, cls) for cls in RULES)
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
    if isinstance(request, params.CheckoutRestriction) and (
        problem := not_both(request.country_code, request.phone)
    ):
        errors[prefix.rstrip(".")] = [problem]
