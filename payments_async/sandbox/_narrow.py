"""What only a narrow service refuses: the interface gives these fields a length or a least amount (gap O)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from urllib.parse import urlsplit

from .api.field_checks import Breaches
from .common.iso_codes import currency
from .common.money import is_expressible
from .common.profiles import Profile

_ADDRESSES = ("return_url", "webhook_url")
_NEVER_IN_ONE = re.compile(r"[\s\x00-\x1f\x7f\\]")


def narrow(body: Mapping[str, object], profile: Profile, breaches: Breaches) -> None:
    """Add what `profile` refuses besides the table of a creation, of fields that are not wrong already."""
    if profile.bad_addresses == "refuse":
        for name in _ADDRESSES:
            given = body.get(name)
            if isinstance(given, str) and name not in breaches.errors and not is_web_address(given):
                breaches.add(name, "must be an http or https address")
    if profile.fine_amounts == "refuse" and not {"amount", "currency"} & set(breaches.errors):
        amount, code = body["amount"], str(body["currency"])
        digits = currency(code).digits
        if isinstance(amount, Decimal) and not is_expressible(amount, digits):
            breaches.add("amount", f"must not have more than {digits} decimals in {code}")


def is_web_address(text: str) -> bool:
    """Whether a browser or a webhook could go there: http or https, a host, no spaces."""
    if _NEVER_IN_ONE.search(text):
        return False
    try:
        parts = urlsplit(text)
        parts.port  # noqa: B018 - reading it checks it
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)
