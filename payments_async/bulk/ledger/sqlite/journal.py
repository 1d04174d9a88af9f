"""Commits a change: rows, totals, an entry of the hash chain and the header, in one transaction."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import attrs
from sqlalchemy import ColumnElement, Row, bindparam, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from ...protocol import totals as _totals
from ...protocol.clocks import Timestamps
from ...protocol.records import Binding, Header, LedgerRow, StateTotals
from ...protocol.row_state import RowState
from ...protocol.totals import as_text
from .. import hash_chain
from ..hash_chain import ChainEntry
from . import rows as _store
from .driver import ManyStatements, execute_many
from .rows import StoredRow, UnreadableRow, blob, readable
from .schema import ENTRIES, HEADER, TOTALS

_BINDING: Final = tuple(field.name for field in attrs.fields(Binding))
_TOTAL: Final[dict[str, Any]] = {"rows": bindparam("of_rows"), "amount": bindparam("of_amount")}
_AT: Final[dict[str, Any]] = {"state": bindparam("of_state"), "currency": bindparam("of_currency")}
_SET_TOTAL: Final = ManyStatements(
    update(TOTALS).where(*(TOTALS.c[name] == at for name, at in _AT.items())).values(_TOTAL),
    ("of_rows", "of_amount", "of_state", "of_currency"),
)
_ADD_TOTAL: Final = ManyStatements(
    insert(TOTALS).values({**_TOTAL, **_AT}), ("of_state", "of_currency", "of_rows", "of_amount")
)
_APPEND: Final = ManyStatements(insert(ENTRIES), tuple(ENTRIES.c.keys()))
_SET_HEAD: Final = ManyStatements(
    update(HEADER).values(head=bindparam("of_head"), head_hash=bindparam("of_hash")), ("of_head", "of_hash")
)


async def totals(db: AsyncConnection) -> StateTotals:
    """Read the stored totals. Raises UnreadableRow."""
    with readable("a total"):
        found = await db.execute(select(TOTALS))
        return {(RowState(state), code): (rows, Decimal(amount)) for state, code, rows, amount in found}


async def set_totals(db: AsyncConnection, changed: StateTotals, kept: StateTotals) -> None:
    """Store the `changed` totals; `kept` are those stored already."""
    added = [(*place, rows, as_text(sum_)) for place, (rows, sum_) in changed.items() if place not in kept]
    moved = [(rows, as_text(sum_), *place) for place, (rows, sum_) in changed.items() if place in kept]
    for statement, values in ((_ADD_TOTAL, added), (_SET_TOTAL, moved)):
        if values:
            await execute_many(db, statement, values)


def facts(header: Header) -> str:
    """The facts of a header that an entry records, as JSON text."""
    values = attrs.asdict(header)
    return json.dumps({**values, "totals": _amounts(header.totals)}, separators=(",", ":"), sort_keys=True)


def _amounts(totals: Mapping[str, Decimal]) -> dict[str, str]:
    return {currency: as_text(amount) for currency, amount in sorted(totals.items())}


async def set_header(db: AsyncConnection, header: Header, entry: ChainEntry, *, fresh: bool) -> None:
    """Store the header, with the entry that carries its facts."""
    values = {
        **attrs.asdict(header.binding),
        "schema": header.schema,
        "created_at": header.created_at,
        "client_version": header.client_version,
        "rows": header.rows,
        "totals": json.dumps(_amounts(header.totals)),
        "described_in": entry.number,
        "head": entry.number,
        "head_hash": entry.hash,
    }
    await db.execute(insert(HEADER).values(id=1, **values) if fresh else update(HEADER).values(values))


async def header(db: AsyncConnection) -> tuple[Header, int, tuple[int, bytes]] | None:
    """Read the header, the entry that carries its facts, and the chain's head; None before the import."""
    found: Row[Any] | None = (await db.execute(select(HEADER))).one_or_none()
    if found is None:
        return None
    binding = Binding(*(getattr(found, name) for name in _BINDING))
    with readable("the header"):
        amounts = {currency: Decimal(text) for currency, text in json.loads(found.totals).items()}
        read = Header(
            binding, float(found.created_at), found.client_version, found.schema, int(found.rows), amounts
        )
        return read, int(found.described_in), (int(found.head), blob(found.head_hash))


async def schema(db: AsyncConnection) -> int | None:
    """Read the ledger's schema version; None before the import."""
    return (await db.execute(select(HEADER.c.schema))).scalar_one_or_none()


async def entries(db: AsyncConnection, *conditions: ColumnElement[bool], limit: int) -> list[ChainEntry]:
    """Read the first entries of the chain that meet the conditions."""
    statement = select(ENTRIES).where(*conditions).order_by(ENTRIES.c.number).limit(limit)
    with readable("the chain"):
        return [_entry_of(values) for values in await db.execute(statement)]


def _entry_of(values: Sequence[Any]) -> ChainEntry:
    number, wall, monotonic, session, server, kind, rows_digest, digest, changes = values
    at = Timestamps(float(wall), float(monotonic), session, None if server is None else float(server))
    return ChainEntry(int(number), at, kind, changes, blob(rows_digest), blob(digest))


async def append(db: AsyncConnection, entry: ChainEntry) -> None:
    """Add an entry to the chain, and record it in the header as the last."""
    at, ended = entry.at, (entry.number, entry.hash)
    moment = (at.wall, at.monotonic, at.session, at.server)
    values = (entry.number, *moment, entry.kind, entry.rows_digest, entry.hash, entry.changes)
    await execute_many(db, _APPEND, [values])
    await execute_many(db, _SET_HEAD, [ended])


@attrs.frozen
class LedgerState:
    """The state of a ledger after its last commit. It is kept in memory, as there is no other writer."""

    header: Header
    head: ChainEntry
    totals: StateTotals


Change = tuple[StoredRow, LedgerRow]
"""A row before and after a change."""
Plan = Callable[[AsyncConnection, int], Awaitable[Sequence[Change]]]
"""Reads rows and returns their changes, given the number of the entry to come."""


async def commit(
    db: AsyncConnection, before: LedgerState, kind: str, at: Timestamps, plan: Plan
) -> tuple[LedgerState, tuple[LedgerRow, ...]]:
    """Carry out a plan; without changes nothing is written. Raises UnreadableRow if rows have changed."""
    head, planned = before.head, await plan(db, before.head.number + 1)
    if not planned:
        return before, ()
    added = await _store.replace(db, planned)
    if added is None:
        raise UnreadableRow("rows are changed by something else than this run")
    changes = [(stored.row, after) for stored, after in planned]
    rows = tuple(after for _, after in planned)
    moved = _totals.moved(before.totals, changes)
    await set_totals(db, moved, before.totals)
    digest = hash_chain.moved(head.rows_digest, (stored.digest for stored, _ in planned), added)
    entry = hash_chain.linked(
        head, before.header.binding.batch_id, at, kind, hash_chain.outlines(rows), digest
    )
    await append(db, entry)
    return LedgerState(before.header, entry, {**before.totals, **moved}), rows


async def rebind(db: AsyncConnection, before: LedgerState, binding: Binding, at: Timestamps) -> LedgerState:
    """Store another binding, with its entry, and the sums that corrections have changed."""
    totals = _totals.by_currency(before.totals)
    header = attrs.evolve(before.header, binding=binding, totals=totals)
    described, digest = facts(header), before.head.rows_digest
    entry = hash_chain.linked(before.head, binding.batch_id, at, "header", described, digest)
    await append(db, entry)
    await set_header(db, header, entry, fresh=False)
    return LedgerState(header, entry, before.totals)
