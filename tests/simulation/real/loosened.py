"""A safeguard of the real engine turned off: what the protocol's functions have for a default is swapped."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import FunctionType
from typing import Final

import attrs

from payments_async.bulk.protocol import (
    attempts,
    clocks,
    decisions,
    identifiers,
    matching,
    row_state,
    stop_rules,
)
from payments_async.bulk.protocol.identifiers import Identity
from payments_async.bulk.protocol.safeguards import ALL, ProtocolRules

_PLACES: Final = (clocks, attempts, stop_rules, identifiers, Identity, decisions, row_state, matching)


@contextlib.contextmanager
def without(safeguard: str) -> Iterator[None]:
    """Turn it off for all who ask the protocol without saying which safeguards hold, as the engine does."""
    loose = attrs.evolve(ALL, **{safeguard: False})
    functions = _functions()
    for function in functions:
        _swap(function, ALL, loose)
    try:
        yield
    finally:
        for function in functions:
            _swap(function, loose, ALL)


def _functions() -> list[FunctionType]:
    found = [each for place in _PLACES for each in vars(place).values() if isinstance(each, FunctionType)]
    return [each for each in found if ALL in _defaults(each)]


def _defaults(function: FunctionType) -> list[object]:
    return [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]


def _swap(function: FunctionType, old: ProtocolRules, new: ProtocolRules) -> None:
    def swapped(value: object) -> object:
        return new if value is old else value

    if function.__defaults__:
        function.__defaults__ = tuple(map(swapped, function.__defaults__))
    if function.__kwdefaults__:
        function.__kwdefaults__ = {name: swapped(value) for name, value in function.__kwdefaults__.items()}
