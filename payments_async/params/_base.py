"""What request objects share: a masked repr, and amounts as callers give them."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from .._attrs import ValueMixin
from ..models._record import shown_fields

Pairs = Mapping[str, Any]
"""JSON pairs that are sent unchanged."""


class Params(ValueMixin):
    """A request object. Its repr masks personal and account data."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(shown_fields(self))})"


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
