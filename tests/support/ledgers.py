"""Ledgers for tests: bindings, rows, a clock that counts, and ways to look at the file from outside."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs

from payments_async.bulk._ledger.ledger import Ledger
from payments_async.bulk._ledger.sqlite.ledger import SqliteLedger
from payments_async.bulk._protocol.clocks import Timestamps
from payments_async.bulk._protocol.identifiers import body_hash
from payments_async.bulk._protocol.outcomes import CREATED, counts_of
from payments_async.bulk._protocol.records import Binding, Claim, Header, LedgerRow, NewRow, RowOutcome
from payments_async.bulk._protocol.row_state import confirm, refuse

BINDING = Binding("batch-1", "sandbox", "https://api.example.test/v1", "key-1", "input-1", "{}")


class Clock:
    """Gives a moment one second after the last, in a session of its own name."""

    def __init__(self, session: str = "first", start: float = 1_800_000_000.0) -> None:
        self.session = session
        self.wall = start

    def __call__(self) -> Timestamps:
        self.wall += 1
        return Timestamps(self.wall, self.wall - 1_799_999_000, self.session, self.wall - 0.25)


def new_row(number: int, **changes: Any) -> NewRow:
    """A row with everything that follows from its number."""
    amount = changes.pop("amount", Decimal("10.10"))
    body = changes.pop("body", b'{"amount":%b,"row":%d}' % (str(amount).encode(), number))
    fields: dict[str, Any] = {
        "number": number,
        "line": number + 1,
        "row_key": f"row-{number}",
        "reference": f"reference-{number}",
        "amount": amount,
        "currency": "XOF",
        "method": "mtn_bj",
        "body": body,
        "body_hash": body_hash(body),
        "idempotency_key": f"key-{number}-{body_hash(body)[:8]}",
    }
    return NewRow(**{**fields, **changes})


def fresh(new: NewRow, entry: int) -> LedgerRow:
    """The ledger's row of an imported one."""
    return LedgerRow(**attrs.asdict(new, recurse=False), changed_in=entry)


def new_rows(count: int) -> Iterator[NewRow]:
    """So many rows."""
    return (new_row(number) for number in range(1, count + 1))


async def begun(path: Path, count: int = 5, clock: Clock | None = None) -> SqliteLedger:
    """An open ledger with so many new rows."""
    ledger = await SqliteLedger.open(path, clock=clock or Clock(), create=True)
    try:
        await imported(ledger, new_rows(count))
    except BaseException:
        await ledger.close()
        raise
    return ledger


async def imported(ledger: Ledger, rows: Iterable[NewRow], binding: Binding = BINDING) -> Header:
    """Import these rows."""

    async def each() -> AsyncIterator[NewRow]:
        for row in rows:
            yield row

    return await ledger.import_rows(binding, each())


async def row_of(ledger: Ledger, key: str) -> LedgerRow:
    """The row with this key."""
    (row,) = [row async for row in ledger.rows() if row.row_key == key]
    return row


async def call_off(ledger: Ledger, wanted: Collection[int]) -> None:
    """Call these rows off, as edits of an input do. Raises LedgerRefused; then nothing was changed."""
    await ledger.edit(lambda edits: edits.cancel(wanted))


def created(row: LedgerRow, **facts: Any) -> RowOutcome:
    """The row's payout exists."""
    return RowOutcome(row.number, confirm(row.known, f"po_{row.number}"), **facts)


def rejected(row: LedgerRow, **facts: Any) -> RowOutcome:
    """The service refused the row."""
    return RowOutcome(row.number, refuse(row.known), **facts)


async def all_rows(ledger: Ledger) -> list[LedgerRow]:
    """Every row."""
    return [row async for row in ledger.rows()]


def numbers(claim: Claim) -> list[int]:
    """Which rows a claim holds."""
    return [row.number for row in claim.rows]


def counts(ledger: Ledger) -> Mapping[str, int]:
    """{word: rows}, without the empty ones, without the parts of `created` and without all together."""
    found = counts_of(ledger.totals)
    return {word: rows for word, rows in found.items() if rows and word not in ("asked", *CREATED)}


@contextmanager
def tampering(path: Path) -> Iterator[sqlite3.Connection]:
    """The closed ledger's tables, open to somebody else's hand."""
    with closing(sqlite3.connect(path)) as connection:
        yield connection
        connection.commit()
