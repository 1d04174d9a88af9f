"""Rows of the tables as values, and values as rows. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

import attrs

from ...models.statuses import PayoutEnd
from .._protocol.outcomes import EXACT
from .._protocol.records import Batch, Binding, LedgerRow, NewRow, StatusChange
from .._protocol.row_state import RowState, Turn
from .tables import batches, rows


class UnreadableRow(ValueError):
    """A row holds what this package never writes: which one, and what."""


MOST_DIGITS: Final = 18
"""Digits of an amount: as many as a database's whole number holds."""
_HALF: Final = 1_000_000_000
"""Sums are made of two halves, each of which no sum of a database leaves 64 bits."""
_SCALES: Final = range(31)
_CODE: Final = re.compile(r"[A-Z]{3}")


def units_of(amount: Decimal) -> tuple[int, int]:
    """Write an amount as (whole number, decimals). Raises ValueError for more than 18 digits."""
    sign, digits, exponent = amount.normalize(EXACT).as_tuple()
    if sign or not isinstance(exponent, int) or len(digits) + max(exponent, 0) > MOST_DIGITS:
        raise ValueError(f"has more than {MOST_DIGITS} digits, of which a ledger has no more")
    scale = max(-exponent, 0)
    if scale not in _SCALES:
        raise ValueError(f"has more than {_SCALES[-1]} decimals")
    return int(amount.scaleb(scale, EXACT)), scale


def amount_of(units: int, scale: int) -> Decimal:
    """Read an amount. Raises UnreadableRow for what `units_of` never writes."""
    if scale not in _SCALES or not 0 <= units < 10**MOST_DIGITS:
        raise UnreadableRow("it has an amount that is none")
    return Decimal(units).scaleb(-scale, EXACT)


def total_of(high: Any, low: Any, scale: int) -> Decimal:
    """The sum whose halves a database has added up."""
    if scale not in _SCALES:
        raise UnreadableRow("an amount has more decimals than any of this package")
    return Decimal(int(high) * _HALF + int(low)).scaleb(-scale, EXACT)


def halves(units: Any) -> tuple[Any, Any]:
    """The two parts of a column of whole numbers that a database adds up: floor division, never `/`."""
    return units // _HALF, units % _HALF


def imported(row: NewRow, batch_id: str, environment: str) -> dict[str, Any]:
    """The columns of a new row."""
    units, scale = units_of(row.amount)
    return {
        "batch_id": batch_id,
        "environment": environment,
        "number": row.number or None,
        "line": row.line,
        "row_key": row.row_key,
        "stem": row.stem,
        "units": units,
        "scale": scale,
        "currency": row.currency,
        "method": row.method,
        "body": row.body,
    }


# Reading


def currency_of(value: object) -> str:
    """Read a currency. Raises UnreadableRow."""
    if not isinstance(value, str) or not _CODE.fullmatch(value):
        raise UnreadableRow("it has a currency that is none")
    return value


_READ: Final = ("number", "units", "scale", "currency", "body", "state", "turn", "payout_end")
_PLAIN: Final = tuple(
    field.name for field in attrs.fields(LedgerRow) if field.name in rows.c and field.name not in _READ
)
COLUMNS: Final = (*_PLAIN, *_READ)
"""The columns of `rows` that make a `LedgerRow`."""
_SAME: Final = tuple(
    field.name
    for field in attrs.fields(Batch)
    if field.name in batches.c and field.name not in ("created_at", "certificate")
)
"""Facts of a batch that are columns as they are."""


def row_of(found: Mapping[Any, Any]) -> LedgerRow:
    """Read a row. Raises UnreadableRow for values that this package never writes."""
    try:
        return LedgerRow(
            number=found["number"] or found["id"],
            amount=amount_of(found["units"], found["scale"]),
            currency=currency_of(found["currency"]),
            body=bytes(found["body"]),
            state=RowState(found["state"]),
            turn=Turn(found["turn"]),
            payout_end=PayoutEnd(found["payout_end"]),
            **{name: found[name] for name in _PLAIN},
        )
    except (ValueError, TypeError, ArithmeticError) as error:
        number = found["number"] or found["id"]
        raise UnreadableRow(f"row {str(number)[:20]} cannot be read: {error}") from None


def word_of_service(found: Mapping[Any, Any]) -> StatusChange:
    """Read a word of the service."""
    return StatusChange(*(found[name] for name in ("status", "payout_id", "at", "service_at", "contradicts")))


def batch_of(found: Mapping[Any, Any]) -> Batch:
    """Read a batch's line. Raises UnreadableRow for values that this package never writes."""
    try:
        sums, certificate = json.loads(found["imported_sums"]), json.loads(found["certificate"] or "null")
        totals = {code: Decimal(amount) for code, amount in sums.items()}
    except (ValueError, TypeError, ArithmeticError, AttributeError) as error:
        name = str(found["batch_id"])[:191]
        raise UnreadableRow(f"its batch {name} cannot be read: {type(error).__name__}") from None
    binding = Binding(
        found["batch_id"],
        found["environment"],
        found["base_url"],
        found["account"] or "",
        found["input_hash"],
        found["input_stat"],
    )
    return Batch(
        binding,
        found["created_at"],
        found["imported_rows"],
        totals,
        certificate=certificate,
        is_confirmed=found["confirmed"] is not None,
        now=found["now"],
        **{name: found[name] for name in _SAME},
    )
