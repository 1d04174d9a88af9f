"""Exact decimal arithmetic, independent of the calling thread's decimal context."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal

_EXACT = Context(prec=2_000_000, rounding=ROUND_HALF_EVEN, Emax=MAX_EMAX, Emin=MIN_EMIN)
"""More digits than a request body can hold."""

_ONE = Decimal(1)


DECIMALS = 60
"""The most decimals of a refund from behind the API: a large exponent could mean a gigabyte of them."""

_DECIMAL = re.compile(r"[0-9]{1,60}(?:\.[0-9]{1,60})?")


def read_amount(amount: object) -> Decimal:
    """Read an amount from Python code: a Decimal, an int or decimal text. `TypeError`, `ValueError`."""
    if isinstance(amount, bool) or not isinstance(amount, (Decimal, int, str)):
        raise TypeError(f"amount must be a Decimal, an int or decimal text, not {type(amount).__name__}")
    if isinstance(amount, str) and not _DECIMAL.fullmatch(amount):
        raise ValueError("amount must be a positive number such as '29.99'")
    number = Decimal(amount)
    if not (number.is_finite() and number > 0):
        raise ValueError("amount must be a positive number such as '29.99'")
    if int(number.as_tuple().exponent) < -DECIMALS:
        raise ValueError(f"amount must not have more than {DECIMALS} decimals")
    return number


def plain(value: object) -> Decimal:
    """Convert a validated JSON number to a `Decimal` without a positive exponent (1E+2 becomes 100)."""
    number = value if isinstance(value, Decimal) else Decimal(str(value))
    exponent = number.as_tuple().exponent
    return _EXACT.quantize(number, _ONE) if isinstance(exponent, int) and exponent > 0 else number


def total(amounts: Iterable[Decimal]) -> Decimal:
    """Add amounts exactly; 0 for none."""
    result = Decimal(0)
    for amount in amounts:
        result = _EXACT.add(result, amount)
    return result


def less(amount: Decimal, *parts: Decimal) -> Decimal:
    """Subtract `parts` from `amount`, exactly."""
    return _EXACT.subtract(amount, total(parts))


def share(amount: Decimal, part: Decimal, unit: Decimal) -> Decimal:
    """Multiply `amount` by `part`, rounded half-even to `unit` of its currency."""
    return _EXACT.quantize(_EXACT.multiply(amount, part), unit)


def is_expressible(amount: Decimal, unit: Decimal) -> bool:
    """True if an amount is a number of whole units: 10.50 is one of tenths."""
    return not _EXACT.remainder(amount, unit)
