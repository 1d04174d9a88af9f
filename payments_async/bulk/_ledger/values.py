"""Rows of the tables as values, and values as rows. What a ledger holds is bounded where it is read. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Annotated, Any, Final, TypedDict

import attrs
import msgspec
import sqlalchemy as sa

from ...models.statuses import PayoutEnd
from .._protocol.outcomes import EXACT, RowState, Turn
from .._protocol.records import Batch, Binding, LedgerRow, NewRow, StatusChange
from .tables import batches, rows, words


class UnreadableRow(ValueError):
    """A row holds what this package never writes: which one, and what."""


MOST_DIGITS: Final = 18
"""Digits of an amount: as many as a database's whole number holds."""
_MOST_BYTES: Final = 65_536  # of a body: one that this package made is far below that
_HALF: Final = 1_000_000_000
"""Sums are made of two halves, each of which no sum of a database leaves 64 bits."""
_SCALES: Final = range(31)
_MOST_TEXT: Final = 2_000_000
_LATEST: Final = 253_402_300_799.0  # the end of the year 9999
_CODE: Final = re.compile(r"[A-Z]{3}")
_Amount = Annotated[str, msgspec.Meta(pattern=r"\A-?[0-9]{1,60}(?:\.[0-9]{1,31})?\Z")]
_Sums = dict[str, _Amount]
_Moment = Annotated[float, msgspec.Meta(ge=0, le=_LATEST)]


class _Compared(TypedDict):
    """What each certificate has at least of the list."""

    seen: int
    missing: int
    differing: int
    rounded: _Sums
    turns: list[str]
    fields: dict[str, dict[str, int]]


class _Certificate(TypedDict):
    """What each certificate has at least."""

    batch_id: str
    environment: str
    base_url: str
    key_fingerprint: str
    input_hash: str
    at: _Moment
    looked_at: _Moment
    agrees: bool
    clean: bool
    settled: bool
    findings: list[str]
    rows: dict[str, int]
    sums: dict[str, _Sums]
    list: _Compared


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
    units, scale = units_of(row.amount)
    facts = {name: getattr(row, name) for name in ("line", "row_key", "stem", "currency", "method", "body")}
    place = {"batch_id": batch_id, "environment": environment, "number": row.number or None}
    return {**place, **facts, "units": units, "scale": scale}


# Reading

_Bound = tuple[str, type, float]


def _bounds(columns: Iterable[sa.Column[Any]]) -> tuple[_Bound, ...]:
    """Of each column: its name, the type of its values, and how long or large they may be."""

    def bound(kind: Any) -> tuple[type, float]:
        if isinstance(kind, sa.String):
            return str, _MOST_TEXT if kind.length is None else 10 * kind.length
        return (int, 1 << 63) if isinstance(kind, sa.Integer | sa.Boolean) else (float, _LATEST)

    return tuple((column.name, *bound(column.type)) for column in columns)


def _bounded(found: Mapping[Any, Any], bounds: Iterable[_Bound]) -> dict[str, Any]:
    """These columns' values. Raises UnreadableRow for one that this package never writes."""
    values = {name: found[name] for name, _, _ in bounds}
    for name, kind, most in bounds:
        value = values[name]
        if value is None:
            continue
        is_kind = isinstance(value, int | float) if kind is float else isinstance(value, kind)
        if not is_kind or not 0 <= (len(value) if kind is str else value) <= most:
            raise UnreadableRow(f"its {name} is nothing that this package writes")
    return values


def _json_of(text: str, kind: Any) -> Any:
    """Read JSON text of this type. Raises UnreadableRow for any other."""
    try:
        msgspec.json.decode(text, type=kind)
        return json.loads(text)
    except (ValueError, RecursionError):
        raise UnreadableRow("it holds what this package never writes") from None


def currency_of(value: object) -> str:
    """Read a currency. Raises UnreadableRow."""
    if not isinstance(value, str) or not _CODE.fullmatch(value):
        raise UnreadableRow("it has a currency that is none")
    return value


_READ: Final = ("number", "units", "scale", "body", "state", "turn", "payout_end")
_PLAIN: Final = tuple(
    field.name for field in attrs.fields(LedgerRow) if field.name in rows.c and field.name not in _READ
)
COLUMNS: Final = (*_PLAIN, *_READ)  # the columns of `rows` that make a `LedgerRow`
_OF_ROW: Final = _bounds(rows.c[name] for name in COLUMNS if name != "body")
_OF_BATCH: Final = _bounds(batches.c)
_OF_WORD: Final = _bounds(words.c)
_OF_BINDING: Final = ("batch_id", "environment", "base_url", "account", "input_hash", "input_stat")
_SAME: Final = tuple(
    field.name
    for field in attrs.fields(Batch)
    if field.name in batches.c and field.name not in ("created_at", "certificate")
)
"""Facts of a batch that are columns as they are."""


def row_of(found: Mapping[Any, Any]) -> LedgerRow:
    """Read a row. Raises UnreadableRow for values that this package never writes."""
    try:
        values, body = _bounded(found, _OF_ROW), bytes(found["body"])
        if len(body) > _MOST_BYTES:
            raise UnreadableRow("it has a body that is longer than any of this package")
        currency_of(values["currency"])
        return LedgerRow(
            number=values["number"] or values["id"],
            amount=amount_of(values["units"], values["scale"]),
            body=body,
            state=RowState(values["state"]),
            turn=Turn(values["turn"]),
            payout_end=PayoutEnd(values["payout_end"]),
            **{name: values[name] for name in _PLAIN},
        )
    except (ValueError, TypeError, ArithmeticError) as error:
        number = found["number"] or found["id"]
        raise UnreadableRow(f"row {str(number)[:20]} cannot be read: {error}") from None


def word_of_service(found: Mapping[Any, Any]) -> StatusChange:
    """Read a word of the service. Raises UnreadableRow."""
    values = _bounded(found, _OF_WORD)
    return StatusChange(
        *(values[name] for name in ("status", "payout_id", "at", "service_at", "contradicts"))
    )


def batch_of(found: Mapping[Any, Any]) -> Batch:
    """Read a batch's line; only its name, and why, where it holds values that this package never writes."""
    try:
        values = _bounded(found, _OF_BATCH)
        sums = _json_of(values["imported_sums"], _Sums)
    except UnreadableRow as error:
        return Batch(
            Binding(str(found["batch_id"])[:191], "", "", "", "", ""), 0.0, 0, {}, unreadable=str(error)
        )
    try:
        certificate = _json_of(values["certificate"] or "", _Certificate)
    except UnreadableRow:
        certificate = None  # which a run makes anew
    binding = Binding(*(values[name] or "" for name in _OF_BINDING))
    return Batch(
        binding,
        values["created_at"],
        values["imported_rows"],
        {code: Decimal(amount) for code, amount in sums.items()},
        certificate=certificate,
        is_confirmed=values["confirmed"] is not None,
        now=found["now"],
        **{name: values[name] for name in _SAME},
    )
