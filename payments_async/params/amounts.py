"""Amounts as callers give them, and what request objects share: a masked repr."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Context, Decimal, Inexact
from typing import Any, TypeGuard

import attrs

from .._attrs import ValueMixin
from ..models._record import shown_fields

Pairs = Mapping[str, Any]
"""JSON pairs that are sent unchanged."""


class Params(ValueMixin):
    """A request object. Its repr masks personal and account data."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(shown_fields(self))})"

    def to_dict(self) -> dict[str, Any]:
        """The fields that are set, by name: `client.payouts.create(**request.to_dict())`."""
        cls: Any = type(self)
        values = {field.name: getattr(self, field.name) for field in attrs.fields(cls)}
        return {name: value for name, value in values.items() if value is not None}


Money = Decimal | int | str
"""Major units, exact: `Decimal("10.10")`, `50`, `"10.10"`. A float is refused: it is not exact."""

MOST_DIGITS = 40
MOST_POWER = 30
"""Of ten. More digits, or a greater number, than any amount of money has."""
_SIGNS = frozenset("0123456789.+-eE")
_without_zeros = Context(prec=100, traps=[Inexact]).normalize
_THREE_DECIMALS = r"[0-9]+\.[0-9]{3}"


def decimal_if_readable(value: object) -> Any:
    """Convert an int, a Decimal or plain decimal text to the one Decimal of its value.

    It has no exponent, as not every JSON reader takes `1.5E+3` for an amount, and no zeros that end its
    fraction: so equal amounts are equal bytes. A text such as `1.500` is left, as it may be 1500, and so is
    anything else for the validation.
    """
    if value.__class__ is Decimal:
        text = str(value)
        if "E" in text or len(text) > MOST_DIGITS:
            return _plain(value)
        if "." not in text or text[-1] != "0":
            return value
        return _without_zeros(value) if text[-2] not in "0." else _plain(value)
    if isinstance(value, str):
        is_plain = value.isascii() and len(value) <= 100 and _SIGNS.issuperset(value)
        if not is_plain or value[:1] in "+-":
            return value
        if has_three_decimals(value):
            return str.__str__(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        return Decimal(value)
    elif not isinstance(value, Decimal):
        return value
    try:
        return _plain(Decimal(value))
    except ArithmeticError:
        return value


def _plain(value: Decimal) -> Decimal:
    try:
        plain = _without_zeros(value)
    except Inexact:  # of so many digits no amount is made
        return value
    if "E" not in str(plain):
        return plain
    return Decimal(f"{plain:f}") if abs(plain.adjusted()) <= MOST_POWER else value


def has_three_decimals(value: object) -> TypeGuard[str]:
    """Return whether an amount is a text such as `1.500`, which may mean thousands."""
    is_like = isinstance(value, str) and value[-4:-3] == "."
    return is_like and re.fullmatch(_THREE_DECIMALS, str(value)) is not None
