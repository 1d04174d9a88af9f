"""The interface's limits on requests, as tables of rules. Pure: takes a request, returns its faults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import attrs

from .. import _assumptions, params
from .rules import (
    Nested,
    Rule,
    Text,
    amount,
    any_text,
    boolean,
    color,
    country,
    currency,
    customer,
    is_empty,
    is_nothing,
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

_phone = Nested(params.PhoneInput)

_PAYMENT_FIELDS: Mapping[str, Rule] = {
    "amount": amount,
    "currency": currency,
    "description": Text(500),
    "customer": customer,
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
    params.PhoneInput: {"number": any_text, "country": country},
    params.AttemptInput: {
        "method_code": any_text,
        "country": country,
        "phone": _phone,
        "currency": currency,
    },
    params.CheckoutRestriction: {"country_code": country, "phone": _phone},
    params.AppearanceInput: {
        "color": color,
        "display_platform_badge": boolean,
        "brand": any_text,
        "icon_url": any_text,
    },
    params.CheckoutRequest: {
        **_PAYMENT_FIELDS,
        "expires_in_minutes": minutes,
        "restriction": Nested(params.CheckoutRestriction),
        "appearance": Nested(params.AppearanceInput),
    },
    params.PaymentIntentRequest: {**_PAYMENT_FIELDS, "attempt": Nested(params.AttemptInput)},
}

REQUIRED: Mapping[type, frozenset[str]] = {
    params.PayoutRequest: _assumptions.REQUIRED_OF_PAYOUTS,
    params.CheckoutRequest: _assumptions.REQUIRED_OF_PAYMENTS,
    params.PaymentIntentRequest: _assumptions.REQUIRED_OF_PAYMENTS,
    params.AttemptInput: frozenset({"method_code"}),
    params.PhoneInput: frozenset({"number"}),
}

_NOTHING: frozenset[str] = frozenset()


def check(request: params.Params, *, now: datetime) -> Errors:
    """Find every fault of a request, with nested objects, by dotted field name (Endpoints)."""
    if type(request) not in RULES:
        return {"request": [_foreign(request)]}
    errors: Errors = {}
    _check_into(errors, request, "")
    for name, code in _countries(request, ""):  # those in mappings were not checked yet
        if name not in errors and not is_nothing(code) and (problem := country(code)):
            errors[name] = [problem]
    if isinstance(request, params.PaymentFields) and "entity_created_at" not in errors:
        created = request.entity_created_at
        if isinstance(created, datetime) and created > now:
            errors["entity_created_at"] = ["must not be in the future"]
    return errors


def doubts(request: params.Params) -> list[str]:
    """Find what is allowed and probably a slip: country codes that are not in capitals."""
    found = _countries(request, "")
    return [
        f"{name} is a country code in lower case" for name, code in found if code and code != code.upper()
    ]


def _countries(request: params.Params, prefix: str) -> Iterator[tuple[str, Any]]:
    """List a request's country codes by dotted field name, in mappings where the interface names them."""
    for name, rule in _WITH_COUNTRIES[type(request)]:
        value = getattr(request, name)
        if rule is country:
            yield prefix + name, value
        elif type(value) is rule.cls:
            yield from _countries(value, f"{prefix}{name}.")
        elif rule.cls in _CODES and isinstance(value, Mapping):
            yield f"{prefix}{name}.{_CODES[rule.cls]}", value.get(_CODES[rule.cls])


_CODES: Mapping[type, str] = {params.CustomerInput: "country", params.CheckoutRestriction: "country_code"}
_WITH_COUNTRIES: Mapping[type, Sequence[tuple[str, Any]]] = {
    cls: [(name, rule) for name, rule in rules.items() if rule is country or isinstance(rule, Nested)]
    for cls, rules in RULES.items()
}
"""The fields that are a country code, or may hold one: few of a request's."""


def _foreign(request: object) -> str:
    """Advice on the class to pass instead of an unknown one."""
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
    if isinstance(request, params.CheckoutRestriction):
        problem = not_both(request.country_code, request.phone)
        if problem:
            errors[prefix.rstrip(".")] = [problem]
