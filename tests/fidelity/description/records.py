"""What the service gives back (docs/interface.md, Resources and their fields)."""

from __future__ import annotations

from .notation import Schema, or_null, record
from .payments import PAYMENTS
from .shared import GATEWAY, word

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
        {"value": "text", "category": word("AD", "CUSTOMER_ERROR"), "message": "text"}, "Why, as a code."
    ),
    "AttemptFailureCode": record({"value": "text", "message": "text"}, "Why, as a code without a category."),
    "Failure": record(
        {"code": "FailureCode", "message": "text"},
        "Why a payout, or an attempt of the list, did not succeed.",
    ),
    "AttemptFailure": record(
        {"code": "AttemptFailureCode", "message": "text"}, "Why an attempt outside the list did not succeed."
    ),
    "Instrument": record(
        {
            "id": "text",
            "type": word("L", "phone"),
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
            "status": word("H", "pending"),
            "reference": "text",
            "description": "text",
            "webhook_url": "text",
            "customer": "Customer",
            "instrument": "Instrument",
            "gateway": GATEWAY,
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
        {"method": "text", "country": "text", "status": word("J", "unavailable")},
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
    **PAYMENTS,
}
