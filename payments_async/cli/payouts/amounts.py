"""Sums of money, and the confirmation of a batch's total. Pure.

A live key pays real money, so a person confirms the total first. What was confirmed is kept beside the
ledger: the same batch, resumed, needs no second confirmation; other rows, or another total, do.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from decimal import Context, Decimal, Inexact, InvalidOperation
from functools import reduce
from typing import Final

import attrs

from .options import amount_of

Money = Mapping[str, Decimal]
"""{currency: sum, major units}."""

_EXACT: Final = Context(prec=200, traps=[Inexact, InvalidOperation])
"""Wide enough for any batch; a sum that would be rounded raises instead."""
_TYPED: Final = re.compile(r"\s*([A-Za-z]{3,10})\s+(\S+)\s*")


def total_of(amounts: Iterable[Decimal]) -> Decimal:
    """Add amounts exactly: a total that is typed back must not be rounded."""
    return reduce(_EXACT.add, amounts, Decimal(0))


def plain(amount: Decimal) -> str:
    """Plain digits, never an exponent: `10.10`."""
    return format(amount, "f")


def grouped(amount: Decimal) -> str:
    """For people: `1,200.50`."""
    return format(amount, ",f")


def plain_sums(totals: Money) -> dict[str, str]:
    """For programs: `{"XOF": "1200.50"}`."""
    return {currency: plain(amount) for currency, amount in sorted(totals.items())}


def money_text(totals: Money) -> str:
    """For people: `GHS 3.07, XOF 1,200.50`."""
    return (
        ", ".join(f"{currency} {grouped(total)}" for currency, total in sorted(totals.items())) or "nothing"
    )


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
            return f"the batch has {currency} {plain(totals[currency])}, which was not confirmed"
        if given[currency] != totals[currency]:
            return (
                f"{currency} {plain(given[currency])} was confirmed, "
                f"and the batch comes to {currency} {plain(totals[currency])}"
            )
    return None


def flags(totals: Money) -> str:
    """The options that confirm these totals."""
    texts = (f"{currency} {amount}" for currency, amount in plain_sums(totals).items())
    return " ".join(f"--confirm-total {shlex.quote(text)}" for text in texts)


@attrs.frozen
class Confirmation:
    """A confirmed batch and total."""

    batch_id: str
    input_hash: str
    account: str
    """The service's address and the key's fingerprint: each project is paid by itself."""
    totals: Money

    def to_json(self) -> str:
        """As JSON text."""
        return json.dumps({"version": 1, **attrs.asdict(self), "totals": plain_sums(self.totals)})

    def is_same_as(self, text: str) -> bool:
        """Return whether `text` is the JSON of this same confirmation."""
        try:
            return bool(json.loads(text) == json.loads(self.to_json()))
        except ValueError:
            return False
