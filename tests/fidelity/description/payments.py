"""Payments, attempts, sessions and refunds (docs/interface.md, Resources and their fields)."""

from __future__ import annotations

from .notation import Schema, or_null, record
from .shared import GATEWAY, inside, word


def _lists(described: str) -> Schema:
    texts = {"type": "array", "items": {"type": "string"}}
    return or_null(
        {"type": "object", "description": described, "properties": {"allow": texts, "deny": texts}}
    )


_ACTION: dict[str, str | Schema] = {
    "message": "text",
    "instructions": "texts",
    "dial_code": "text",
    "digits": "integer",
    "is_strict": "boolean",
    "fields": "objects",
    "url": "text",
    "method": "text",
    "post_data": "object",
    "can_auto_redirect": "boolean",
    "content": "text",
    "image_url": "text",
    "title": "text",
    "provider": "text",
    "sdk_url": "text",
    "public_key": "text",
    "client_params": "object",
    "container_id": "text",
}

_ATTEMPT: dict[str, str | Schema] = {
    "id": "text",
    "method": "Method",
    "amount": "Amount",
    "correction_rate": "number",
    "gateway": GATEWAY,
    "failover": "Failover",
    "completed_at": "time",
    "failed_at": "time",
    "created_at": "time",
}

_INTENT: dict[str, str | Schema] = {
    "id": "text",
    "amount": "Amount",
    "customer": "Customer",
    "description": "text",
    "return_url": "text",
    "webhook_url": "text",
    "statement_descriptor": "text",
    "receipt_email": "text",
    "metadata": {**or_null({"type": "object", "maxProperties": 10}), "x-gap": "AC"},
    "completed_at": "time",
    "created_at": "time",
}

_COLOUR: Schema = {"type": "object", "properties": {"hex": {"type": "string"}, "rgb": {"type": "string"}}}

PAYMENTS: dict[str, Schema] = {
    "NextAction": record(_ACTION, "What the payer has to do next."),
    "ListedNextAction": record({"type": word("K", "none"), **_ACTION}, "The same, in the list."),
    "Failover": record(
        {"is_failover": "boolean", "decision": inside({}, "AA")},
        "Whether an attempt took the place of another.",
    ),
    "PaymentAttempt": record(
        {**_ATTEMPT, "exchange_rate": "number", "next_action": "NextAction", "failure": "AttemptFailure"},
        "One try at collecting a payment, everywhere but in the list.",
    ),
    "ListedPaymentAttempt": record(
        {
            **_ATTEMPT,
            "exchange_rate": "ExchangeRate",
            "next_action": "ListedNextAction",
            "failure": "Failure",
            "status": word("G", "processing"),
            "processing_at": "time",
            "action_required_at": "time",
            "expired_at": "time",
        },
        "One try at collecting a payment, in the list of intents.",
    ),
    "RefundsSummary": record(
        {
            "refunded_amount": "Amount",
            "pending_amount": "Amount",
            "refundable_amount": "Amount",
            "has_pending_refund": "boolean",
        },
        "The refunds of a payment in sum.",
    ),
    "Restriction": record(
        {
            "payment_methods": _lists("Method codes."),
            "payment_method_categories": _lists("Categories of methods."),
        },
        "Which methods can pay an intent.",
    ),
    "PaymentIntent": record(
        {
            **_INTENT,
            "refunds_summary": "RefundsSummary",
            "active_attempt": "PaymentAttempt",
            "expires_at": "time",
        },
        "A payment, as its creation and its checkout show it.",
    ),
    "ListedPaymentIntent": record(
        {
            **_INTENT,
            "reference": "text",
            "status": word("F", "pending"),
            "active_attempt": "ListedPaymentAttempt",
            "restriction": "Restriction",
            "expired_at": "time",
        },
        "A payment, as the list shows it.",
    ),
    "Appearance": record(
        {
            "template": "text",
            "color": or_null({"type": "object", "properties": {"primary": _COLOUR, "contrast": _COLOUR}}),
            "font": inside({"type": "object"}, "AB"),
            "border_style": "text",
            "display_platform_badge": "boolean",
            "brand": "text",
            "icon_url": "text",
            "lang": "text",
        },
        "How the hosted page looks.",
    ),
    "SessionRestriction": record(
        {"country": "Country", "phone": "text"}, "The only country or phone number that a session admits."
    ),
    "CheckoutSession": record(
        {
            "id": "text",
            "url": "text",
            "restriction": "SessionRestriction",
            "appearance": "Appearance",
            "expires_at": "time",
            "created_at": "time",
        },
        "The hosted page of a payment, at `url`.",
    ),
    "Checkout": record(
        {"checkout": "CheckoutSession", "payment": "PaymentIntent"}, "A session and its payment."
    ),
    "RefundAvailability": record(
        {
            "is_refundable": "boolean",
            "refundable_amount": "Amount",
            "refunded_amount": "Amount",
            "pending_amount": "Amount",
            "has_pending_refund": "boolean",
            "available_types": {
                "type": "array",
                "items": {"type": "string", "enum": ["full", "partial"]},
                "uniqueItems": True,
            },
            "execution_method": {"enum": ["gateway", "payout", None]},
            "unavailable_reason": "text?",
        },
        "What can still be given back of a payment.",
    )
    | {
        "if": {"properties": {"is_refundable": {"const": False}}, "required": ["is_refundable"]},
        "then": {
            "properties": {"unavailable_reason": {"type": "string"}, "execution_method": {"type": "null"}}
        },
        "else": {"properties": {"unavailable_reason": {"type": "null"}}},
    },
    "RequeryStatuses": record(
        {"intent_status": "text", "attempt_status": "text"}, "Before or after a requery."
    )
    | {"x-gap": "T"},
    "Requery": record(
        {
            "id": "text",
            "status": "text",
            "payment_intent_id": "text",
            "payment_attempt_id": "text",
            "before": "RequeryStatuses",
            "after": "RequeryStatuses",
            "attempts": or_null(
                {
                    "type": "object",
                    "properties": {"count": {"type": "integer"}, "requeried": {"type": "integer"}},
                }
            ),
            "completed_at": "time",
            "created_at": "time",
        },
        "What asking the gateway about a payment brought.",
    )
    | {"x-gap": "T"},
}
