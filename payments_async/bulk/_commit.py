"""What every change of rows does in its transaction: rows, totals, an entry of the chain, the head."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

import attrs
from sqlalchemy.ext.asyncio import AsyncConnection

from . import _chain, _store, _totals
from ._ages import Moment
from ._chain import Entry
from ._records import Binding, Header, LedgerRow
from ._store import Stored, Unreadable

Change = tuple[Stored, LedgerRow]
"""A row as it is, and as it will be."""
Plan = Callable[[AsyncConnection, int], Awaitable[Sequence[Change]]]
"""Reads rows and says what becomes of each, given the number of the entry to come."""


class Done(NamedTuple):
    """What a change did; the entry is the one before when nothing changed."""

    rows: tuple[LedgerRow, ...]
    entry: Entry


async def commit(db: AsyncConnection, batch_id: str, kind: str, at: Moment, plan: Plan) -> Done:
    """Carry out a plan. Raises Unreadable when the ledger changed under it."""
    head = await _store.head(db)
    planned = await plan(db, head.number + 1)
    if not planned:
        return Done((), head)
    changes = [(stored.row, after) for stored, after in planned]
    added = await _store.replace(db, changes)
    if added is None:
        raise Unreadable("rows are changed by something else than this run")
    digest = _chain.moved(head.rows_digest, (stored.digest for stored, _ in planned), added)
    rows = tuple(after for _, after in changes)
    entry = _chain.linked(head, batch_id, at, kind, _chain.told(rows), digest)
    kept = await _store.totals(db)
    await _store.set_totals(db, _totals.moved(kept, changes), kept)
    await _store.append(db, entry)
    await _store.set_head(db, entry)
    return Done(rows, entry)


async def rebind(db: AsyncConnection, header: Header, binding: Binding, at: Moment) -> tuple[Header, Entry]:
    """Write down another binding, with an entry that says so."""
    head = await _store.head(db)
    changed = attrs.evolve(header, binding=binding)
    facts = _store.facts(changed)
    entry = _chain.linked(head, header.binding.batch_id, at, "header", facts, head.rows_digest)
    await _store.append(db, entry)
    await _store.set_header(db, changed, entry, fresh=False)
    return changed, entry
