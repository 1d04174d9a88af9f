"""Amounts as callers give them, and what request objects share: a masked repr."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from importlib import import_module
from typing import Any

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

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """The schema for pydantic: all faults at once, in the words of a call's own check."""
        schemas = import_module("payments_async._pydantic.requests")  # by name: its rules stand above
        return schemas.request_schema(cls, handler)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> Any:
        """The JSON schema, which shows limits and formats; the same for reading and writing."""
        return handler(schema["json_schema_input_schema"])


Money = Decimal | int | str
"""Major units, exact: `Decimal("10.10")`, `50`, `"10.10"`. A float is refused: it is not exact."""

_MOST_ZEROS = 40
"""More than any amount of money ends with: such a number is left for the validation."""
_DECIMAL_SIGNS = frozenset("0123456789.+-eE")


def decimal_if_readable(value: Any) -> Any:
    """Convert an int or plain decimal text to a Decimal; leave anything else for the validation.

    An exponent is written out, as not every JSON reader takes `1.5E+3` for an amount.
    """
    if value.__class__ is Decimal:
        return value if "E" not in str(value) else _written_out(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return Decimal(value)
    if isinstance(value, str) and value.isascii() and len(value) <= 100 and _DECIMAL_SIGNS.issuperset(value):
        try:
            return _written_out(Decimal(value))
        except ArithmeticError:
            return value
    return value


def _written_out(value: Decimal) -> Decimal:
    exponent = value.as_tuple().exponent
    return Decimal(f"{value:f}") if isinstance(exponent, int) and 0 < exponent <= _MOST_ZEROS else value
