"""Request objects that callers send, under the interface's names (Endpoints).

They are plain frozen values that check nothing: a request is checked whole, just before it would be sent, so
that all its faults are reported together (`_validation`). None means "leave out".
"""

from __future__ import annotations

from .prepared import PreparedRequest
from .requests import (
    AppearanceFields,
    AppearanceInput,
    AttemptInput,
    CheckoutRequest,
    CheckoutRestriction,
    CustomerFields,
    CustomerInput,
    Instrument,
    Money,
    Pairs,
    Params,
    PaymentFields,
    PaymentIntentRequest,
    PayoutRequest,
    PhoneInput,
    RestrictionFields,
    decimal_if_readable,
)

__all__ = [
    "AppearanceFields",
    "AppearanceInput",
    "AttemptInput",
    "CheckoutRequest",
    "CheckoutRestriction",
    "CustomerFields",
    "CustomerInput",
    "Instrument",
    "Money",
    "Pairs",
    "Params",
    "PaymentFields",
    "PaymentIntentRequest",
    "PayoutRequest",
    "PhoneInput",
    "PreparedRequest",
    "RestrictionFields",
    "decimal_if_readable",
]
