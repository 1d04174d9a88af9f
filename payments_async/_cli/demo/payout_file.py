"""The payouts of the demonstration as a CSV file, and the faults that disturb some of them."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Final

import attrs

from ...models.common import amount_text
from ...params import Instrument
from .._output import Show

CURRENCY: Final = "GHS"
METHOD: Final = "mobile_money"
COLUMNS: Final = (
    "reference",
    "amount",
    "currency",
    "method",
    "instrument.country",
    "instrument.phone_number",
)
"""As `payments payouts run` reads them, too."""
FAULTS: Final[Mapping[str, str]] = {
    "lost_response": "answer lost",
    "cut_body": "answer cut off",
    "http:500": "HTTP 500",
    "429:1": "HTTP 429",
}
"""Each disturbs one payout: the sandbox's word for it, and a plain one."""


@attrs.frozen
class DemoPayout:
    """One payout of the file."""

    reference: str
    amount: Decimal
    instrument: Instrument


def write_csv(path: Path, count: int, seed: int) -> Path:
    """Write a file of `count` payouts, whose amounts depend on the seed; return its path."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for number in range(1, count + 1):
            amount = Decimal(100 + (number * 48_271 + seed * 69_621) % 49_877).scaleb(-2)
            writer.writerow([f"demo-{number:06}", amount, CURRENCY, METHOD, "GH", f"+23320{number:07}"])
    return path


def read_csv(path: Path) -> list[DemoPayout]:
    """The file's rows: every column as text (leading zeros and plus signs stay), the amount as a Decimal."""
    with path.open(newline="", encoding="utf-8") as file:
        return [
            DemoPayout(
                record["reference"],
                Decimal(record["amount"]),
                Instrument.phone(record["instrument.phone_number"], record["instrument.country"]),
            )
            for record in csv.DictReader(file)
        ]


def show_plan(file: Path, rows: Sequence[DemoPayout], show: Show) -> None:
    """Show what will be sent."""
    text = f"{len(rows):,} payouts, {amount_text(CURRENCY, total(rows))}"
    show.step("CSV", text, file=file.name, payouts=len(rows), sum=total(rows), currency=CURRENCY)


def total(rows: Sequence[DemoPayout]) -> Decimal:
    """The sum of the rows in major units."""
    return sum((row.amount for row in rows), Decimal(0))


def disturbed(rows: Sequence[DemoPayout], seed: int) -> dict[str, str]:
    """{reference: fault}, one payout for each of `FAULTS`, spread over the rows."""
    count = min(len(rows), len(FAULTS))
    places = [(len(rows) * (2 * turn + 1) // (2 * count) + seed) % len(rows) for turn in range(count)]
    return {rows[place].reference: fault for place, fault in zip(sorted(places), FAULTS, strict=False)}
