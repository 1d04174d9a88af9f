"""Tables of rules for what collects payments (Endpoints). `_validation` loads them when they are wanted."""

from __future__ import annotations

from collections.abc import Mapping

from . import _gaps, _payment_params
from ._rules import (
    Nested,
    Rule,
    Text,
    amount,
    boolean,
    color,
    json_object,
    metadata,
    minutes,
    statement_descriptor,
    timestamp,
)
from ._validation import any_text, country, currency, customer

_phone = Nested(_payment_params.PhoneInput)

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
    _payment_params.PhoneInput: {"number": any_text, "country": country},
    _payment_params.AttemptInput: {
        "method_code": any_text,
        "country": country,
        "phone": _phone,
        "currency": currency,
    },
    _payment_params.CheckoutRestriction: {"country_code": country, "phone": _phone},
    _payment_params.AppearanceInput: {
        "color": color,
        "display_platform_badge": boolean,
        "brand": any_text,
        "icon_url": any_text,
    },
    _payment_params.CheckoutRequest: {
        **_PAYMENT_FIELDS,
        "expires_in_minutes": minutes,
        "restriction": Nested(_payment_params.CheckoutRestriction),
        "appearance": Nested(_payment_params.AppearanceInput),
    },
    _payment_params.PaymentIntentRequest: {
        **_PAYMENT_FIELDS,
        "attempt": Nested(_payment_params.AttemptInput),
    },
}

REQUIRED: Mapping[type, frozenset[str]] = {
    _payment_params.CheckoutRequest: _gaps.REQUIRED_OF_PAYMENTS,
    _payment_params.PaymentIntentRequest: _gaps.REQUIRED_OF_PAYMENTS,
    _payment_params.AttemptInput: frozenset({"method_code"}),
    _payment_params.PhoneInput: frozenset({"number"}),
}
