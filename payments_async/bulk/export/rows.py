"""Converts a ledger's rows to records of an export: content and outcome, account data masked. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import attrs

from ..._codec import decode, encode
from ...models._masking import is_visible
from ...params import CustomerInput, Instrument
from ..protocol.identifiers import PROOF_KEY
from ..protocol.records import LedgerRow
from ..protocol.totals import as_text

MASK: Final = "***"
Record = dict[str, Any]
"""{column: value}; the parts of the request are nested."""

FACTS: Final = (
    *("number", "line", "row_key", "reference", "outcome", "payout_id", "payout_status"),
    *("amount", "currency", "method", "description"),
    *("generation", "failure_code", "failure_message"),
)
"""The columns of every export."""
WHOLE: Final = frozenset({"number", "line", "generation"})
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


def record(row: LedgerRow, *, accounts: bool) -> Record:
    """Make a row's record. `accounts`: with instruments and customers in full."""
    known = row.known
    body: Mapping[str, Any] = decode.parse(row.body)
    return {
        "number": row.number,
        "line": row.line,
        "row_key": row.row_key,
        "reference": row.reference,
        "outcome": row.outcome.value,
        "payout_id": known.payout_id or None,
        "payout_status": row.service_status,
        "amount": as_text(row.amount),
        "currency": row.currency,
        "method": row.method,
        "description": body.get("description"),
        "generation": known.generation,
        "failure_code": row.failure_code,
        "failure_message": row.failure_message,
        **{part: _shown(part, body.get(part), accounts=accounts) for part in _KINDS},
        "metadata": {name: value for name, value in pairs(row).items() if name != PROOF_KEY},
    }


def pairs(row: LedgerRow) -> Mapping[str, Any]:
    """Read the operator's own metadata of a row."""
    found: Mapping[str, Any] = {} if row.metadata is None else decode.parse(row.metadata.encode())
    return found


def _shown(part: str, value: Any, *, accounts: bool) -> dict[str, Any]:
    """Copy a part of the request; all fields not known to be harmless are masked."""
    fields = value if isinstance(value, Mapping) else {}
    return {name: item if accounts or name in _OPEN[part] else MASK for name, item in fields.items()}


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
