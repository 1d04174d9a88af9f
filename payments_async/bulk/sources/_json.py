"""JSON read for money: numbers exact, no name twice, nothing that is not JSON."""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal
from typing import Any, NoReturn

from ._columns import shown

_INT_DIGITS = 18  # what every JSON reader takes for a whole number; longer ones stay exact as Decimals


class NotJson(ValueError):
    """Why a text cannot be taken as JSON, without quoting its values."""


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
