"""The demonstration's payouts: a CSV file, the faults that disturb some of them, and what the books say."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Final

from ...bulk.sources import Row, open_source
from ...models.common import amount_text
from ...sandbox import Books
from .._exit_codes import Exit
from .._output import Show

CURRENCY: Final = "GHS"
METHOD: Final = "mobile_money"
COLUMNS: Final = (
    *("reference", "amount", "currency", "method"),
    *("instrument.country", "instrument.phone_number"),
)
FAULTS: Final[Mapping[str, str]] = {
    "lost_response": "answer lost",
    "cut_body": "answer cut off",
    "http:500": "HTTP 500",
    "429:1": "HTTP 429",
}
"""Each disturbs one payout: the sandbox's word for it, and a plain one."""


def write_csv(path: Path, count: int, seed: int) -> Path:
    """Write a file of `count` payouts, whose amounts depend on the seed; return its path."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for number in range(1, count + 1):
            amount = Decimal(100 + (number * 48_271 + seed * 69_621) % 49_877).scaleb(-2)
            writer.writerow([f"demo-{number:06}", amount, CURRENCY, METHOD, "GH", f"+23320{number:07}"])
    return path


def read_csv(path: Path) -> list[Row]:
    """The file's rows: every column as text (leading zeros and plus signs stay), the amount as a Decimal."""
    return [row for row in open_source(path).read() if isinstance(row, Row)]


def show_plan(file: Path, rows: Sequence[Row], show: Show) -> None:
    text = f"{len(rows):,} payouts, {amount_text(CURRENCY, total(rows))}"
    show.step("CSV", text, file=file.name, payouts=len(rows), sum=total(rows), currency=CURRENCY)


def total(rows: Sequence[Row]) -> Decimal:
    return sum((row.amount for row in rows), Decimal(0))


def disturbed(rows: Sequence[Row], seed: int) -> dict[str, str]:
    """{reference: fault}, one payout for each of `FAULTS`, spread over the rows."""
    count = min(len(rows), len(FAULTS))
    places = [(len(rows) * (2 * turn + 1) // (2 * count) + seed) % len(rows) for turn in range(count)]
    return {str(rows[at].reference): fault for at, fault in zip(sorted(places), FAULTS, strict=False)}


def payout_problems(rows: Sequence[Row], books: Books) -> Iterator[str]:
    """The differences between rows and the books' payouts: each once, and their sum."""
    booked = Counter(str(entry.reference) for entry in books.payouts())
    asked = Counter(str(row.reference) for row in rows)
    for reference, times in sorted((booked - asked).items()):
        yield f"{reference} is in the books {times} time(s) more than asked for"
    for reference in sorted(asked - booked):
        yield f"{reference} is not in the books"
    if (booked_sum := books.total(CURRENCY)) != (asked_sum := total(rows)):
        booked_text, asked_text = amount_text(CURRENCY, booked_sum), amount_text(CURRENCY, asked_sum)
        yield f"the books have {booked_text} paid out; {asked_text} was asked for"


def show_books(problems: Sequence[str], rows: Sequence[Row], show: Show) -> Exit:
    """Show whether the books agree; `Exit.REFUSED` when they do not."""
    for problem in problems:
        show.step("Books", problem, good=False, problem=problem)
    if problems:
        show.step("Result", "THE BOOKS DO NOT AGREE", good=False)
        return Exit.REFUSED
    paid = amount_text(CURRENCY, total(rows))
    show.step("Books", f"{len(rows):,} references, one payout each; {paid} to the cent", payouts=len(rows))
    show.step("Result", "the books agree: nothing lost, nothing paid twice")
    return Exit.DONE
