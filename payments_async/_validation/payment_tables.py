"""Tables of rules for what collects payments (Endpoints). `tables` loads them when they are wanted."""

from __future__ import annotations

from collections.abc import Mapping

from .. import _assumptions
from ..params import payments
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
    json_object,
    metadata,
    minutes,
    statement_descriptor,
    timestamp,
)

_phone = Nested(payments.PhoneInput)

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
    payments.PhoneInput: {"number": any_text, "country": country},
    payments.AttemptInput: {
        "method_code": any_text,
        "country": country,
        "phone": _phone,
        "currency": currency,
    },
    payments.CheckoutRestriction: {"country_code": country, "phone": _phone},
    payments.AppearanceInput: {
        "color": color,
        "display_platform_badge": boolean,
        "brand": any_text,
        "icon_url": any_text,
    },
    payments.CheckoutRequest: {
        **_PAYMENT_FIELDS,
        "expires_in_minutes": minutes,
        "restriction": Nested(payments.CheckoutRestriction),
        "appearance": Nested(payments.AppearanceInput),
    },
    payments.PaymentIntentRequest: {
        **_PAYMENT_FIELDS,
        "attempt": Nested(payments.AttemptInput),
    },
}

REQUIRED: Mapping[type, frozenset[str]] = {
    payments.CheckoutRequest: _assumptions.REQUIRED_OF_PAYMENTS,
    payments.PaymentIntentRequest: _assumptions.REQUIRED_OF_PAYMENTS,
    payments.AttemptInput: frozenset({"method_code"}),
    payments.PhoneInput: frozenset({"number"}),
}
