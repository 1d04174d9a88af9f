"""What callers send: request objects under the interface's names (Endpoints).

They are plain frozen values and check nothing by themselves: a request is checked whole, just before it
would be sent, so that all its faults are reported together (`_validation`). None means "leave out".
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._base import Money, Pairs, Params, decimal_if_readable
from .payouts import CustomerInput, Instrument, PayoutRequest
from .prepared import PreparedRequest

if TYPE_CHECKING:
    from .payments import AppearanceInput as AppearanceInput
    from .payments import AttemptInput as AttemptInput
    from .payments import CheckoutRequest as CheckoutRequest
    from .payments import CheckoutRestriction as CheckoutRestriction
    from .payments import PaymentFields as PaymentFields
    from .payments import PaymentIntentRequest as PaymentIntentRequest
    from .payments import PhoneInput as PhoneInput

__all__ = [
    "AppearanceInput",
    "AttemptInput",
    "CheckoutRequest",
    "CheckoutRestriction",
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
    "decimal_if_readable",
]


def __getattr__(name: str) -> Any:
    """Requests of payments, loaded when they are first used: who pays out needs none."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(".payments", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
