"""What a text may hold that says who gets the money, and what it may not: one grammar for all ways in. Pure.

Names, accounts and phone numbers: their faults, and what is probably a slip (`..._doubt`). A message shows a
sign escaped, and never the text, which may be account data.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from ._phone_plans import phone_plans
from .rules import Text, is_unseen

_JOINERS: Final = "\u200c\u200d"
_PRINTED_BLANKS: Final = "\xa0\u202f\u3000"
"""No-break spaces, which French and Swiss names and numbers have, and the blank of Japanese names."""
SCIENTIFIC: Final = r"[+-]?(?:[0-9]+(?:[.,][0-9]*)?|[.,][0-9]+)E[+-][0-9]+"
"""`2.2990E+10`, in either case of the letter. The exponent's sign is required: `12E5` may be an account."""
IS_SCIENTIFIC: Final = "is in scientific notation: a spreadsheet took it for a number, and digits may be lost"
_SPREADSHEET: Final = (
    (r"=.*", "begins with =: it is a spreadsheet's formula"),
    (r"'.*", "begins with an apostrophe, by which a spreadsheet marks text"),
    (r"#+|#[^ ]{1,12}[!?]|#(?:N/?[ADV]|ND|GETTING_DATA)|Err:[0-9]+",
     "is a spreadsheet's error, or a number in a column that is too narrow"),
    (r"[+-]?[0-9]+\.0+", "ends in .0: a program took it for a number"),
    (SCIENTIFIC, IS_SCIENTIFIC),
    (r".*_x[0-9A-F]{4}_.*", "holds a sign that Excel has written as _xHHHH_"),
)  # fmt: skip
_WAY_OUT: Final = "go back to the original data, and keep it as text"
_ENDS: Final = "was it copied with what stood beside it?"
_SIGNS: Final = "[0-9 +.()-]"
_MOST_DIGITS: Final = 15  # of a phone number (E.164)


class PlainText(Text):
    """Text without control or invisible signs, and without a blank at either end."""

    quick: str = '" " not in {0}'
    """Source of a test that a text of printable ASCII signs is clearly good; "" where any is."""

    def __call__(self, value: object) -> str | None:
        problem = super().__call__(value)
        if problem is not None or not isinstance(value, str):
            return problem
        return self._sign_problem(value) or self._form_problem(value)

    def _sign_problem(self, text: str) -> str | None:
        if not text.strip():
            return "is blank: leave it out"
        if text != text.strip():
            end = text[0] if text[0].isspace() else text[-1]
            return f"begins or ends with {named(end)}: nothing is trimmed; {_ENDS}"
        odd = next(filter(is_unseen, text), None)
        return None if odd is None else f"holds {named(odd)}, which is not seen: {_cause(odd)}"

    def _form_problem(self, text: str) -> str | None:
        return None


class Destination(PlainText):
    """Text that says which account gets the money: also nothing that a spreadsheet leaves."""

    quick = "{0}.isalnum()"

    def _form_problem(self, text: str) -> str | None:
        for form, what in _SPREADSHEET:
            if re.fullmatch(form, text, re.IGNORECASE):
                return f"{what}; {_WAY_OUT}"
        return None


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


class PersonName(PlainText):
    """A name in any script: only what cannot be seen is a fault. Joiners shape letters of several scripts."""

    quick = ""

    def _sign_problem(self, text: str) -> str | None:
        for at, letter in enumerate(text):
            if not is_unseen(letter):
                continue
            joins = letter in _JOINERS and all(map(_is_letter, (text[at - 1 : at], text[at + 1 : at + 2])))
            joins |= letter == _JOINERS[1] and unicodedata.category(text[at - 1 : at] or " ") == "Mn"
            is_new = unicodedata.category(letter) == "Cn" and not _is_ignorable(letter)
            shapes = unicodedata.category(letter) == "Mn"  # of a sign, as Chinese and Mongolian names have
            if not (joins or shapes or is_new or letter in _PRINTED_BLANKS):
                return f"holds {named(letter)}, which is not seen: {_cause(letter)}"
        return None


def rounding_doubt(account: str) -> str | None:
    """What is probably wrong with an account whose last digits may have been rounded away."""
    is_rounded = re.fullmatch("[0-9]{15}0+", re.sub("[^0-9]", "", account))
    return "has only zeros after its 15th digit: a spreadsheet may have rounded it" if is_rounded else None


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


def _is_letter(letter: str) -> bool:
    return bool(letter) and unicodedata.category(letter)[0] in "LM"


def _is_ignorable(letter: str) -> bool:
    return "\U000e0000" <= letter <= "\U000e0fff" or "\ufff0" <= letter <= "\uffff"


def named(sign: str) -> str:
    """`U+2066 (left-to-right isolate)`."""
    name = unicodedata.name(sign, "").lower()
    return f"U+{ord(sign):04X}" + (f" ({name})" if name else "")


def _cause(sign: str) -> str:
    if sign in "\r\n\v\f\x85\u2028\u2029":
        return "a line break, as of two lines in one cell; write one"
    if sign.isspace():
        return "write an ordinary space, or none; it was probably copied from a page"
    return "it was probably copied from a page, a chat or a document; type it anew"
