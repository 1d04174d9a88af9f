"""The shapes that every record shares, and the payout's (`docs/interface.md`, Resources and their fields)."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache

from .._common.iso_codes import amount_form, country_form, currency
from .._common.json import JsonObject, decode_object, object_or_null
from .._common.money import share
from .._common.timestamps import stamp, stamp_or_null
from .records import GATEWAY_ERROR, FailureRecord, PayoutRecord

_FEE = Decimal("0.01")
_CATEGORIES = {"card": "card", "bank": "bank_transfer", "crypto": "crypto", "wallet": "wallet"}

_IDENTIFYING = {"phone_number": "phone", "account_number": "bank_account", "address": "crypto_address"}
INSTRUMENT_TEXTS = (
    "phone_number",
    "account_name",
    "account_number",
    "bank_code",
    "swift_bic",
    "address",
    "network",
    "memo_tag",
)
FAILURE_CATEGORIES: Mapping[str, str] = {
    "INSUFFICIENT_FUNDS": "INSUFFICIENT_FUNDS",
    "INVALID_RECIPIENT": "RECIPIENT_ERROR",
    "RECIPIENT_NOT_FOUND": "RECIPIENT_ERROR",
    "GATEWAY_UNAVAILABLE": GATEWAY_ERROR,
}
"""Gap AD: the categories of failure codes that the customer did not cause."""


def failure_for(code: str) -> FailureRecord:
    """The failure of a code of the scenario vocabulary."""
    category = FAILURE_CATEGORIES.get(code, "CUSTOMER_ERROR")
    return FailureRecord(code, category, f"{code.replace('_', ' ').capitalize()}.")


def method_category(code: str) -> str:
    """The category a method code suggests; mobile money when it suggests none."""
    return next((category for part, category in _CATEGORIES.items() if part in code.lower()), "mobile_money")


# The same object each time: forms are shown within others, and nobody changes them
@lru_cache(maxsize=512)
def method_form(code: str) -> JsonObject:
    """The JSON of a method. The sandbox has no catalogue: any code is a method."""
    label = code.replace("_", " ").title()
    category = method_category(code)
    return {
        "value": code,
        "label": label,
        "description": f"{label} in the sandbox",
        "icon_url": f"https://sandbox.test/icons/{code}.svg",
        "category": category,
        "requires_phone": category == "mobile_money",
    }


@lru_cache(maxsize=512)
def rate_form(source: str, target: str) -> JsonObject:
    """The JSON of an exchange rate, as an object. The sandbox converts one to one."""
    return {
        "value": "1.00000000",
        "from_currency": source,
        "to_currency": target,
        "expression": f"1 {source} = 1.00000000 {target}",
    }


def gateway_transaction(gateway: str, status: str) -> dict[str, str]:
    """The JSON of the transaction at a gateway."""
    return {
        "id": f"gtx_{gateway}",
        "reference": f"GW-{gateway[:10].upper()}",
        "external_id": f"ext_{gateway[6:]}",
        "status": status,
    }


def customer_form(customer_id: str | None, fields: JsonObject) -> JsonObject | None:
    """The JSON of the customer of a creation, as in responses."""
    if customer_id is None:
        return None
    given = object_or_null(fields, "customer") or {}
    return {
        "id": customer_id,
        "first_name": given.get("first_name"),
        "last_name": given.get("last_name"),
        "email": given.get("email"),
        "avatar_url": None,
    }


def instrument_type(instrument: JsonObject) -> object:
    """The `type` of an instrument, or the one its fields suggest (gap L); None when they suggest none."""
    named = instrument.get("type")
    if named is not None:
        return named
    return next((kind for field, kind in _IDENTIFYING.items() if instrument.get(field) is not None), None)


def instrument_form(instrument_id: str, body: JsonObject) -> JsonObject:
    """The JSON of an instrument, as in payout responses; fields that its type does not use are null."""
    country = body.get("country")
    return {
        "id": instrument_id,
        "type": instrument_type(body),
        **{name: body.get(name) for name in INSTRUMENT_TEXTS},
        "country": country_form(country if isinstance(country, str) else None),
    }


def failure_form(failure: FailureRecord, *, with_category: bool) -> JsonObject:
    """The JSON of a failure; payouts and the attempts of the payment-intent list have `code.category`."""
    code: JsonObject = {"value": failure.code, "message": failure.message}
    if with_category:
        code["category"] = failure.category
    return {"code": code, "message": failure.message}


def payout_form(payout: PayoutRecord, fields: JsonObject | None = None) -> JsonObject:
    """The JSON of a payout; `fields` are those of its creation, if they have been read."""
    fields = decode_object(payout.body) if fields is None else fields
    amount = amount_form(payout.amount, payout.currency)
    fee = share(payout.amount, _FEE, currency(payout.currency).unit)
    return {
        "id": payout.id,
        "amount": amount,
        "settlement_amount": amount,
        "exchange_rate": rate_form(payout.currency, payout.currency),
        "method": method_form(payout.method),
        "status": payout.status,
        "reference": payout.reference,
        "description": fields.get("description"),
        "webhook_url": payout.webhook_url,
        "customer": customer_form(payout.customer_id, fields),
        "instrument": instrument_form(payout.instrument_id, object_or_null(fields, "instrument") or {}),
        "gateway": {"transaction": gateway_transaction(payout.gateway, payout.status)},
        "fee_amount": amount_form(fee, payout.currency),
        "failure": failure_form(payout.failure, with_category=True) if payout.failure else None,
        "metadata": fields.get("metadata"),
        "initiated_at": stamp_or_null(payout.initiated_at),
        "completed_at": stamp_or_null(payout.completed_at),
        "failed_at": stamp_or_null(payout.failed_at),
        "created_at": stamp(payout.created_at),
    }
