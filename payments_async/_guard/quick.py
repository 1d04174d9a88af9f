"""The rules of all guards of a key compiled into one pass over a payout's bytes.

It passes a payout that clearly breaks no rule. It may leave too many to `rules`, and must never pass one that
`rules` refuses; tests/guard/test_quick.py compares the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Final

from .._codec.payment_body import parse_payment
from ..guard import Guard
from .minor_units import MINOR_UNITS

_ANY: Final = 40
"""More decimals than any amount has."""


class QuickRules:
    """What each currency may have, and which methods and countries may be used."""

    def __init__(self, guards: Sequence[Guard], limits: Mapping[str, Sequence[tuple[int, Decimal]]]) -> None:
        self._figures: dict[str, tuple[Decimal, int]] = {}
        for currency in {currency for guard in guards for currency in guard.most}:
            if all(currency in guard.most or guard.other_currencies == "allow" for guard in guards):
                figures = [guard.most[currency] for guard in guards if currency in guard.most]
                figures += [most for _, most in limits.get(currency, ())]
                judged = any(guard.decimals for guard in guards)
                self._figures[currency] = min(figures), MINOR_UNITS.get(currency, _ANY) if judged else _ANY
        self._methods = _in_all(guard.methods for guard in guards)
        self._countries = _in_all(guard.countries for guard in guards)

    def amount_of(self, body: bytes) -> tuple[str, Decimal] | None:
        """The currency and amount of a payout that this package wrote, if it clearly breaks no rule."""
        payment = parse_payment(body)
        figures = self._figures.get(payment.currency)
        if figures is None:
            return None
        text = payment.amount if payment.amount.__class__ is str else str(payment.amount)
        if len(text.partition(".")[2]) > figures[1] or "E" in text or (amount := Decimal(text)) > figures[0]:
            return None
        if self._methods is not None and payment.method not in self._methods:
            return None
        instrument = payment.instrument
        if self._countries is not None and (instrument is None or instrument.country not in self._countries):
            return None
        return payment.currency, amount


def _in_all(rules: Iterable[frozenset[str] | None]) -> frozenset[str] | None:
    """What all rules allow that are set; None if none is."""
    found = [rule for rule in rules if rule is not None]
    return frozenset.intersection(*found) if found else None
