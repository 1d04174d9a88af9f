"""Known statuses, types and codes of the service, and the final status of a payout.

They are open strings: any other is passed on unchanged. Those beyond the interface's examples are assumed
(gaps F, G, H, J, K); see `docs/interface.md`. A payout's final status depends on its timestamps as well
(`payouts.ends_shown`).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from .. import _assumptions


class PaymentIntentStatus:
    """`PaymentIntent.status` (States and transitions)."""

    PENDING: Final = "pending"
    COMPLETED: Final = "completed"
    FAILED: Final = "failed"
    EXPIRED: Final = "expired"
    REFUNDED: Final = "refunded"
    PARTIALLY_REFUNDED: Final = "partially_refunded"

    FINAL: Final = _assumptions.FINAL_INTENT_STATUSES


class PaymentAttemptStatus:
    """`PaymentAttempt.status` (States and transitions)."""

    PROCESSING: Final = "processing"
    ACTION_REQUIRED: Final = "action_required"
    COMPLETED: Final = "completed"
    FAILED: Final = "failed"
    CANCELLED: Final = "cancelled"
    EXPIRED: Final = "expired"

    FINAL: Final = _assumptions.FINAL_ATTEMPT_STATUSES


class PayoutStatus:
    """`Payout.status` (States and transitions). `Payout.is_final` counts the timestamps as well."""

    PENDING: Final = "pending"
    PROCESSING: Final = "processing"
    COMPLETED: Final = "completed"
    FAILED: Final = "failed"
    CANCELLED: Final = "cancelled"
    REVERSED: Final = "reversed"

    FINAL: Final = _assumptions.FINAL_PAYOUT_STATUSES


def words_of(names: type) -> frozenset[str]:
    """The statuses that a class of this module names."""
    return frozenset(word for word in vars(names).values() if isinstance(word, str)) - {
        names.__module__,
        names.__doc__,
    }


class PayoutEnd(StrEnum):
    """The final status of a payout, if its status and its timestamps agree."""

    OPEN = "open"
    ARRIVED = "arrived"
    FAILED = "failed"
    UNCLEAR = "unclear"
    """The status and the timestamps contradict each other: no conclusion is drawn."""

    @property
    def is_final(self) -> bool:
        """True for an end."""
        return self in (PayoutEnd.ARRIVED, PayoutEnd.FAILED)


STATUS_ENDS: Final[Mapping[str, PayoutEnd]] = {
    PayoutStatus.PENDING: PayoutEnd.OPEN,
    PayoutStatus.PROCESSING: PayoutEnd.OPEN,
    **dict.fromkeys(PayoutStatus.FINAL, PayoutEnd.FAILED),
    PayoutStatus.COMPLETED: PayoutEnd.ARRIVED,
}
"""{known status: final status}. An unknown status says nothing (gap H)."""


class MethodHealth:
    """`MethodStatus.status` (Resources, Method status)."""

    UNAVAILABLE: Final = "unavailable"
    AVAILABLE: Final = "available"
    OPERATIONAL: Final = "operational"
    DEGRADED: Final = "degraded"
    DOWN: Final = "down"

    USABLE: Final = _assumptions.USABLE_METHOD_STATUSES


class NextActionType:
    """`NextAction.type` (Resources, Next action)."""

    NONE: Final = "none"
    REDIRECT_TO_URL: Final = "redirect_to_url"
    EMBED_IFRAME: Final = "embed_iframe"
    COLLECT_OTP: Final = "collect_otp"
    APPROVE_ON_PHONE: Final = "approve_on_phone"
    SCAN_QR_CODE: Final = "scan_qr_code"
    DISPLAY_PAYMENT_INSTRUCTIONS: Final = "display_payment_instructions"
    COMPLETE_WITH_SDK: Final = "complete_with_sdk"


class FailureCategory:
    """`FailureCode.category` (Resources, Failure; gap AD)."""

    CUSTOMER_ERROR: Final = "CUSTOMER_ERROR"
    GATEWAY_ERROR: Final = "GATEWAY_ERROR"
    TELCO_ERROR: Final = "TELCO_ERROR"
    MERCHANT_CONFIG_ERROR: Final = "MERCHANT_CONFIG_ERROR"
    PLATFORM_ERROR: Final = "PLATFORM_ERROR"
    SECURITY_ERROR: Final = "SECURITY_ERROR"
    VALIDATION_ERROR: Final = "VALIDATION_ERROR"
    RECIPIENT_ERROR: Final = "RECIPIENT_ERROR"
    INSUFFICIENT_FUNDS: Final = "INSUFFICIENT_FUNDS"
