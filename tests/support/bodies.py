"""A full example of every record in every form, each field with a value of its own: none can be swapped."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec

from payments_async import models

Json = dict[str, Any]

RECORDS = [
    cls
    for name in models.__all__
    if isinstance(cls := getattr(models, name), type) and issubclass(cls, models.Record)
    if cls is not models.Record
]

_ENCODER = msgspec.json.Encoder(decimal_format="number")

PHONE = "+22990112233"
EMAIL = "payer@example.com"
ACCOUNT = "BJ6600112233445566"


def encoded(value: Any) -> bytes:
    """A JSON text in which a Decimal is a number with all its digits."""
    return _ENCODER.encode(value)


def amount(value: str = "10.10", currency: str = "XOF") -> Json:
    return {
        "value": Decimal(value),
        "formatted": f"{currency} {value}",
        "short": f"{currency} {value.partition('.')[0]}",
        "currency": currency,
    }


METHOD: Json = {
    "value": "mtn_bj",
    "label": "MTN Benin",
    "description": "Mobile money of MTN",
    "icon_url": "https://icons.test/mtn.svg",
    "category": "mobile_money",
    "requires_phone": True,
}
RATE: Json = {
    "value": "655.95700000",
    "from_currency": "EUR",
    "to_currency": "XOF",
    "expression": "1 EUR = 655.957 XOF",
}
COUNTRY: Json = {"code": "BJ", "name": "Benin", "flag": "🇧🇯"}
CUSTOMER: Json = {
    "id": "cus_1",
    "first_name": "Ada",
    "last_name": "Agbo",
    "email": EMAIL,
    "avatar_url": "https://avatars.test/ada.png",
}
GATEWAY: Json = {
    "transaction": {"id": "gt_1", "reference": "gt-ref-1", "external_id": "ext-1", "status": "SETTLED"}
}
FAILURE: Json = {
    "code": {"value": "CUSTOMER_DECLINED", "message": "Declined by the customer."},
    "message": "The payer said no.",
}
FAILURE_WITH_CATEGORY: Json = {
    "code": {"value": "INSUFFICIENT_FUNDS", "category": "CUSTOMER_ERROR", "message": "Too little money."},
    "message": "The balance is too low.",
}
NEXT_ACTION: Json = {
    "message": "Approve on your phone.",
    "instructions": ["Dial the code.", "Enter your PIN."],
    "dial_code": "*133#",
    "digits": 6,
    "is_strict": True,
    "fields": [{"name": "otp", "rules": {"length": 6}}],
    "url": "https://actions.test/go",
    "method": "POST",
    "post_data": {"token": "otp-token", "weight": Decimal("1.5")},
    "can_auto_redirect": False,
    "content": "qr-content",
    "image_url": "https://actions.test/qr.png",
    "title": "Approve",
    "provider": "card_sdk",
    "sdk_url": "https://actions.test/sdk.js",
    "public_key": "pk_1",
    "client_params": {"locale": "fr", "deep": [1, {"x": None}]},
    "container_id": "box-1",
}
FAILOVER: Json = {"is_failover": True, "decision": {"reason": "GATEWAY_DOWN", "tried": [1, 2]}}

ATTEMPT: Json = {
    "id": "pa_1",
    "method": METHOD,
    "amount": amount("10.10"),
    "exchange_rate": Decimal("655.957"),
    "correction_rate": Decimal("1.02"),
    "gateway": GATEWAY,
    "next_action": NEXT_ACTION,
    "failure": FAILURE,
    "failover": FAILOVER,
    "completed_at": "2026-01-02T03:04:05Z",
    "failed_at": "2026-01-02T03:04:06Z",
    "created_at": "2026-01-02T03:04:00.123456Z",
}
ATTEMPT_LIST: Json = {
    **ATTEMPT,
    "exchange_rate": RATE,
    "status": "processing",
    "next_action": {"type": "none", **NEXT_ACTION},
    "failure": FAILURE_WITH_CATEGORY,
    "processing_at": "2026-01-02T03:04:01Z",
    "action_required_at": "2026-01-02T03:04:02Z",
    "expired_at": "2026-01-02T03:04:07Z",
}

_INTENT: Json = {
    "id": "pi_1",
    "amount": amount("10.10"),
    "customer": CUSTOMER,
    "description": "Two books",
    "return_url": "https://shop.test/back",
    "webhook_url": "https://shop.test/hook",
    "statement_descriptor": "SHOP 42",
    "receipt_email": "receipts@example.com",
    "metadata": {"order": "7", "nested": {"a": [1, Decimal("2.50")]}},
    "completed_at": "2026-01-02T03:05:00Z",
    "created_at": "2026-01-02T03:03:00Z",
}
INTENT: Json = {
    **_INTENT,
    "refunds_summary": {
        "refunded_amount": amount("1.25"),
        "pending_amount": amount("2.50"),
        "refundable_amount": amount("6.35"),
        "has_pending_refund": True,
    },
    "active_attempt": ATTEMPT,
    "expires_at": "2026-01-02T04:03:00Z",
}
INTENT_LIST: Json = {
    **_INTENT,
    "reference": "PAY-1",
    "status": "pending",
    "active_attempt": ATTEMPT_LIST,
    "restriction": {
        "payment_methods": {"allow": ["mtn_bj", "moov_bj"], "deny": ["card"]},
        "payment_method_categories": {"allow": ["mobile_money"], "deny": ["crypto", "bank"]},
    },
    "expired_at": "2026-01-02T04:03:01Z",
}
CHECKOUT: Json = {
    "id": "cs_1",
    "url": "https://pay.test/checkout/cs_1",
    "restriction": {"country": COUNTRY, "phone": PHONE},
    "appearance": {
        "template": "wide",
        "color": {
            "primary": {"hex": "#0a7d4f", "rgb": "10, 125, 79"},
            "contrast": {"hex": "#ffffff", "rgb": "255, 255, 255"},
        },
        "font": {"value": "inter", "url": "https://fonts.test/inter"},
        "border_style": "rounded",
        "display_platform_badge": False,
        "brand": "Books & Co",
        "icon_url": "https://shop.test/icon.png",
        "lang": "fr",
    },
    "expires_at": "2026-01-02T04:03:00Z",
    "created_at": "2026-01-02T03:03:00Z",
}
INSTRUMENT: Json = {
    "id": "ins_1",
    "type": "phone",
    "phone_number": PHONE,
    "account_name": "Ada Agbo",
    "account_number": ACCOUNT,
    "bank_code": "BJ001",
    "swift_bic": "ECOCBJBJ",
    "country": COUNTRY,
    "address": "0xabc0000000001",
    "network": "tron",
    "memo_tag": "memo-9",
}
PAYOUT: Json = {
    "id": "po_1",
    "amount": amount("10.10"),
    "settlement_amount": amount("0.02", "EUR"),
    "exchange_rate": RATE,
    "method": METHOD,
    "status": "pending",
    "reference": "inv-7",
    "description": "Wages",
    "webhook_url": "https://shop.test/payouts",
    "customer": CUSTOMER,
    "instrument": INSTRUMENT,
    "gateway": GATEWAY,
    "fee_amount": amount("0.30"),
    "failure": FAILURE_WITH_CATEGORY,
    "metadata": {"row": "12", "n": 5},
    "initiated_at": "2026-02-03T04:05:06Z",
    "completed_at": "2026-02-03T04:05:07Z",
    "failed_at": "2026-02-03T04:05:08Z",
    "created_at": "2026-02-03T04:05:05Z",
}
REFUND_AVAILABILITY: Json = {
    "is_refundable": True,
    "refundable_amount": amount("6.35"),
    "refunded_amount": amount("1.25"),
    "pending_amount": amount("2.50"),
    "has_pending_refund": True,
    "available_types": ["full", "partial"],
    "execution_method": "gateway",
    "unavailable_reason": "none: this example fills every field",
}
PAGINATION: Json = {
    "count": 1,
    "path": "https://api.test/v1/payouts",
    "per_page": 25,
    "next_cursor": "bmV4dA",
    "next_page_url": "https://api.test/v1/payouts?cursor=bmV4dA",
    "prev_cursor": "cHJldg",
    "prev_page_url": "https://api.test/v1/payouts?cursor=cHJldg",
    "has_more_pages": True,
    "has_pages": False,
}
METHOD_STATUS: Json = {"method": "mtn_bj", "country": "BJ", "status": "unavailable"}
METHOD_STATUS_META: Json = {
    "environment": "live",
    "window_minutes": 15,
    "generated_at": "2026-01-02T03:04:05Z",
    "ttl_seconds": 60,
}
REQUERY: Json = {
    "id": "rq_1",
    "status": "completed",
    "payment_intent_id": "pi_1",
    "payment_attempt_id": "pa_1",
    "before": {"intent_status": "pending", "attempt_status": "processing"},
    "after": {"intent_status": "completed", "attempt_status": "completed"},
    "attempts": {"count": 3, "requeried": 1},
    "completed_at": "2026-01-02T03:04:06Z",
    "created_at": "2026-01-02T03:04:05Z",
}
INSPECTION: Json = {
    "gateway": "gateway_one",
    "gateway_transaction_id": "gt_1",
    "retrieved_at": "2026-01-02T03:04:05Z",
    "payload": {"state": "SETTLED", "amounts": [Decimal("10.10")]},
}
