"""Types of the amounts that callers give, and their conversion to `Decimal`."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

Money = Decimal | int | str
"""Major units, exact: `Decimal("10.10")`, `50`, `"10.10"`. A float is refused: it is not exact."""

_DECIMAL_SIGNS = frozenset("0123456789.+-eE")


def decimal_if_readable(value: Any) -> Any:
    """Convert an int or plain decimal text to a Decimal; leave anything else for the validation."""
    if value.__class__ is Decimal:
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return Decimal(value)
    if isinstance(value, str) and value.isascii() and len(value) <= 100 and _DECIMAL_SIGNS.issuperset(value):
        try:
            return Decimal(value)
        except ArithmeticError:
            return value
    return value
