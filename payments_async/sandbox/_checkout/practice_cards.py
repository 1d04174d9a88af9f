"""Cards to practise with: they are chosen from a list, so that no page has a field for a card's number.

A number that is typed into another field all the same, and may be a card's, is refused, and neither kept nor
shown again.
"""

from __future__ import annotations

import re

import attrs

from .._common.masking import has_card_number
from .._common.scenario_words import ScenarioOutcome


@attrs.frozen
class PracticeCard:
    """A number known everywhere as a test number, and the outcome of a payment with it."""

    number: str
    label: str
    outcome: ScenarioOutcome | None = None
    """None for as the attempt is planned, which is paid where nothing else was asked for."""


CARDS = (
    PracticeCard("4242 4242 4242 4242", "Paid"),
    PracticeCard("4000 0000 0000 0002", "Declined", ScenarioOutcome("fail", code="CUSTOMER_DECLINED")),
    PracticeCard("4000 0000 0000 0069", "Expired card", ScenarioOutcome("fail", code="CARD_EXPIRED")),
    PracticeCard(
        "4000 0000 0000 9995",
        "Insufficient funds",
        ScenarioOutcome("fail", code="INSUFFICIENT_FUNDS"),
    ),
)


def find_card(number: str) -> PracticeCard | None:
    """The card of a number, as the list has it; None for any other."""
    return next((card for card in CARDS if card.number == number), None)


_LONGEST_PHONE = 14
"""Digits of the longest phone number without `+`: one of 15 would be very rare, and a card often has 15."""


def may_be_real(typed: str, *, phone: bool = False) -> bool:
    """True if a text has the number of a card; as a `phone`, if not a phone's."""
    count = len(re.sub("[^0-9]", "", typed))
    if phone and count <= _LONGEST_PHONE + typed.strip().startswith("+"):
        return False
    return has_card_number(typed)
