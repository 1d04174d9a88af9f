"""The records that the service returns, frozen, under the interface's own names.

Those of payments and of lists are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._record import Record
from ._response import Attempt, RateLimit, ResponseInfo, Verdict
from .common import (
    Amount,
    Country,
    Customer,
    ExchangeRate,
    Failure,
    FailureCode,
    Gateway,
    GatewayTransaction,
    Inspection,
    Method,
    MethodStatus,
)
from .payouts import Payout, PayoutInstrument
from .statuses import (
    FailureCategory,
    MethodHealth,
    NextActionType,
    PaymentAttemptStatus,
    PaymentIntentStatus,
    PayoutStatus,
)

if TYPE_CHECKING:
    from .checkouts import Appearance as Appearance
    from .checkouts import AppearanceColors as AppearanceColors
    from .checkouts import Checkout as Checkout
    from .checkouts import CheckoutSession as CheckoutSession
    from .checkouts import Color as Color
    from .checkouts import SessionRestriction as SessionRestriction
    from .lists import Page as Page
    from .lists import Pagination as Pagination
    from .lists import Unread as Unread
    from .payments import Failover as Failover
    from .payments import MethodFilter as MethodFilter
    from .payments import NextAction as NextAction
    from .payments import PaymentAttempt as PaymentAttempt
    from .payments import PaymentIntent as PaymentIntent
    from .payments import RefundAvailability as RefundAvailability
    from .payments import RefundsSummary as RefundsSummary
    from .payments import Requery as Requery
    from .payments import RequeryAttempts as RequeryAttempts
    from .payments import RequeryState as RequeryState
    from .payments import Restriction as Restriction

_HOMES = {
    "checkouts": (
        "Appearance",
        "AppearanceColors",
        "Checkout",
        "CheckoutSession",
        "Color",
        "SessionRestriction",
    ),
    "lists": ("Page", "Pagination", "Unread"),
    "payments": (
        "Failover",
        "MethodFilter",
        "NextAction",
        "PaymentAttempt",
        "PaymentIntent",
        "RefundAvailability",
        "RefundsSummary",
        "Requery",
        "RequeryAttempts",
        "RequeryState",
        "Restriction",
    ),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Amount",
    "Appearance",
    "AppearanceColors",
    "Attempt",
    "Checkout",
    "CheckoutSession",
    "Color",
    "Country",
    "Customer",
    "ExchangeRate",
    "Failover",
    "Failure",
    "FailureCategory",
    "FailureCode",
    "Gateway",
    "GatewayTransaction",
    "Inspection",
    "Method",
    "MethodFilter",
    "MethodHealth",
    "MethodStatus",
    "NextAction",
    "NextActionType",
    "Page",
    "Pagination",
    "PaymentAttempt",
    "PaymentAttemptStatus",
    "PaymentIntent",
    "PaymentIntentStatus",
    "Payout",
    "PayoutInstrument",
    "PayoutStatus",
    "RateLimit",
    "Record",
    "RefundAvailability",
    "RefundsSummary",
    "Requery",
    "RequeryAttempts",
    "RequeryState",
    "ResponseInfo",
    "Restriction",
    "SessionRestriction",
    "Unread",
    "Verdict",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{_HOME[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
