"""Builds a payout request from the cells of one row, or lists their faults. Pure.

An amount becomes a Decimal in `PayoutRequest` (`params/requests.py`). JSON cells are read with exact numbers.
A missing instrument type is inferred when exactly one fits (gap L).
"""

from __future__ import annotations

import inspect
import json
from collections import Counter
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final, NoReturn

import attrs

from ..._codec.encode import checked_body
from ..._validation import amount_guesses
from ..._validation.tables import check
from ...params import CustomerInput, Instrument, Money, PayoutRequest
from ._columns import (
    AMOUNT,
    GATEWAY_OPTIONS,
    NOT_UTF8,
    PARTS,
    REQUIRED,
    ROW_KEY,
    is_damaged,
    place,
    shown,
    unknown,
)

Cells = Mapping[str, Any]  # {column: value} of one row, the empty ones left out
Faults = Mapping[str, str]  # {column: what is wrong with it}
_NONE: Final[Faults] = {}

EXACT_DIGITS: Final = 15
"""Significant digits that every JSON reader keeps, even one that reads numbers as doubles."""
_INT_DIGITS = 18  # whole numbers that every JSON reader keeps exact; longer ones are read as Decimals
_ANY_MOMENT: Final = datetime.max.replace(tzinfo=UTC)
"""No rule of a payout's fields depends on the time."""

_TAKEN: Final = {
    name: inspect.signature(getattr(Instrument, name)).parameters.values()
    for name in ("phone", "bank_account", "crypto_address")
}
TYPES: Final[Mapping[str, frozenset[str]]] = {
    name: frozenset(field.name for field in taken) for name, taken in _TAKEN.items()
}
"""{type of instrument: its fields}, as the constructors of `Instrument` take them."""
_NEEDED: Final[Mapping[str, frozenset[str]]] = {
    name: frozenset(field.name for field in taken if field.default is field.empty)
    for name, taken in _TAKEN.items()
}


def type_of(fields: Collection[str]) -> str | None:
    """Find the type that takes exactly these fields: all required ones are there, and none of another type.

    At most one can, as each requires a field that no other takes.
    """
    given = frozenset(fields)
    return next((name for name, needed in _NEEDED.items() if needed <= given <= TYPES[name]), None)


def _type_missing(fields: Collection[str]) -> str:
    """Explain why no type fits these fields, as the end of a sentence that starts with `instrument.type`."""
    near = [name for name, allowed in TYPES.items() if allowed.issuperset(fields)]
    if len(near) == 1:
        names = ", ".join(f"instrument.{field}" for field in sorted(_NEEDED[near[0]].difference(fields)))
        return f"cannot be told without {names}: add it, and the type is {near[0]}"
    needs = "; ".join(f"{name}: {', '.join(sorted(needed))}" for name, needed in _NEEDED.items())
    return f"is missing and the instrument's fields fit no type ({needs})"


class NotJson(ValueError):
    """A text is not valid JSON. The message quotes none of its values."""


def parse(text: str) -> Any:
    """The JSON value in `text`; whole numbers as int, others as Decimal. Raises NotJson."""
    try:
        return _decode(text)
    except NotJson:
        raise
    except json.JSONDecodeError as error:
        problem = f"is not JSON: look at character {error.colno}"
    except ArithmeticError:
        problem = "holds a number that cannot be read"
    except RecursionError:
        problem = "is nested too deep"
    raise NotJson(problem)


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise NotJson(f"gives {shown(twice)} twice")
    return found


def _whole(digits: str) -> int | Decimal:
    return int(digits) if len(digits) <= _INT_DIGITS else Decimal(digits)


def _refuse(word: str) -> NoReturn:
    raise NotJson(f"holds {word}, which is not JSON")


_decode = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_float=Decimal, parse_int=_whole, parse_constant=_refuse
).decode


def flatten(record: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Flatten a nested record into cells under dotted names. Null and empty text leave a field out.

    Nested metadata keeps both, because the service returns metadata unchanged.
    """
    cells: dict[str, Any] = {}
    faults: dict[str, str] = {}
    for part, value in record.items():
        is_nested = part in PARTS and isinstance(value, Mapping)
        named = {f"{part}.{field}": item for field, item in value.items()} if is_nested else {part: value}
        for name, item in named.items():
            if (item is None or item == "") and not (is_nested and part == "metadata"):
                continue
            if name in cells:
                faults[shown(name)] = "is given twice, dotted and nested"
            cells[name] = item
    return cells, faults


def text_faults(cells: Cells) -> Faults:
    """Find cells whose text is damaged: {column: fault}."""
    faults: dict[str, str] = {}
    for name, value in cells.items():
        if is_damaged(text := f"{name}{value}"):
            faults[shown(name)] = NOT_UTF8
        elif "\0" in text:
            faults[shown(name)] = "holds a NUL character"
    return faults


def build(cells: Cells) -> tuple[PayoutRequest, dict[str, str]]:
    """Build the request of a row. Returns it with all its faults by column (Endpoints, POST /payouts)."""
    faults: dict[str, str] = {}
    fields: dict[str, Any] = dict.fromkeys((*REQUIRED, "instrument"))
    parts: dict[str, dict[str, Any]] = {"": fields, "instrument": {}, "customer": {}, "metadata": {}}
    for name, value in cells.items():
        where = place(name)
        if where is None:
            faults[shown(name)] = "must be an object" if name in PARTS else unknown(name)
        elif value.__class__ is not str and _is_number_as_text(name, where[0], value):
            faults[name] = "is a number: write it as text"
        else:
            parts[where[0]][where[1]] = value
    fields.pop(ROW_KEY, None)
    if instrument := parts["instrument"]:
        if "type" not in instrument:
            instrument["type"] = type_of(instrument)
        fields["instrument"] = Instrument(**instrument)
    if parts["customer"]:
        fields["customer"] = CustomerInput(**parts["customer"])
    if parts["metadata"]:
        fields["metadata"] = parts["metadata"]
    if isinstance(options := fields.get(GATEWAY_OPTIONS), str):
        try:
            fields[GATEWAY_OPTIONS] = parse(options)
        except NotJson as problem:
            fields[GATEWAY_OPTIONS] = None
            faults[GATEWAY_OPTIONS] = str(problem)
    request, found = checked(PayoutRequest(**fields), faults)
    guess = amount_guesses.guess(fields[AMOUNT]) if AMOUNT in found else None
    if guess or (AMOUNT not in found and (guess := amount_guesses.problem(request.amount, request.currency))):
        found[AMOUNT] = guess
    return request, found


def _is_number_as_text(name: str, part: str, value: object) -> bool:
    """Find a number where text belongs: it may already have lost its leading zeros or its plus."""
    if part == "metadata" or name == AMOUNT or isinstance(value, bool):
        return False
    return isinstance(value, int | float | Decimal)


def checked(request: PayoutRequest, known: Faults = _NONE) -> tuple[PayoutRequest, dict[str, str]]:
    """Validate a request. Returns it with its instrument's type and a Decimal amount, and its faults.

    `known`: faults that were found before.
    """
    found: dict[str, str] = {}
    missing: Faults = {}
    instrument = request.instrument
    if isinstance(instrument, Instrument) and not instrument.type and "instrument.type" not in known:
        if (kind := type_of(given := instrument.to_dict())) is None:
            missing = {"instrument.type": _type_missing(given)}
        else:
            request = attrs.evolve(request, instrument=attrs.evolve(instrument, type=kind))
    if missing or checked_body(request) is None:  # as of very few
        found = {name: " and ".join(texts) for name, texts in check(request, now=_ANY_MOMENT).items()}
        if isinstance(request.amount, str) and AMOUNT not in found:
            if doubt := amount_guesses.problem(request.amount, request.currency):
                found[AMOUNT] = doubt
            request = attrs.evolve(request, amount=Decimal(request.amount))
    return request, {**found, **known, **missing}


def digits_warning(amount: Money) -> str | None:
    """Warn of an amount that may not arrive as it is written; None when every reader keeps it exact."""
    if len(str(amount)) <= EXACT_DIGITS:
        return None
    digits = len("".join(map(str, Decimal(amount).as_tuple().digits)).strip("0"))
    if digits <= EXACT_DIGITS:
        return None
    return f"has {digits} significant digits; more than {EXACT_DIGITS} may be rounded on the way"
