"""Which phone numbers are accepted, and which are probably a slip by their country's plan. Pure."""

from __future__ import annotations

import re
from typing import Final

from ._phone_plans import phone_plans
from .texts import Destination, named

_SIGNS: Final = "[0-9 +.()-]"
_MOST_DIGITS: Final = 15  # of a phone number (E.164)


class PhoneNumber(Destination):
    """One phone number: digits, blanks and `+ - . ( )`."""

    quick = '{0}.removeprefix("+").isdigit() and len({0}) < 16'

    def _form_problem(self, text: str) -> str | None:
        if problem := super()._form_problem(text):
            return problem
        digits = sum(letter.isdigit() for letter in text)
        if not digits:
            return "has no digits"
        if digits > _MOST_DIGITS:
            return f"has {digits} digits, a phone number has up to {_MOST_DIGITS}: is it one number?"
        if text.count("+") > 1:
            return "holds more than one +: is it one number?"
        odd = next((letter for letter in text if not re.fullmatch(_SIGNS, letter)), None)
        allowed = "a phone number has digits, blanks and + - . ( ) only"
        return None if odd is None else f"holds {named(odd)}, and {allowed}: is it one number?"


def phone_doubt(number: str, country: object) -> str | None:
    """What is probably wrong with a phone number by its country's plan; None where there is no plan."""
    country = str(country).upper()
    code, lengths = phone_plans().get(country, ("", frozenset()))
    digits = re.sub("[^0-9]", "", number.replace("(0)", ""))  # dialled within the country only
    digits = digits if number.startswith("+") else digits.removeprefix("00")
    if not digits.startswith(code):
        return f"does not begin with +{code}, the calling code of {country}"
    if not code or (length := len(digits) - len(code)) in lengths:
        return None
    known = " or ".join(map(str, sorted(lengths)))
    return f"has {length} digits after +{code}, and numbers of {country} have {known}"
