"""The records that the service returns, frozen, under the interface's own names."""

from __future__ import annotations

from ._record import Record
from ._response import Attempt, RateLimit, ResponseInfo, Verdict
from .checkouts import (
    Appearance,
    AppearanceColors,
    Checkout,
    CheckoutSession,
    Color,
    SessionRestriction,
)
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
from .payouts import Payout, PayoutInstrument
from .statuses import (
    FailureCategory,
    MethodHealth,
    NextActionType,
    PaymentAttemptStatus,
    PaymentIntentStatus,
    PayoutStatus,
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
