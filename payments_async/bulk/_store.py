"""Values to table rows and back, and the statements that move them. One path for every database."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, Final, NamedTuple

import attrs
from sqlalchemy import ColumnElement, Row, Select, bindparam, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from . import _sqlite
from ._ages import Moment
from ._chain import Entry, row_digest
from ._records import Binding, Header, LedgerRow, Totals
from ._schema import ENTRIES, HEADER, ROWS, TOTALS
from ._states import Known, RowState, rank
from ._totals import as_text

_READ: Final = select(ROWS)
_BINDING: Final = tuple(field.name for field in attrs.fields(Binding))


class Stored(NamedTuple):
    """A row, with the rank and the digest that the ledger has of it."""

    row: LedgerRow
    rank: int
    digest: bytes


class Unreadable(Exception):
    """A row, or the header, holds values that this package never writes."""


@contextmanager
def readable(what: str) -> Iterator[None]:
    """Raise Unreadable in place of what values of a wrong type or form raise."""
    try:
        yield
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError):
        found = f"{what} cannot be read"
    else:
        return
    raise Unreadable(found)


def stored(values: Sequence[Any]) -> Stored:
    """A row as the table has it."""
    return Stored(_row_of(values), values[26], values[27])


def _row_of(values: Sequence[Any]) -> LedgerRow:
    generation, revision, epoch, intents, cleared = map(int, values[12:17])
    known = Known(RowState(values[11]), generation, revision, epoch, intents, cleared, values[17])
    before_body, after_body = (*values[:4], Decimal(values[4]), *values[5:7]), values[8:11]
    return LedgerRow(*(*before_body, _blob(values[7]), *after_body, known, *values[18:26]))


def _blob(value: object) -> bytes:
    if not isinstance(value, bytes):  # damage can turn one into a number, of which bytes() would make zeros
        raise TypeError("not a blob")
    return value


def _values_of(row: LedgerRow) -> dict[str, Any]:
    known = row.known
    return {
        "number": row.number,
        "line": row.line,
        "row_key": row.row_key,
        "reference": row.reference,
        "amount": as_text(row.amount),
        "currency": row.currency,
        "method": row.method,
        "body": row.body,
        "body_hash": row.body_hash,
        "idempotency_key": row.idempotency_key,
        "metadata": row.metadata,
        "state": known.state,
        "generation": known.generation,
        "revision": known.revision,
        "epoch": known.epoch,
        "intents": known.intents,
        "cleared": known.cleared,
        "payout_id": known.payout_id,
        "service_status": row.service_status,
        "final": row.final,
        "failure_code": row.failure_code,
        "failure_message": row.failure_message,
        "first_intent": row.first_intent,
        "key_intent": row.key_intent,
        "last_intent": row.last_intent,
        "changed_in": row.changed_in,
        "rank": rank(known),
    }


_ADD: Final = insert(ROWS)
_IDENTITY: Final = ("number", "line", "row_key")
_CONTENT: Final = ("reference", "amount", "currency", "method", "body", "body_hash", "metadata")


def _update(without: Sequence[str]) -> Any:
    changed: dict[str, Any] = {
        column.name: bindparam(column.name) for column in ROWS.c if column.name not in without
    }
    same = (ROWS.c.number == bindparam("row_number")) & (ROWS.c.rank == bindparam("rank_before"))
    return update(ROWS).where(same).values(changed)


_TOTAL: Final[dict[str, Any]] = {"rows": bindparam("rows"), "amount": bindparam("amount")}
_AT: Final[dict[str, Any]] = {"state": bindparam("of_state"), "currency": bindparam("of_currency")}
_SET_TOTAL: Final = update(TOTALS).where(*(TOTALS.c[name] == at for name, at in _AT.items())).values(_TOTAL)
_ADD_TOTAL: Final = insert(TOTALS).values({**_AT, **_TOTAL})
_MOVE: Final = _update((*_IDENTITY, *_CONTENT))
_REPLACE: Final = _update(_IDENTITY)


def reading(*conditions: ColumnElement[bool], limit: int | None = None) -> Select[Any]:
    """A statement that reads rows in the order of their numbers, for `rows`."""
    return _READ.where(*conditions).order_by(ROWS.c.number).limit(limit)


async def rows(db: AsyncConnection, statement: Select[Any]) -> list[Stored]:
    """What a statement of `reading` finds."""
    with readable("some row"):
        return [stored(values) for values in await db.execute(statement)]


async def numbered(db: AsyncConnection, numbers: Iterable[int]) -> dict[int, Stored]:
    """The rows with these numbers, locked until the transaction ends where others could change them."""
    found: dict[int, Stored] = {}
    for group in _groups(sorted(set(numbers))):
        statement = reading(ROWS.c.number.in_(group)).with_for_update()
        found.update({each.row.number: each for each in await rows(db, statement)})
    return found


def _groups(numbers: Sequence[int], size: int = 500) -> Iterator[Sequence[int]]:
    return (numbers[start : start + size] for start in range(0, len(numbers), size))


async def add(db: AsyncConnection, new: Sequence[tuple[LedgerRow, bytes]]) -> None:
    """Insert rows with their digests."""
    values = [{**_values_of(row), "digest": digest} for row, digest in new]
    await _sqlite.execute_many(db, _ADD, values)


async def replace(db: AsyncConnection, changes: Sequence[tuple[Stored, LedgerRow]]) -> list[bytes] | None:
    """Put the second row of each pair in place of the first. Gives the new digests.

    Compare and set on the rank: None when a row is no longer what the first of its pair says.
    """
    digests = [row_digest(after) for _, after in changes]
    values = [
        {**_values_of(after), "digest": digest, "row_number": after.number, "rank_before": before.rank}
        for (before, after), digest in zip(changes, digests, strict=True)
    ]
    content = any(after.state is RowState.NEW for _, after in changes)  # corrected, or begun anew
    found = await _sqlite.execute_many(db, _REPLACE if content else _MOVE, values)
    return digests if found == len(changes) else None


async def totals(db: AsyncConnection) -> Totals:
    """The kept totals. Raises Unreadable."""
    with readable("a total"):
        found = await db.execute(select(TOTALS))
        return {(RowState(state), code): (rows, Decimal(amount)) for state, code, rows, amount in found}


async def set_totals(db: AsyncConnection, changed: Totals, kept: Totals) -> None:
    """Keep the `changed` totals in place of those in `kept`, or beside them."""
    for statement, places in (
        (_SET_TOTAL, changed.keys() & kept.keys()),
        (_ADD_TOTAL, changed.keys() - kept.keys()),
    ):
        values = [
            {"of_state": place[0], "of_currency": place[1], "rows": rows, "amount": as_text(amount)}
            for place in places
            for rows, amount in (changed[place],)
        ]
        if values:
            await _sqlite.execute_many(db, statement, values)


def facts(header: Header) -> str:
    """What the chain says of a header: JSON text."""
    said = attrs.asdict(header)
    return json.dumps({**said, "totals": _amounts(header.totals)}, separators=(",", ":"), sort_keys=True)


def _amounts(totals: Mapping[str, Decimal]) -> dict[str, str]:
    return {currency: as_text(amount) for currency, amount in sorted(totals.items())}


async def set_header(db: AsyncConnection, header: Header, told: Entry, *, fresh: bool) -> None:
    """Write the header down, with the entry that carries its facts."""
    values = {
        **attrs.asdict(header.binding),
        "schema": header.schema,
        "created_at": header.created_at,
        "client_version": header.client_version,
        "rows": header.rows,
        "totals": json.dumps(_amounts(header.totals)),
        "told_in": told.number,
        "head": told.number,
        "head_hash": told.hash,
    }
    await db.execute(insert(HEADER).values(id=1, **values) if fresh else update(HEADER).values(values))


async def header(db: AsyncConnection) -> tuple[Header, int, tuple[int, bytes]] | None:
    """The header, the entry that carries its facts, and the chain's head; None before the import."""
    found: Row[Any] | None = (await db.execute(select(HEADER))).one_or_none()
    if found is None:
        return None
    binding = Binding(*(getattr(found, name) for name in _BINDING))
    with readable("the header"):
        amounts = {currency: Decimal(text) for currency, text in json.loads(found.totals).items()}
        read = Header(
            binding, float(found.created_at), found.client_version, found.schema, int(found.rows), amounts
        )
        return read, int(found.told_in), (int(found.head), _blob(found.head_hash))


async def schema(db: AsyncConnection) -> int | None:
    """The number of the ledger's form; None before the import."""
    return (await db.execute(select(HEADER.c.schema))).scalar_one_or_none()


async def entries(db: AsyncConnection, *conditions: ColumnElement[bool], limit: int) -> list[Entry]:
    """Entries of the chain, the first ones that meet the conditions."""
    statement = select(ENTRIES).where(*conditions).order_by(ENTRIES.c.number).limit(limit)
    with readable("the chain"):
        return [_entry_of(values) for values in await db.execute(statement)]


def _entry_of(values: Sequence[Any]) -> Entry:
    number, wall, monotonic, session, server, kind, rows_digest, digest, changes = values
    at = Moment(float(wall), float(monotonic), session, None if server is None else float(server))
    return Entry(int(number), at, kind, changes, _blob(rows_digest), _blob(digest))


async def append(db: AsyncConnection, entry: Entry) -> None:
    """Add an entry to the chain."""
    values = {**attrs.asdict(entry, filter=lambda field, _: field.name != "at"), **attrs.asdict(entry.at)}
    await db.execute(insert(ENTRIES).values(values))


async def set_head(db: AsyncConnection, entry: Entry) -> None:
    """Note the chain's last entry in the header."""
    await db.execute(update(HEADER).values(head=entry.number, head_hash=entry.hash))


async def moments(db: AsyncConnection, numbers: Iterable[int]) -> dict[int, Moment]:
    """{entry: when it was made}."""
    columns = (ENTRIES.c.number, ENTRIES.c.wall, ENTRIES.c.monotonic, ENTRIES.c.session, ENTRIES.c.server)
    found: dict[int, Moment] = {}
    for group in _groups(sorted(set(numbers))):
        for number, *at in await db.execute(select(*columns).where(ENTRIES.c.number.in_(group))):
            found[number] = Moment(*at)
    return found
