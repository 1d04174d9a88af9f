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
    from .checkouts import Appearance, AppearanceColors, Checkout, CheckoutSession, Color, SessionRestriction
    from .lists import Page, Pagination, Unread
    from .payments import (
        Failover,
        MethodFilter,
        NextAction,
        PaymentAttempt,
        PaymentIntent,
        RefundAvailability,
        RefundsSummary,
        Requery,
        RequeryAttempts,
        RequeryState,
        Restriction,
    )

_HOMES = {
    **dict.fromkeys(("Page", "Pagination", "Unread"), "lists"),
    **dict.fromkeys(("Appearance", "AppearanceColors", "Checkout", "CheckoutSession", "Color"), "checkouts"),
    "SessionRestriction": "checkouts",
}
"""The modules of what is loaded when it is first used, but for those of `payments`."""

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
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = import_module(f".{_HOMES.get(name, 'payments')}", __name__)
    value = globals()[name] = getattr(home, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
