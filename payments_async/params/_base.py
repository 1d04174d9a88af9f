"""What every request object has: money, pairs passed through, a masked repr."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from .._attrs import ValueMixin
from ..models._record import shown_fields

Money = Decimal | int | str
"""Major units, exact: `Decimal("10.10")`, `50`, `"10.10"`. A float is refused: it is not exact."""
Pairs = Mapping[str, Any]
"""JSON pairs passed through as they are."""


_DECIMAL_SIGNS = frozenset("0123456789.+-eE")


def decimal_if_readable(value: Any) -> Any:
    """An int or plain decimal text as a Decimal; anything else as it is, for the validation to name."""
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


class Params(ValueMixin):
    """A request object. Its repr masks personal and account data."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(shown_fields(self))})"
