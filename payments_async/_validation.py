"""The interface's limits on requests, as tables of rules. Pure: a request in, its faults out."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import attrs

from . import _gaps, params
from ._rules import (
    Nested,
    Rule,
    amount,
    boolean,
    color,
    json_object,
    matching,
    metadata,
    minutes,
    not_both,
    reference,
    statement_descriptor,
    text,
    timestamp,
)

Errors = dict[str, list[str]]

_country = matching("[A-Za-z]{2}", "a two-letter country code")
_currency = matching("[A-Z]{3}", "three uppercase letters (ISO 4217)")
_any_text = text()
_customer = Nested(params.CustomerInput)
_phone = Nested(params.PhoneInput)

_PAYMENT_FIELDS: Mapping[str, Rule] = {
    "amount": amount,
    "currency": _currency,
    "description": text(500),
    "customer": _customer,
    "return_url": text(2048),
    "webhook_url": text(2048),
    "statement_descriptor": statement_descriptor,
    "receipt_email": text(255),
    "entity_id": text(191),
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
        "description": text(500),
        "customer": _customer,
        "webhook_url": text(2048),
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


def check(request: params.Params, *, now: datetime) -> Errors:
    """Every fault of a request, nested objects included, by dotted field name (Endpoints)."""
    errors: Errors = {}
    _check_into(errors, request, "")
    created = getattr(request, "entity_created_at", None)
    if created is not None and "entity_created_at" not in errors and created > now:
        errors["entity_created_at"] = ["must not be in the future"]
    return errors


def _check_into(errors: Errors, request: params.Params, prefix: str) -> None:
    cls = type(request)
    required = REQUIRED.get(cls, _NOTHING)
    for name, rule in RULES[cls].items():
        value = getattr(request, name)
        if name in required and _is_empty(value):
            errors[prefix + name] = ["is required"]
        elif isinstance(rule, Nested) and isinstance(value, rule.cls):
            _check_into(errors, value, f"{prefix}{name}.")
        elif value is None or (value == "" and rule is not reference):
            continue
        elif problem := rule(value):
            errors[prefix + name] = [problem]
    if isinstance(request, params.CheckoutRestriction) and (
        problem := not_both(request.country_code, request.phone)
    ):
        errors[prefix.rstrip(".")] = [problem]


def _is_empty(value: Any) -> bool:
    """Whether nothing was given: None, no text, or an object of nothing else."""
    if isinstance(value, params.Params):
        value = {name: getattr(value, name) for name in RULES[type(value)]}
    if isinstance(value, Mapping):
        return all(item is None or item == "" for item in value.values())
    return value is None or value == ""
