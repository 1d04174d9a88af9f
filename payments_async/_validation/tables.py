"""The interface's limits on requests, as tables of rules. Pure: takes a request, returns its faults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from .. import _assumptions, params
from . import amount_guesses
from .receivers import Destination, PersonName, PhoneNumber, PlainText, phone_doubt, rounding_doubt
from .rules import (
    Letters,
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
    json_object,
    kind,
    metadata,
    minutes,
    other_class,
    reference,
    restriction_problem,
    statement_descriptor,
    timestamp,
)

Errors = dict[str, list[str]]

_CHECKED_IN_MAPPINGS = (PlainText, Letters)
"""Rules for those texts of a mapping that say who gets the money. The rest of it is sent unchanged."""

_phone = Nested(params.PhoneInput)
_INSTRUMENT = Nested(params.Instrument)

_PAYMENT_FIELDS: Mapping[str, Rule] = {
    "amount": amount,
    "currency": currency,
    "description": Text(500),
    "customer": customer,
    "return_url": Text(2048),
    "webhook_url": Text(2048),
    "statement_descriptor": statement_descriptor,
    "receipt_email": PlainText(255),
    "entity_id": Text(191),
    "entity_created_at": timestamp,
    "gateway_options": json_object,
    "metadata": metadata,
}

RULES: Mapping[type, Mapping[str, Rule]] = {
    params.CustomerInput: {
        "email": PlainText(),
        **dict.fromkeys(("first_name", "last_name"), PersonName()),
        **dict.fromkeys(("address", "city", "state", "zip"), any_text),
        "country": country,
    },
    params.Instrument: {
        "type": PlainText(),
        "phone_number": PhoneNumber(),
        "account_name": PersonName(),
        **dict.fromkeys(("account_number", "bank_code", "swift_bic"), Destination()),
        "country": country,
        **dict.fromkeys(("address", "network", "memo_tag"), Destination()),
    },
    params.PayoutRequest: {
        "amount": amount,
        "currency": currency,
        "method": PlainText(),
        "instrument": _INSTRUMENT,
        "reference": reference,
        "description": Text(500),
        "customer": customer,
        "webhook_url": Text(2048),
        "metadata": metadata,
        "gateway_options": json_object,
    },
    params.PhoneInput: {"number": PhoneNumber(), "country": country},
    params.AttemptInput: {
        "method_code": PlainText(),
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
        problems = (other_class(request, cls) for cls in RULES)
        return {"request": [next(filter(None, problems), f"must be a class of params, not {kind(request)}")]}
    errors: Errors = {}
    _check_into(errors, request, "")
    if isinstance(request, params.PaymentFields) and "entity_created_at" not in errors:
        created = request.entity_created_at
        if isinstance(created, datetime) and created > now:
            errors["entity_created_at"] = ["must not be in the future"]
    return errors


def doubts(request: params.Params) -> list[str]:
    """Find what is allowed and probably a slip: country codes in lower case, fields that nobody knows."""
    doubtful = [
        f"{name} is a country code in lower case"
        for name, code in _countries(request, type(request), "")
        if isinstance(code, str) and code != code.upper()
    ]
    if isinstance(instrument := getattr(request, "instrument", None), Mapping):
        doubtful += [f"instrument has the unknown field {name}" for name in _INSTRUMENT.unknown(instrument)]
    return doubtful


def receiver_doubts(request: params.PayoutRequest) -> list[str]:
    """Find what is probably a slip in the account that a valid payout goes to."""
    given = request.instrument
    instrument = given if isinstance(given, Mapping) else given.to_dict()
    number, account = instrument.get("phone_number"), instrument.get("account_number")
    phone = phone_doubt(number, instrument.get("country")) if isinstance(number, str) else None
    rounded = rounding_doubt(account) if isinstance(account, str) else None
    found = {"phone_number": phone, "account_number": rounded}
    return [f"instrument.{name} {doubt}" for name, doubt in found.items() if doubt]


def amount_doubt(request: params.Params) -> str | None:
    """What an amount that was given as text may mean otherwise; None for any other."""
    amount, currency = getattr(request, "amount", None), getattr(request, "currency", None)
    problem = amount_guesses.problem(amount, currency) if isinstance(amount, str) else None
    return problem and f"amount {problem}"


def _countries(request: Any, cls: type, prefix: str) -> Iterator[tuple[str, Any]]:
    """List a valid request's country codes by dotted name, in mappings too."""
    is_own = isinstance(request, params.Params)
    for name, rule in _WITH_COUNTRIES[cls]:
        value = getattr(request, name) if is_own else request.get(name)
        if rule is country:
            yield prefix + name, value
        elif isinstance(value, params.Params | Mapping):
            yield from _countries(value, rule.cls, f"{prefix}{name}.")


_WITH_COUNTRIES: Mapping[type, list[tuple[str, Any]]] = {
    cls: [(name, rule) for name, rule in rules.items() if rule is country or isinstance(rule, Nested)]
    for cls, rules in RULES.items()
}
"""The fields that are a country code, or may hold one: few of a request's, and each row of a batch asks."""


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
        elif isinstance(rule, Nested):
            _check_mapping(errors, rule.cls, value, f"{prefix}{name}.")
    if isinstance(request, params.CheckoutRestriction):
        problem = restriction_problem(request.country_code, request.phone)
        if problem:
            errors[prefix.rstrip(".")] = [problem]


def _check_mapping(errors: Errors, cls: type, given: Mapping[str, Any], prefix: str) -> None:
    for name, rule in RULES[cls].items():
        value = given.get(name)
        if isinstance(rule, Nested) and isinstance(value, Mapping):
            if problem := rule(value):
                errors[prefix + name] = [problem]
            _check_mapping(errors, rule.cls, value, f"{prefix}{name}.")
        elif value not in (None, "") and isinstance(rule, _CHECKED_IN_MAPPINGS):
            errors |= {prefix + name: [problem]} if (problem := rule(value)) else {}
