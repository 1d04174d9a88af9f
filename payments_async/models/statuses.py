"""Words of the service, as open strings: these are the known ones, any other comes through as it is.

Which words exist beyond the interface's examples is assumed (gaps F, G, H, J, K); see `docs/interface.md`.
"""

from __future__ import annotations

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
