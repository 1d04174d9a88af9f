"""Amounts as people and their programs write them: what may be meant otherwise, and a guess. Pure."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

from ..models._minor_units import decimals_of
from ..params.requests import has_three_decimals

_SPACE: Final = "[ \xa0\u2009\u202f]"
_CURRENCY: Final = r"(?:[A-Za-z]{1,4}|[€$£₦₵])"
_NUMBER: Final = rf"([0-9]{{1,12}}|[0-9]{{1,3}}{_SPACE}[0-9]{{3}})(?:\.([0-9]{{1,2}}))?"
_FORMS: Final = (
    (r"([0-9]{1,9}),([0-9]{1,2})", "a decimal comma?"),
    (rf"([0-9]{{1,3}}(?:{_SPACE}[0-9]{{3}})+)[.,]([0-9]{{1,2}})", "spaces between thousands?"),
    (rf"([0-9]{{1,3}}{_SPACE}[0-9]{{3}})", "spaces between thousands?"),
    (r"([0-9]{1,3}(?:['’][0-9]{3})+)(?:[.,]([0-9]{1,2}))?", "apostrophes between thousands?"),
    (r"([0-9]{1,3}(?:,[0-9]{3})+)\.([0-9]{1,2})", "commas between thousands?"),
    (r"([0-9]{1,3}(?:\.[0-9]{3})+),([0-9]{1,2})", "points between thousands?"),
    (r"([0-9]{1,3}(?:\.[0-9]{3}){2,})", "points between thousands?"),
    (rf"{_CURRENCY}{_SPACE}?{_NUMBER}", "a currency?"),
    (rf"{_NUMBER}{_SPACE}?{_CURRENCY}", "a currency?"),
)
"""Whole part, decimals, and what was probably meant. No account number fits."""
_UNCLEAR: Final = r"[0-9]{1,3}(?:,[0-9]{3})+"
_NEGATIVE: Final = (
    r"\([0-9]{1,9}(?:\.[0-9]{1,2})?\)|[0-9]{1,9}(?:\.[0-9]{1,2})?[-−]|−[0-9]{1,9}(?:\.[0-9]{1,2})?"
)
_GROUPS: Final = rf"[0-9]{{1,3}}(?:{_SPACE}[0-9]{{3}}){{2,}}"


def guess(cell: object) -> str | None:
    """Show an amount that is written in another form, with what it may mean; None for any other cell."""
    text = cell.strip() if isinstance(cell, str) else ""
    wrong = f"is '{' '.join(text.split())}', which is no decimal number:"
    for form, meant in _FORMS:
        if found := re.fullmatch(form, text):
            parts = (re.sub("[^0-9]", "", part) for part in found.groups() if part)
            return f"{wrong} {meant} write {'.'.join(parts)}"
    if re.fullmatch(_GROUPS, text):  # not shown: a phone number is written like this, too
        return "is no decimal number: if spaces stand between thousands, write digits and nothing else"
    if text != cell and re.fullmatch(_NUMBER, text):
        return f"{wrong} write it without the space beside it"
    if re.fullmatch(_NEGATIVE, text):
        return f"{wrong} a negative amount? nothing below 1 can be paid"
    return (
        f"{wrong} write a point before decimals, and nothing else" if re.fullmatch(_UNCLEAR, text) else None
    )


def problem(amount: object, currency: object) -> str | None:
    """What is doubtful about an amount that can be read; None where the currency is not in ISO 4217.

    A text with three decimals, in a currency that has fewer: they may be thousands. Decimals beyond the
    currency's own, unless they are zeros.
    """
    digits = decimals_of(currency) if isinstance(currency, str) else None
    if digits is None:
        return None
    if has_three_decimals(amount):
        thousands, value = amount.replace(".", "").lstrip("0"), Decimal(amount).normalize()
        doubt = f"is '{amount}', and {currency} has {digits} decimals:"
        if digits < 3 and value != round(value, digits):
            return f"{doubt} is it {thousands}?"
        return f"{doubt} {thousands}, or {value:f}? write one of them" if digits < 3 else None
    if isinstance(amount, Decimal) and amount.is_finite() and amount != round(amount, digits):
        return f"has more decimals than {currency}, which has {digits or 'none'}"
    return None
