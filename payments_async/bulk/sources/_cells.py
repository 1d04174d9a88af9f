"""Builds a payout request from the cells of one row, or lists their faults. Pure.

An amount becomes a Decimal in `PayoutRequest` (`params/requests.py`). JSON cells are read with exact numbers.
A missing instrument type is inferred when exactly one fits (gap L).
"""

from __future__ import annotations

import inspect
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final, NoReturn

import attrs

from ..._codec.encode import checked_body
from ..._validation import amount_guesses
from ..._validation.tables import check
from ...params import CustomerInput, Instrument, Money, PayoutRequest
from ._columns import AMOUNT, GATEWAY_OPTIONS, NOT_UTF8, PARTS, ROW_KEY, is_damaged, place, shown, unknown


@attrs.frozen
class InstrumentType:
    """The fields of one type of instrument, as its constructor takes them."""

    required: frozenset[str]
    allowed: frozenset[str]

    @classmethod
    def of(cls, constructor: Callable[..., Instrument]) -> InstrumentType:
        taken = inspect.signature(constructor).parameters.values()
        required = frozenset(one.name for one in taken if one.default is one.empty)
        return cls(required, frozenset(one.name for one in taken))


TYPES: Final[Mapping[str, InstrumentType]] = {
    name: InstrumentType.of(getattr(Instrument, name)) for name in ("phone", "bank_account", "crypto_address")
}
"""The known types, by the constructors of `Instrument`."""


def type_of(fields: Collection[str]) -> str | None:
    """Find the type that takes exactly these fields: all required ones are there, and none of another type.

    At most one can, as each requires a field that no other takes.
    """
    given = frozenset(fields)
    return next((name for name, one in TYPES.items() if one.required <= given <= one.allowed), None)


def type_missing(fields: Collection[str]) -> str:
    """Explain why no type fits these fields, as the end of a sentence that starts with `instrument.type`."""
    near = [
        (name, one.required.difference(fields)) for name, one in TYPES.items() if one.allowed >= {*fields}
    ]
    if len(near) == 1:
        ((name, missing),) = near
        names = ", ".join(f"instrument.{field}" for field in sorted(missing))
        return f"cannot be told without {names}: add it, and the type is {name}"
    needs = "; ".join(f"{name}: {', '.join(sorted(one.required))}" for name, one in TYPES.items())
    return f"is missing and the instrument's fields fit no type ({needs})"


_ANY_MOMENT: Final = datetime.max.replace(tzinfo=UTC)
"""No rule of a payout's fields depends on the time."""
_INT_DIGITS = 18  # whole numbers that every JSON reader keeps exact; longer ones are read as Decimals


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


Cells = Mapping[str, Any]  # {column: value} of one row, the empty ones left out
Faults = dict[str, str]  # {column: what is wrong with it}

EXACT_DIGITS: Final = 15
"""Significant digits that every JSON reader keeps, even one that reads numbers as doubles."""
_REQUIRED: Final = (AMOUNT, "currency", "method", "instrument")


def flatten(record: Mapping[str, Any]) -> tuple[dict[str, Any], Faults]:
    """Flatten a nested record into cells under dotted names. Null and empty text leave a field out.

    Nested metadata keeps both, because the service returns metadata unchanged.
    """
    cells: dict[str, Any] = {}
    faults: Faults = {}
    for name, value in _dotted(record):
        if name in cells:
            faults[shown(name)] = "is given twice, dotted and nested"
        cells[name] = value
    return cells, faults


def _dotted(record: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in record.items():
        if name in PARTS and isinstance(value, Mapping):
            kept = value.items() if name == "metadata" else _given(value)
            yield from ((f"{name}.{field}", item) for field, item in kept)
        elif value is not None and value != "":
            yield name, value


def _given(part: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    return ((field, item) for field, item in part.items() if item is not None and item != "")


def text_faults(cells: Cells) -> Faults:
    """Find cells whose text is damaged: {column: fault}."""
    faults: Faults = {}
    for name, value in cells.items():
        text = str(value)
        if is_damaged(name + text):
            faults[shown(name)] = NOT_UTF8
        elif "\0" in name or "\0" in text:
            faults[shown(name)] = "holds a NUL character"
    return faults


def build(cells: Cells) -> tuple[PayoutRequest, Faults]:
    """Build the request of a row. Returns it with all its faults by column (Endpoints, POST /payouts)."""
    faults: Faults = {}
    fields: dict[str, Any] = dict.fromkeys(_REQUIRED)
    parts: dict[str, dict[str, Any]] = {"": fields, "instrument": {}, "customer": {}, "metadata": {}}
    for name, value in cells.items():
        where = place(name)
        if where is None:
            faults[shown(name)] = "must be an object" if name in PARTS else unknown(name)
        elif value.__class__ is not str and (problem := _number_as_text(name, where[0], value)):
            faults[name] = problem
        else:
            parts[where[0]][where[1]] = value
    fields.pop(ROW_KEY, None)
    _join(fields, parts, faults)
    request, found = checked(PayoutRequest(**fields))
    found |= faults
    guess = amount_guesses.guess(fields[AMOUNT]) if AMOUNT in found else None
    if guess or (AMOUNT not in found and (guess := amount_guesses.problem(request.amount, request.currency))):
        found[AMOUNT] = guess
    return request, found


def checked(request: PayoutRequest) -> tuple[PayoutRequest, Faults]:
    """Validate a request. Returns it with its amount as a Decimal, and its faults by field."""
    if checked_body(request) is not None:  # as of nearly all
        return request, {}
    faults = {name: " and ".join(texts) for name, texts in check(request, now=_ANY_MOMENT).items()}
    if isinstance(request.amount, str) and AMOUNT not in faults:
        if doubt := amount_guesses.problem(request.amount, request.currency):
            faults[AMOUNT] = doubt
        request = attrs.evolve(request, amount=Decimal(request.amount))
    return request, faults


def _number_as_text(name: str, part: str, value: object) -> str | None:
    """Refuse a number where text belongs: it may already have lost its leading zeros or its plus."""
    if part == "metadata" or name == AMOUNT or isinstance(value, bool):
        return None
    return "is a number: write it as text" if isinstance(value, int | float | Decimal) else None


def _join(fields: dict[str, Any], parts: Mapping[str, dict[str, Any]], faults: Faults) -> None:
    """Put the parts of a request into its fields."""
    if instrument := parts["instrument"]:
        if "type" not in instrument:
            if (kind := type_of(instrument)) is None:
                faults.setdefault("instrument.type", type_missing(instrument))
            instrument["type"] = kind
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


def digits_warning(amount: Money) -> str | None:
    """Warn of an amount that may not arrive as it is written; None when every reader keeps it exact."""
    if len(str(amount)) <= EXACT_DIGITS:
        return None
    digits = "".join(map(str, Decimal(amount).as_tuple().digits)).strip("0")
    if len(digits) <= EXACT_DIGITS:
        return None
    return f"has {len(digits)} significant digits; more than {EXACT_DIGITS} may be rounded on the way"
