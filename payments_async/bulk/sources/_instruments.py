"""Which instrument type a payout's fields are of, when nobody says (gap L)."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from typing import Final

import attrs

from ...params import Instrument


@attrs.frozen
class _Type:
    required: frozenset[str]
    allowed: frozenset[str]


def _type(name: str) -> _Type:
    """What the constructor of a type takes."""
    taken = inspect.signature(getattr(Instrument, name)).parameters.values()
    required = frozenset(one.name for one in taken if one.default is one.empty)
    return _Type(required, frozenset(one.name for one in taken))


TYPES: Final[Mapping[str, _Type]] = {
    name: _type(name) for name in ("phone", "bank_account", "crypto_address")
}
"""The known types, by the constructors of `Instrument`."""


def fitting(fields: Collection[str]) -> list[str]:
    """The types that take exactly these fields: every required one is there, and no field of another type."""
    given = frozenset(fields)
    return [name for name, one in TYPES.items() if one.required <= given <= one.allowed]


def undecided() -> str:
    """Why no type was taken, as the end of a sentence that starts with `instrument.type`.

    At most one type can fit, as each requires a field that no other takes; so the fields are too few or of
    several types.
    """
    needs = "; ".join(f"{name}: {', '.join(sorted(one.required))}" for name, one in TYPES.items())
    return f"is missing and the instrument's fields fit no type ({needs})"
