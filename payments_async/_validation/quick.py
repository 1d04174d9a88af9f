"""A quick check for payouts, nearly all of which are valid. Pure.

Checking by the tables of rules costs several times as much. A payout that fails the quick check may still be
valid: then the tables decide. Written out field by field, because a loop costs twice as much.
"""

from __future__ import annotations

from decimal import Decimal
from operator import attrgetter
from typing import Any

from ..params import CustomerInput, Instrument, PayoutRequest
from .rules import is_unicode

_LARGE = Decimal(10**20)
_customer_texts = attrgetter("email", "first_name", "last_name", "address", "city", "state", "zip")
_SIMPLE = frozenset({int, bool, type(None)})


def is_in_order(payout: PayoutRequest) -> bool:
    """Return whether a payout clearly breaks no rule."""
    amount, currency, method, reference = payout.amount, payout.currency, payout.method, payout.reference
    return (
        amount.__class__ is Decimal
        and amount.is_finite()
        and 1 <= amount < _LARGE
        and len(str(amount)) <= 40
        and currency.__class__ is str
        and len(currency) == 3
        and currency.isascii()
        and currency.isalpha()
        and currency.isupper()
        and method.__class__ is str
        and method != ""
        and method.isascii()
        and (
            reference is None
            or (
                reference.__class__ is str
                and 0 < len(reference) <= 191
                and reference.isascii()
                and reference.isprintable()
                and reference == reference.strip()
            )
        )
        and (
            (text := payout.description) is None
            or (text.__class__ is str and len(text) <= 500 and (text.isascii() or is_unicode(text)))
        )
        and (
            (text := payout.webhook_url) is None
            or (text.__class__ is str and len(text) <= 2048 and (text.isascii() or is_unicode(text)))
        )
        and (payout.customer is None or _is_customer(payout.customer))
        and (payout.metadata is None or (_is_plain(payout.metadata) and len(payout.metadata) <= 10))
        and (payout.gateway_options is None or _is_plain(payout.gateway_options))
        and _is_instrument(payout.instrument)
    )


def _is_instrument(value: Any) -> bool:
    """Return whether a value is an instrument of texts only, with a type and a two-letter country."""
    return (
        type(value) is Instrument
        and (text := value.type).__class__ is str
        and text != ""
        and text.isascii()
        and ((text := value.phone_number) is None or (text.__class__ is str and text.isascii()))
        and ((text := value.account_name) is None or (text.__class__ is str and is_unicode(text)))
        and ((text := value.account_number) is None or (text.__class__ is str and text.isascii()))
        and ((text := value.bank_code) is None or (text.__class__ is str and text.isascii()))
        and ((text := value.swift_bic) is None or (text.__class__ is str and text.isascii()))
        and ((text := value.address) is None or (text.__class__ is str and text.isascii()))
        and ((text := value.network) is None or (text.__class__ is str and text.isascii()))
        and ((text := value.memo_tag) is None or (text.__class__ is str and text.isascii()))
        and (
            (text := value.country) is None
            or (
                text.__class__ is str
                and len(text) == 2
                and text.isascii()
                and text.isupper()
                and text.isalpha()
            )
        )
    )


def _is_customer(value: Any) -> bool:
    """Texts only; the country has two letters."""
    return (
        type(value) is CustomerInput
        and all(
            text is None or (text.__class__ is str and is_unicode(text)) for text in _customer_texts(value)
        )
        and (
            (text := value.country) is None
            or (
                text.__class__ is str
                and len(text) == 2
                and text.isascii()
                and text.isupper()
                and text.isalpha()
            )
        )
    )


def _is_plain(pairs: Any, levels: int = 8) -> bool:
    """Return whether keys are ASCII text, and values text, whole numbers, None, or pairs of the same."""
    if pairs.__class__ is not dict:
        return False
    for key, value in pairs.items():
        if key.__class__ is not str or not key.isascii():
            return False
        if value.__class__ is str:
            if not value.isascii() and not is_unicode(value):
                return False
        elif value.__class__ not in _SIMPLE and not (levels and _is_plain(value, levels - 1)):
            return False
    return True
