"""Converts a ledger's rows to records of an export: content and outcome, account data masked. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import attrs

from ..._codec import decode, encode
from ...models._masking import is_visible
from ...params import CustomerInput, Instrument
from .._protocol.attempts import is_time
from .._protocol.clocks import Timestamps
from .._protocol.identifiers import PROOF_KEY
from .._protocol.outcomes import as_text
from .._protocol.records import LedgerRow
from .._protocol.row_state import RowState

MASK: Final = "***"
Record = dict[str, Any]
"""{column: value}; the parts of the request are nested."""

FACTS: Final = (
    *("number", "line", "row_key", "reference", "outcome", "payout_id", "payout_status", "status_at"),
    *("amount", "currency", "payout_amount", "payout_currency", "method", "description"),
    *("generation", "failure_code", "failure_message"),
)
"""The columns of every export."""
WHOLE_NUMBERS: Final = frozenset({"number", "line", "generation"})
"""Columns of whole numbers; all others are text."""
_KINDS: Final = {"instrument": Instrument, "customer": CustomerInput}
_OPEN: Final = {
    part: frozenset(field.name for field in attrs.fields(kind) if not callable(field.repr))
    for part, kind in _KINDS.items()
}
"""Fields without account or personal data, which a request's repr shows too."""
ACCOUNT_COLUMNS: Final = tuple(
    f"{part}.{field.name}" for part, kind in _KINDS.items() for field in attrs.fields(kind)
)

INPUT_COLUMNS: Final = ("line", "description", *ACCOUNT_COLUMNS)
"""Columns that the input may leave empty in all rows, and that no run fills."""


def record(row: LedgerRow, at: Timestamps | None = None, *, accounts: bool) -> Record:
    """Make a row's record. `at`: of its last change. `accounts`: with instruments and customers in full.

    The payout's own amount is there for rows that have a payout: what was asked for, unless the service shows
    another. The time of its status is the service's, where that is known.
    """
    known, (currency, amount) = row.known, _money_of(row)
    body: Mapping[str, Any] = decode.parse(row.body)
    return {
        "number": row.number,
        "line": row.line,
        "row_key": row.row_key,
        "reference": row.reference,
        "outcome": row.outcome.value,
        "payout_id": known.payout_id or None,
        "payout_status": row.service_status,
        "status_at": None if at is None or row.service_status is None else _status_time(at),
        "amount": as_text(row.amount),
        "currency": row.currency,
        "payout_amount": amount,
        "payout_currency": currency,
        "method": row.method,
        "description": body.get("description"),
        "generation": known.generation,
        "failure_code": row.failure_code,
        "failure_message": row.failure_message,
        **{part: _shown(part, body.get(part), accounts=accounts) for part in _KINDS},
        "metadata": {name: value for name, value in pairs(row).items() if name != PROOF_KEY},
    }


def _money_of(row: LedgerRow) -> tuple[str | None, str | None]:
    """The currency and the amount of the row's payout, as far as it is known to have one."""
    if row.payout_money is not None:
        currency, _, amount = row.payout_money.rpartition(" ")
        return currency or None, amount
    return (row.currency, as_text(row.amount)) if row.state is RowState.CREATED else (None, None)


def _status_time(at: Timestamps) -> str | None:
    seconds = at.wall if at.server is None else at.server
    return time_text(seconds) if is_time(seconds) else None


def time_text(seconds: float) -> str:
    """Format a time, seconds since 1970: `2026-06-30T10:00:00Z`."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def pairs(row: LedgerRow) -> Mapping[str, Any]:
    """Read the operator's own metadata of a row."""
    found: Mapping[str, Any] = {} if row.metadata is None else decode.parse(row.metadata.encode())
    return found


def _shown(part: str, value: Any, *, accounts: bool) -> dict[str, Any]:
    """Copy a part of the request; all fields not known to be harmless are masked."""
    fields = value if isinstance(value, Mapping) else {}
    return {name: item if accounts or name in _OPEN[part] else MASK for name, item in fields.items()}


def filled(row: LedgerRow) -> Iterator[str]:
    """Name the columns of `INPUT_COLUMNS` that a row fills."""
    values = flat(record(row, accounts=False), INPUT_COLUMNS)
    return (name for name, value in zip(INPUT_COLUMNS, values, strict=True) if value is not None)


def columns(names: Collection[str] | None) -> tuple[str, ...]:
    """List the columns of a flat export; with `names` None, all metadata is one column of JSON."""
    metadata = ["metadata"] if names is None else [f"metadata.{name}" for name in sorted(names)]
    return (*FACTS, *ACCOUNT_COLUMNS, *metadata)


def flat(entry: Record, wanted: Collection[str]) -> Iterator[Any]:
    """Flatten a record to the values of columns; values that are no text, number or boolean become JSON."""
    values = {name: entry[name] for name in FACTS}
    for part in _KINDS:
        values.update({f"{part}.{name}": _plain(value) for name, value in entry[part].items()})
    if "metadata" in wanted:
        values["metadata"] = json_text(entry["metadata"]) if entry["metadata"] else None
    else:
        values.update({f"metadata.{name}": _plain(value) for name, value in entry["metadata"].items()})
    return (values.get(column) for column in wanted)


def _plain(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json_text(value)


def json_text(value: Any) -> str:
    """Encode a value as JSON text, numbers exact, control characters escaped."""
    text = encode.encode_json(value).decode()
    if text.isprintable():
        return text
    return "".join(sign if is_visible(sign) else json.dumps(sign)[1:-1] for sign in text)
