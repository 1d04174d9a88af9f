"""What the service gives back (docs/interface.md, Resources and their fields)."""

from __future__ import annotations

from .notation import Schema, or_null, record, reference

_GATEWAY: Schema = {
    **or_null({"type": "object", "properties": {"transaction": reference("GatewayTransaction")}}),
    "x-gap": "AC",
}


def _open(schema: Schema, gap: str) -> Schema:
    """A field whose inside the interface does not show."""
    return {**or_null(schema), "x-gap": gap}


def _status(gap: str, known: str) -> Schema:
    """A word out of an open set, of which one is known."""
    return {"type": ["string", "null"], "examples": [known], "x-gap": gap}


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
    "gateway": _GATEWAY,
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

RECORDS: dict[str, Schema] = {
    "Amount": record(
        {"value": "number?", "formatted": "text?", "short": "text?", "currency": "text?"},
        "Money in major units: 50 is 50.00.",
    ),
    "Method": record(
        {
            "value": "text",
            "label": "text",
            "description": "text",
            "icon_url": "text",
            "category": "text",
            "requires_phone": "boolean",
        },
        "A way to pay or to be paid; `value` is its code.",
    ),
    "ExchangeRate": record(
        {
            "value": {"type": ["string", "null"], "pattern": r"^[0-9]+\.[0-9]{8}$", "x-gap": "AC"},
            "from_currency": "text",
            "to_currency": "text",
            "expression": "text",
        },
        "A rate in its object form, with eight digits after the point.",
    ),
    "Country": record(
        {"code": "text", "name": "text", "flag": "text"}, "ISO 3166-1 alpha-2 and what to show."
    ),
    "Customer": record(
        {"id": "text", "first_name": "text", "last_name": "text", "email": "text", "avatar_url": "text"},
        "A customer as the service knows it.",
    ),
    "GatewayTransaction": record(
        {"id": "text", "reference": "text", "external_id": "text", "status": "text"},
        "The gateway's side of an attempt or a payout.",
    ),
    "FailureCode": record(
        {"value": "text", "category": _status("AD", "CUSTOMER_ERROR"), "message": "text"}, "Why, as a code."
    ),
    "AttemptFailureCode": record({"value": "text", "message": "text"}, "Why, as a code without a category."),
    "Failure": record(
        {"code": "FailureCode", "message": "text"},
        "Why a payout, or an attempt of the list, did not succeed.",
    ),
    "AttemptFailure": record(
        {"code": "AttemptFailureCode", "message": "text"}, "Why an attempt outside the list did not succeed."
    ),
    "NextAction": record(_ACTION, "What the payer has to do next."),
    "ListedNextAction": record({"type": _status("K", "none"), **_ACTION}, "The same, in the list."),
    "Failover": record(
        {"is_failover": "boolean", "decision": _open({}, "AA")},
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
            "status": _status("G", "processing"),
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
            "status": _status("F", "pending"),
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
            "font": _open({"type": "object"}, "AB"),
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
    "Instrument": record(
        {
            "id": "text",
            "type": _status("L", "phone"),
            "phone_number": "text",
            "account_name": "text",
            "account_number": "text",
            "bank_code": "text",
            "swift_bic": "text",
            "country": "Country",
            "address": "text",
            "network": "text",
            "memo_tag": "text",
        },
        "Where a payout goes.",
    ),
    "Payout": record(
        {
            "id": "text",
            "amount": "Amount",
            "settlement_amount": "Amount",
            "exchange_rate": "ExchangeRate",
            "method": "Method",
            "status": _status("H", "pending"),
            "reference": "text",
            "description": "text",
            "webhook_url": "text",
            "customer": "Customer",
            "instrument": "Instrument",
            "gateway": _GATEWAY,
            "fee_amount": "Amount",
            "failure": "Failure",
            "metadata": {**or_null({"type": "object", "maxProperties": 10}), "x-gap": "AC"},
            "initiated_at": "time",
            "completed_at": "time",
            "failed_at": "time",
            "created_at": "time",
        },
        "Money sent to an instrument.",
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
    "Pagination": record(
        {
            "count": "integer",
            "path": "text",
            "per_page": "integer",
            "next_cursor": "text",
            "next_page_url": "text",
            "prev_cursor": "text",
            "prev_page_url": "text",
            "has_more_pages": "boolean",
            "has_pages": "boolean",
        },
        "Where a page stands in its list.",
    ),
    "MethodStatus": record(
        {"method": "text", "country": "text", "status": _status("J", "unavailable")},
        "How a payment method has been doing in a country.",
    ),
    "MethodStatusMeta": record(
        {
            "environment": "text",
            "window_minutes": "integer",
            "generated_at": "time",
            "ttl_seconds": "integer",
        },
        "What a method status rests on.",
    ),
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
    "Inspection": record(
        {"gateway": "text", "gateway_transaction_id": "text", "retrieved_at": "time", "payload": "any"},
        "An attempt or a payout as its gateway sees it.",
    )
    | {"x-gap": "U"},
    "Message": {
        "type": "object",
        "description": "Why a request was refused.",
        "properties": {"message": {"type": "string"}},
        "required": ["message"],
    },
    "Invalid": {
        "type": "object",
        "description": "What is wrong with a request: a text that is always the same, and texts by field.",
        "properties": {"message": {"type": "string"}, "errors": {"type": "object", "x-gap": "P"}},
        "required": ["message", "errors"],
    },
}
