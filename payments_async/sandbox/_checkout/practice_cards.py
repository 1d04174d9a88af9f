"""Cards to practise with: the only numbers that the pages take, and what becomes of a payment with each.

Any other number could be a real card. It is refused in every field, and neither kept nor shown again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import attrs

from .._common.masking import has_card_number
from .._common.scenario_words import ScenarioOutcome
from .language import Text


@attrs.frozen
class PracticeCard:
    """A number known everywhere as a test number, and the outcome of a payment with it."""

    number: str
    label: Text
    outcome: ScenarioOutcome | None = None
    """None for as the attempt is planned, which is paid where nothing else was asked for."""


CARDS = (
    PracticeCard("4242 4242 4242 4242", Text("Paid")),
    PracticeCard("4000 0000 0000 0002", Text("Declined"), ScenarioOutcome("fail", code="CUSTOMER_DECLINED")),
    PracticeCard("4000 0000 0000 0069", Text("Expired card"), ScenarioOutcome("fail", code="CARD_EXPIRED")),
    PracticeCard(
        "4000 0000 0000 9995",
        Text("Insufficient funds"),
        ScenarioOutcome("fail", code="INSUFFICIENT_FUNDS"),
    ),
)

_DIGITS = re.compile("[^0-9]")


def find_card(typed: str) -> PracticeCard | None:
    """The card of a number, however it is spaced; None for any other number."""
    plain = _DIGITS.sub("", typed)
    return next((card for card in CARDS if _DIGITS.sub("", card.number) == plain), None)


_LONGEST_PHONE = 14
"""Digits of the longest phone number without `+`: one of 15 would be very rare, and a card often has 15."""
_MOST_DIGITS = 6
"""Digits of the longest expiry date or CVC, `12/2034`. More could be a part of a card number."""


def may_be_real(typed: str, *, phone: bool = False) -> bool:
    """True if a text has the number of a card that is not among these; as a `phone`, if not a phone's."""
    count = len(_DIGITS.sub("", typed))
    if phone and count <= _LONGEST_PHONE + typed.strip().startswith("+"):
        return False
    return find_card(typed) is None and has_card_number(typed)


def without_other_cards(form: Mapping[str, str], prefix: str) -> dict[str, str]:
    """A form without what was typed of a card that is not among these, to be shown again."""
    number = f"{prefix}number"
    known = find_card(form.get(number, "")) is not None
    return {
        name: value
        for name, value in form.items()
        if not name.startswith(prefix)
        or (known and (name == number or len(_DIGITS.sub("", value)) <= _MOST_DIGITS))
    }
