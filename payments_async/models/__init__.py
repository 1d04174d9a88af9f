"""What the service returns: frozen records under the interface's own names.

Records of payments, checkouts and lists are loaded with their first use, because a first payout needs none
of them. So other modules write `models.Checkout`, and do not import the class.
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
    from .checkouts import (
        Appearance,
        AppearanceColors,
        Checkout,
        CheckoutSession,
        Color,
        SessionRestriction,
    )
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

_CHECKOUTS = frozenset(
    {"Appearance", "AppearanceColors", "Checkout", "CheckoutSession", "Color", "SessionRestriction"}
)
_LISTS = frozenset({"Page", "Pagination", "Unread"})


def __getattr__(name: str) -> Any:
    """Lists, and records of payments and of their pages, loaded when first used: a payout needs none."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = ".checkouts" if name in _CHECKOUTS else ".lists" if name in _LISTS else ".payments"
    value = globals()[name] = getattr(import_module(home, __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
