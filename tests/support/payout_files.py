"""Files of payouts for tests: write one, read it, tell its rows from its faults."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from payments_async.bulk._loading.load import source_of as source_of
from payments_async.bulk.sources import FileSource, Row, RowFault, open_source
from payments_async.bulk.sources._rejects import unescaped as unescaped

PHONE: Mapping[str, str] = {
    "amount": "50.10",
    "currency": "XCD",
    "method": "mtn_bj",
    "instrument.phone_number": "+2290190000000",
    "instrument.country": "BJ",
}
"""A payout with no more than it needs, as cells."""
FACTS = (
    *("number", "line", "row_key", "reference", "outcome", "amount", "currency"),
    *("payout_id", "payout_status", "ended_at", "read_at", "payout_amount", "payout_currency"),
    *("method", "description", "generation", "failure_code", "failure_message"),
)
"""The columns of every export."""


def csv_file(folder: Path, *rows: Mapping[str, str], columns: Sequence[str] | None = None) -> Path:
    """A CSV file with these rows; its columns are the first row's unless said."""
    path = folder / "payouts.csv"
    with path.open("w", newline="", encoding="utf-8", errors="surrogateescape") as file:
        writer = csv.DictWriter(file, columns or list(rows[0]), restval="")
        writer.writeheader()
        writer.writerows(rows)
    return path


def jsonl_file(folder: Path, *rows: Any) -> Path:
    """A JSON Lines file; texts are written as they are."""
    path = folder / "payouts.jsonl"
    path.write_text("".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in rows))
    return path


def bytes_file(folder: Path, content: bytes, name: str = "payouts.csv") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def read(path: Path, **options: Any) -> tuple[list[Row], list[RowFault]]:
    return split(open_source(path, **options))


def split(source: FileSource) -> tuple[list[Row], list[RowFault]]:
    items = list(source.read())
    rows = [item for item in items if isinstance(item, Row)]
    return rows, [item for item in items if isinstance(item, RowFault)]


def reported(faults: Iterable[RowFault]) -> list[tuple[int | None, str | None, str]]:
    return [(fault.line, fault.column, fault.reason) for fault in faults]
