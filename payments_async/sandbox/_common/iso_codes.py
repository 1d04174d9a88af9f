"""Currencies (ISO 4217) and countries (ISO 3166), through babel: display, smallest unit, names."""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache

import attrs

from ..._extras import needs
from .json import JsonObject
from .money import is_expressible

try:
    from babel import Locale
    from babel.numbers import get_currency_precision, get_currency_symbol
except ImportError as _missing:
    raise ImportError(needs("the sandbox needs", "sandbox")) from _missing

_LOCALE = Locale("en")
_REGIONAL_A = 0x1F1E6
_NOT_COUNTRIES = frozenset({"EU", "EZ", "QO", "UN", "XA", "XB", "ZZ"})
"""Two-letter territories of babel's data that are groups or placeholders."""


@attrs.frozen
class Currency:
    code: str
    symbol: str
    digits: int  # digits after the decimal point: 0 for XOF, 2 for USD, 3 for KWD

    unit: Decimal  # the smallest amount that can be expressed, in major units

    def decimals(self, value: Decimal) -> int:
        """Count the decimals that show all of `value`: the currency's own, or more if it has more (gap O)."""
        return self.digits if is_expressible(value, self.unit) else -int(value.as_tuple().exponent)

    def show(self, value: Decimal, digits: int) -> str:
        """Format `value` with the symbol, thousands separators and so many decimals."""
        return f"{self.symbol}{value:,.{digits}f}"

    def plain(self, value: Decimal) -> str:
        """Format `value` for developers, with all its decimals: `GHS 1,250.75`."""
        return f"{self.code} {value:,.{self.decimals(value)}f}"


@lru_cache(maxsize=512)
def currency(code: str) -> Currency:
    """Find a currency; an unknown code gets two digits, and itself as symbol."""
    symbol, digits = get_currency_symbol(code, locale=_LOCALE), get_currency_precision(code)
    spaced = f"{symbol}\u00a0" if symbol[-1:].isalpha() else symbol
    return Currency(code, spaced, digits, Decimal(1).scaleb(-digits))


@lru_cache(maxsize=512)
def is_currency(code: str) -> bool:
    """True if ISO 4217 has, or had, this code."""
    return code in _LOCALE.currencies


def is_country(code: str) -> bool:
    """True if this is a two-letter country code in capitals that ISO 3166 has."""
    known = len(code) == 2 and code.isalpha() and code in _LOCALE.territories
    return known and code not in _NOT_COUNTRIES


def amount_form(value: Decimal, code: str) -> JsonObject:
    """The JSON of an amount, in major units (`docs/interface.md`, Resources and their fields)."""
    facts = currency(code)
    return {
        "value": value,
        "formatted": facts.show(value, facts.decimals(value)),
        "short": facts.show(value, 0),
        "currency": code,
    }


@lru_cache(maxsize=512)
def country_form(code: str | None) -> JsonObject | None:
    """The JSON of a country (`docs/interface.md`, Resources and their fields); None for an unknown one."""
    if code is None:
        return None
    code = code.upper()
    flag = "".join(chr(_REGIONAL_A + ord(letter) - ord("A")) for letter in code)
    return {"code": code, "name": _LOCALE.territories.get(code, code), "flag": flag}
