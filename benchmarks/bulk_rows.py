"""The input of the bulk benchmarks: a payout file of any length, each row a pure function of its number."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

_COLUMNS = (
    "reference",
    "amount",
    "currency",
    "method",
    "description",
    "instrument.phone_number",
    "instrument.country",
    "instrument.account_name",
    "metadata.depot",
)


def reference(number: int) -> str:
    """The reference of a row, counted from 1; `number_of` is its inverse."""
    return f"bench-{number:09d}"


def number_of(reference: str) -> int:
    """The row a reference belongs to."""
    return int(reference.removeprefix("bench-"))


def money(number: int) -> tuple[str, Decimal]:
    """Currency and amount of a row: every fourth is in whole francs, the others have hundredths."""
    if number % 4 == 0:
        return "XOF", Decimal(500 + number * 7 % 90_000)
    return "GHS", Decimal(100 + number * 37 % 900_000) / 100


def totals(rows: int) -> dict[str, Decimal]:
    """The sum of the amounts per currency."""
    sums: dict[str, Decimal] = {}
    for currency, amount in map(money, range(1, rows + 1)):
        sums[currency] = sums.get(currency, Decimal(0)) + amount
    return sums


def write(path: Path, rows: int) -> None:
    """The file. Phone numbers keep clear of those that make the sandbox misbehave (`9900NN` at the end)."""
    with path.open("w", newline="", encoding="utf-8") as file:
        written = csv.writer(file)
        written.writerow(_COLUMNS)
        written.writerows(_values(rows))


def _values(rows: int) -> Iterator[tuple[object, ...]]:
    for number in range(1, rows + 1):
        currency, amount = money(number)
        yield (
            reference(number),
            amount,
            currency,
            "mtn_momo_gh",
            f"Weekly rider settlement, row {number}",
            f"+23324{number * 7 % 900_000:07d}",
            "GH",
            "Ama Mensah",
            "accra-central",
        )
