"""Converts a ledger's rows to records of an export: content and outcome, account data masked. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import attrs

from ..._codec import decode, encode
from ...models._masking import is_visible
from ...params import CustomerInput, Instrument
from .._protocol.identifiers import PROOF_KEY
from .._protocol.outcomes import RowState, as_text
from .._protocol.records import HIDDEN, LedgerRow

Record = dict[str, Any]  # {column: value}; the parts of the request are nested

FACTS: Final = (
    *("number", "line", "row_key", "reference", "outcome", "amount", "currency"),
    *("payout_id", "payout_status", "ended_at", "read_at", "payout_amount", "payout_currency"),
    *("method", "description", "generation", "failure_code", "failure_message"),
)
"""The columns of every export. `ended_at` is the service's `completed_at` or `failed_at`; `read_at` is when
the ledger read the payout's status."""
WHOLE_NUMBERS: Final = frozenset({"number", "line", "generation"})
"""Columns of whole numbers: numbers in a workbook; all others are text, amounts or times."""
_MONEY: Final = re.compile(
    r"(?:(\S{1,64}) )?(-?[0-9]{1,80}(?:\.[0-9]{1,80})?(?:E[+-]?[0-9]{1,3})?)", re.ASCII
)
"""What a payout is of: its currency, its amount, or both."""
_PARTS: Final = {"instrument": Instrument, "customer": CustomerInput}
_OPEN: Final = {
    part: frozenset(field.name for field in attrs.fields(kind) if not callable(field.repr))
    for part, kind in _PARTS.items()
}
"""Fields without account or personal data, which a request's repr shows too."""
ACCOUNT_COLUMNS: Final = tuple(
    f"{part}.{field.name}" for part, kind in _PARTS.items() for field in attrs.fields(kind)
)


def record(row: LedgerRow, *, accounts: bool, read_at: float | None = None) -> Record:
    """Make a row's record. `accounts`: with instruments and customers in full.

    The payout's own amount is there for rows that have a payout: what was asked for, unless the service shows
    another. `read_at`: when the list showed the payout's status; None where the answer to its creation did.
    """
    body: Mapping[str, Any] = decode.parse(row.body)
    currency, amount = _money_of(row)
    read_at = None if row.payout_id is None else row.decided_at if read_at is None else read_at
    metadata: Mapping[str, Any] = body.get("metadata") or {}
    return {
        "number": row.number,
        "line": row.line,
        "row_key": row.row_key,
        "reference": row.reference,
        "outcome": row.outcome.value,
        "amount": as_text(row.amount),
        "currency": row.currency,
        "payout_id": row.payout_id,
        "payout_status": row.service_status,
        "ended_at": None if row.service_at is None else time_text(row.service_at),
        "read_at": None if read_at is None else time_text(read_at),
        "payout_amount": amount,
        "payout_currency": currency,
        "method": row.method,
        "description": body.get("description"),
        "generation": row.generation,
        "failure_code": row.failure_code,
        "failure_message": row.failure_message,
        **{part: _shown(part, body.get(part) or {}, accounts=accounts) for part in _PARTS},
        "metadata": {name: value for name, value in metadata.items() if name != PROOF_KEY},
    }


def _money_of(row: LedgerRow) -> tuple[str | None, str | None]:
    """The currency and the amount of the row's payout, as far as it is known to have one."""
    if row.payout_money is not None:
        found = _MONEY.fullmatch(row.payout_money)
        return (found[1], found[2]) if found else (row.payout_money or None, None)
    return (row.currency, as_text(row.amount)) if row.state is RowState.CREATED else (None, None)


def time_text(seconds: float) -> str:
    """Format a time, seconds since 1970: `2026-06-30T10:00:00Z`."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _shown(part: str, fields: Mapping[str, Any], *, accounts: bool) -> dict[str, Any]:
    """Copy a part of the request; all fields not known to be harmless are masked."""
    return {name: value if accounts or name in _OPEN[part] else HIDDEN for name, value in fields.items()}


def flat(entry: Record, columns: Collection[str]) -> Iterator[Any]:
    """Flatten a record to the values of columns; values that are no text, number or boolean become JSON."""
    values = {name: entry[name] for name in FACTS}
    for part in (*_PARTS, "metadata"):
        values.update({f"{part}.{name}": _plain(value) for name, value in entry[part].items()})
    values["metadata"] = json_text(entry["metadata"]) if entry["metadata"] else None
    return (values.get(column) for column in columns)


def _plain(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json_text(value)


def json_text(value: Any) -> str:
    """Encode a value as JSON text, numbers exact, control characters escaped."""
    text = encode.encode_value(value).decode()
    if text.isprintable():
        return text
    return "".join(sign if is_visible(sign) else json.dumps(sign)[1:-1] for sign in text)
