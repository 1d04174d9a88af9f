"""The constraints of request bodies, also under `strict` (`docs/interface.md`, Endpoints; gaps L to P)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from decimal import Decimal
from urllib.parse import urlsplit

from .._common.iso_codes import currency, is_currency
from .._common.json import JsonObject
from .._common.money import is_expressible
from .._common.profiles import Profile
from .._common.values import RequestRefused
from .._records.payout_json import INSTRUMENT_TEXTS, instrument_type
from .field_checks import (
    Breaches,
    RequestField,
    amount,
    check_members,
    flag,
    members,
    pairs,
    past_timestamp,
    text,
    whole,
)

_ADDRESSES = ("return_url", "webhook_url")
_RECEIVER = {*INSTRUMENT_TEXTS} - {"account_name"}
_NEVER_IN_ONE = re.compile(r"[\s\x00-\x1f\x7f\\]")


def narrow(body: Mapping[str, object], profile: Profile, breaches: Breaches) -> None:
    """Add the breaches that only `profile` refuses, of fields that are not wrong already."""
    if profile.bad_addresses == "refuse":
        for name in _ADDRESSES:
            given = body.get(name)
            if isinstance(given, str) and name not in breaches.errors and not is_web_address(given):
                breaches.add(name, "must be an http or https address")
    given = body.get("instrument")
    for name, word in given.items() if isinstance(given, dict) else ():
        if profile.odd_receivers == "refuse" and name in _RECEIVER and is_odd_receiver(str(word)):
            breaches.add(f"instrument.{name}", "must be an account as it is typed")
    if profile.fine_amounts == "refuse" and not {"amount", "currency"} & set(breaches.errors):
        amount, code = body["amount"], str(body["currency"])
        known = currency(code)
        if isinstance(amount, Decimal) and not is_expressible(amount, known.unit):
            breaches.add("amount", f"must not have more than {known.digits} decimals in {code}")


def is_odd_receiver(text: str) -> bool:
    """True of an account with a sign that is not seen, a blank at an end, or a spreadsheet's mark."""
    hidden = any(unicodedata.category(sign) in ("Cc", "Cf", "Zl", "Zp") for sign in text)
    return hidden or text != text.strip() or text.startswith(("=", "'"))


def is_web_address(text: str) -> bool:
    """True if a browser or a webhook could go there: http or https, a host, no spaces."""
    if _NEVER_IN_ONE.search(text):
        return False
    try:
        parts = urlsplit(text)
        parts.port  # noqa: B018 - reading it checks it
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


INVALID = "The given data was invalid."  # the fixed `message` of every 422

SHORTEST_SESSION, LONGEST_SESSION = 30, 1440

_COUNTRY = text(pattern="[A-Za-z]{2}", rule="must be a two-letter country code")
_TEXT = RequestField(text())
_LABEL = RequestField(text(pattern=r"(?s)(?=.*\S).*", rule="must not be empty"), required=True)

CUSTOMER: Mapping[str, RequestField] = {
    **dict.fromkeys(("email", "first_name", "last_name", "address", "city", "state", "zip"), _TEXT),
    "country": RequestField(_COUNTRY),
}
_CUSTOMER = members(CUSTOMER)
_PHONE = members({"number": _LABEL, "country": RequestField(_COUNTRY)})

GATEWAYS: Mapping[str, Mapping[str, RequestField]] = {
    "sandbox_card": {"three_d_secure": RequestField(flag), "capture_note": RequestField(text(50))},
    "sandbox_mobile": {"ussd_menu": RequestField(whole(1, 9))},
}
"""The simulated gateways that declare options, and those options."""


def _gateway_options(value: object, path: str, breaches: Breaches) -> None:
    if not isinstance(value, dict):
        breaches.add(path, "must be an object")
        return
    for code, section in value.items():
        options = GATEWAYS.get(code)
        if options is None:
            breaches.add(f"{path}.{code}", "names a gateway that takes no options")
            continue
        check_members(section, options, f"{path}.{code}", breaches)
        for option in section if isinstance(section, dict) else ():
            if option not in options:
                breaches.add(f"{path}.{code}.{option}", "is not an option of this gateway")


def _listed_currency(value: object, path: str, breaches: Breaches) -> None:
    if not isinstance(value, str):
        breaches.add(path, "must be a string")
    elif not re.fullmatch("[A-Z]{3}", value):
        breaches.add(path, "must be 3 uppercase letters")
    elif not is_currency(value):
        breaches.add(path, "must be an ISO 4217 code")


_SHARED: Mapping[str, RequestField] = {
    "amount": RequestField(amount, required=True),
    "currency": RequestField(_listed_currency, required=True),
    "description": RequestField(text(500)),
    "customer": RequestField(_CUSTOMER),
    "return_url": RequestField(text(2048)),
    "webhook_url": RequestField(text(2048)),
    "statement_descriptor": RequestField(
        text(
            22,
            pattern=r"(?:[^\W_]|[\s.,-])*",
            rule="may hold letters, digits, whitespace, periods, commas and hyphens only",
        )
    ),
    "receipt_email": RequestField(text(255)),
    "entity_id": RequestField(text(191)),
    "entity_created_at": RequestField(past_timestamp),
    "gateway_options": RequestField(_gateway_options),
    "metadata": RequestField(pairs(10)),
}


def _restriction(value: object, path: str, breaches: Breaches) -> None:
    fields = {"country_code": RequestField(_COUNTRY), "phone": RequestField(_PHONE)}
    check_members(value, fields, path, breaches)
    if isinstance(value, dict) and all(value.get(name) is not None for name in fields):
        breaches.add(path, "may name a country or a phone number, not both")


CHECKOUT: Mapping[str, RequestField] = {
    **_SHARED,
    "expires_in_minutes": RequestField(whole(SHORTEST_SESSION, LONGEST_SESSION)),
    "restriction": RequestField(_restriction),
    "appearance": RequestField(
        members(
            {
                "color": RequestField(
                    text(
                        pattern="#?(?:[0-9A-Fa-f]{3}|[0-9A-Fa-f]{6}|[0-9A-Fa-f]{8})",
                        rule="must be a hex colour",
                    )
                ),
                "display_platform_badge": RequestField(flag),
                "brand": _TEXT,
                "icon_url": _TEXT,
            }
        )
    ),
}

INTENT: Mapping[str, RequestField] = {
    **_SHARED,
    "attempt": RequestField(
        members(
            {
                "method_code": _LABEL,
                "country": RequestField(_COUNTRY),
                "phone": RequestField(_PHONE),
                "currency": RequestField(text(pattern="(?s).{3}", rule="must be 3 characters")),
            }
        )
    ),
}

INSTRUMENT_TYPES: Mapping[str, tuple[str, ...]] = {
    "phone": ("phone_number", "country"),
    "bank_account": ("account_name", "account_number", "bank_code", "country"),
    "crypto_address": ("address", "network"),
}
"""Gap L: the fields each type requires, the one that identifies it among them."""

_INSTRUMENT_FIELDS: Mapping[str, RequestField] = {
    "type": _TEXT,
    **dict.fromkeys(INSTRUMENT_TEXTS, _TEXT),
    "country": RequestField(_COUNTRY),
}


def _instrument(value: object, path: str, breaches: Breaches) -> None:
    check_members(value, _INSTRUMENT_FIELDS, path, breaches)
    if not isinstance(value, dict):
        return
    kind = instrument_type(value)
    if kind is None:
        breaches.add(path, "must hold a phone number, an account number or an address")
    elif not isinstance(kind, str) or kind not in INSTRUMENT_TYPES:
        breaches.add(f"{path}.type", f"must be one of {', '.join(INSTRUMENT_TYPES)}")
    else:
        for name in INSTRUMENT_TYPES[kind]:
            if value.get(name) in (None, ""):
                breaches.add(f"{path}.{name}", f"is required for the type {kind}")


PAYOUT: Mapping[str, RequestField] = {
    "amount": RequestField(amount, required=True),
    "currency": RequestField(text(pattern="(?s).{3}", rule="must be 3 characters"), required=True),
    "method": _LABEL,
    "description": RequestField(text(500)),
    "instrument": RequestField(_instrument, required=True),
    "customer": RequestField(_CUSTOMER),
    "reference": RequestField(text(191)),
    "webhook_url": RequestField(text(2048)),
    "metadata": RequestField(pairs(10)),
    "gateway_options": RequestField(_gateway_options),
}


def validate(
    body: JsonObject, fields: Mapping[str, RequestField], now: float, profile: Profile, name: str
) -> None:
    """`RequestRefused` with 422 and every breach, by dotted field name, when `body` breaks its table.

    What the profile requires of the operation `name` besides: a dotted field where its parent is given.
    """
    breaches = Breaches(now)
    check_members(body, fields, "", breaches)
    for path in profile.required.get(name, ()):
        parent, _, own = path.rpartition(".")
        holder = body.get(parent) if parent else body
        if isinstance(holder, dict) and holder.get(own) is None and path not in breaches.errors:
            breaches.add(path, "is required")
    narrow(body, profile, breaches)
    if breaches.errors:
        raise RequestRefused(422, INVALID, breaches.errors)
