"""What callers send (docs/interface.md, Endpoints and Field limits)."""

from __future__ import annotations

from .notation import Schema, body, limited, optional, reference

_TEXT: Schema = {"type": "string"}
_COUNTRY: Schema = {"type": "string", "pattern": "^[A-Za-z]{2}$", "minLength": 2, "maxLength": 2}
_FILLED: Schema = {"type": "string", "pattern": r"\S"}
_URL = limited(2048)
_LABELS = ("email", "first_name", "last_name", "address", "city", "state", "zip")

_AMOUNT: Schema = {"type": "number", "minimum": 1, "description": "In major units."}
_METADATA: Schema = {"type": "object", "maxProperties": 10}
_OPTIONS: Schema = {
    "type": "object",
    "description": "A section per gateway that declares options; anything else is refused.",
    "x-gap": "not shown",
}

_SHARED: dict[str, Schema] = {
    "amount": _AMOUNT,
    "currency": {
        "type": "string",
        "pattern": "^[A-Z]{3}$",
        "minLength": 3,
        "maxLength": 3,
        "description": "ISO 4217.",
    },
    "description": optional(limited(500)),
    "customer": optional(reference("CustomerInput")),
    "return_url": optional(_URL, "Where the payer lands after the hosted page."),
    "webhook_url": optional(_URL, "Called without a signature."),
    "statement_descriptor": optional({**limited(22), "pattern": r"^([^\W_]|[\s.,-])*$"}),
    "receipt_email": optional(limited(255)),
    "entity_id": optional(limited(191), "The merchant's name for what is paid for."),
    "entity_created_at": optional({"type": "string", "format": "date-time"}, "Not in the future."),
    "gateway_options": optional(_OPTIONS),
    "metadata": optional(_METADATA, "Comes back as it was sent."),
}

_INSTRUMENT_TEXTS = (
    "phone_number",
    "account_name",
    "account_number",
    "bank_code",
    "swift_bic",
    "address",
    "network",
    "memo_tag",
)


def _instrument(kind: str, *required: str) -> Schema:
    filled = {name: {"type": "string", "minLength": 1} for name in required}
    return {
        "properties": {**filled, "type": {"const": kind}},
        "required": ["type", *required],
    }


REQUESTS: dict[str, Schema] = {
    "CustomerInput": body(
        {**{name: optional(_TEXT) for name in _LABELS}, "country": optional(_COUNTRY)}, (), "A customer."
    ),
    "PhoneInput": body(
        {"number": _FILLED, "country": optional(_COUNTRY)},
        ("number",),
        "A phone number and its country.",
        "N",
    ),
    "AttemptInput": body(
        {
            "method_code": _FILLED,
            "country": optional(_COUNTRY),
            "phone": optional(reference("PhoneInput")),
            "currency": optional({"type": "string", "minLength": 3, "maxLength": 3}),
        },
        ("method_code",),
        "A first attempt, started at once.",
        "M",
    ),
    "CheckoutRestriction": {
        **body(
            {
                "country_code": optional(_COUNTRY),
                "phone": optional({"x-gap": "N", **reference("PhoneInput")}),
            },
            (),
            "Locks a session to one country or to one phone number, never to both.",
        ),
        "not": {
            "properties": {"country_code": {"type": "string"}, "phone": {"type": "object"}},
            "required": ["country_code", "phone"],
        },
    },
    "AppearanceInput": body(
        {
            "color": optional(
                {
                    "type": "string",
                    "pattern": "^#?([0-9A-Fa-f]{3}|[0-9A-Fa-f]{6}|[0-9A-Fa-f]{8})$",
                    "maxLength": 9,
                }
            ),
            "display_platform_badge": optional({"type": "boolean"}),
            "brand": optional(_TEXT),
            "icon_url": optional(_TEXT),
        },
        (),
        "Parts of the project's look, replaced for one session.",
    ),
    "InstrumentInput": {
        **body(
            {
                "type": {"type": "string", "x-gap": "L"},
                **{name: optional(_TEXT) for name in _INSTRUMENT_TEXTS},
                "country": optional(_COUNTRY),
            },
            (),
            "Where a payout goes; its type decides what has to be there.",
        ),
        "oneOf": [
            _instrument("phone", "phone_number", "country"),
            _instrument("bank_account", "account_name", "account_number", "bank_code", "country"),
            _instrument("crypto_address", "address", "network"),
        ],
        "x-gap": "L",
    },
    "CheckoutRequest": body(
        {
            **_SHARED,
            "expires_in_minutes": optional({"type": "integer", "minimum": 30, "maximum": 1440}),
            "restriction": optional(reference("CheckoutRestriction")),
            "appearance": optional(reference("AppearanceInput")),
        },
        ("amount", "currency"),
        "A checkout session and its payment.",
    ),
    "PaymentIntentRequest": body(
        {**_SHARED, "attempt": optional({"x-gap": "M", **reference("AttemptInput")})},
        ("amount", "currency"),
        "A payment to collect through the API.",
    ),
    "PayoutRequest": body(
        {
            "amount": _AMOUNT,
            "currency": {"type": "string", "minLength": 3, "maxLength": 3},
            "method": {**_FILLED, "description": "A payout method code from the dashboard."},
            "description": optional(limited(500)),
            "instrument": reference("InstrumentInput"),
            "customer": optional(reference("CustomerInput")),
            "reference": optional(limited(191), "Unique within the project: a second use is a 409."),
            "webhook_url": optional(_URL, "Called on creation, completion and failure, without a signature."),
            "metadata": optional(_METADATA, "Comes back as it was sent."),
            "gateway_options": optional(_OPTIONS),
        },
        ("amount", "currency", "method", "instrument"),
        "Money to send.",
    ),
}
