"""Totals as a person writes them to confirm a batch: `GHS 1200.50`. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Final

from ...models.common import amount_text
from .quantities import Money

_AMOUNT: Final = re.compile(r"[0-9]{1,40}(?:\.[0-9]{1,40})?")
_TYPED: Final = re.compile(r"\s*([A-Za-z]{3,10})\s+(\S+)\s*")


def amount_of(text: str) -> Decimal:
    """An exact amount in major units, over 0. Raises ValueError."""
    if not _AMOUNT.fullmatch(text) or not (amount := Decimal(text)):
        raise ValueError(f"{text!r} is not an amount: give plain digits over 0, such as 1200.50")
    return amount


def parsed(texts: Iterable[str]) -> dict[str, Decimal]:
    """{currency: amount} of texts such as `XOF 1200.50`. Raises ValueError."""
    found: dict[str, Decimal] = {}
    for text in texts:
        typed = _TYPED.fullmatch(text)
        if typed is None:
            raise ValueError(f'{text!r} is not a currency and an amount, such as "XOF 1200.50"')
        currency, amount = typed[1].upper(), amount_of(typed[2])
        if currency in found:
            raise ValueError(f"{currency} is given twice")
        found[currency] = amount
    return found


def difference(given: Money, totals: Money) -> str | None:
    """The difference between the confirmed and the batch's total; None when they are equal."""
    for currency in sorted({*given, *totals}):
        if currency not in totals:
            return f"{currency} was confirmed, and the batch has no {currency}"
        if currency not in given:
            return f"the batch has {amount_text(currency, totals[currency])}, which was not confirmed"
        if given[currency] != totals[currency]:
            return (
                f"{amount_text(currency, given[currency])} was confirmed, "
                f"and the batch comes to {amount_text(currency, totals[currency])}"
            )
    return None
