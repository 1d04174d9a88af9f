"""What every commit does: rows, totals, an entry of the chain, the head; and what it leaves behind."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import attrs
from sqlalchemy.ext.asyncio import AsyncConnection

from .ledger import hash_chain, journal
from .ledger import rows as _store
from .ledger.hash_chain import Entry
from .ledger.rows import Stored, Unreadable
from .protocol import totals as _totals
from .protocol.clocks import Moment
from .protocol.records import Binding, Header, LedgerRow, Totals


@attrs.frozen
class Standing:
    """A ledger as its last commit left it. Kept in memory: there is no other writer."""

    header: Header
    head: Entry
    totals: Totals


Change = tuple[Stored, LedgerRow]
"""A row as it is, and as it will be."""
Plan = Callable[[AsyncConnection, int], Awaitable[Sequence[Change]]]
"""Reads rows and says what becomes of each, given the number of the entry to come."""


async def commit(
    db: AsyncConnection, before: Standing, kind: str, at: Moment, plan: Plan
) -> tuple[Standing, tuple[LedgerRow, ...]]:
    """Carry out a plan; without changes nothing is written. Raises Unreadable when rows changed under it."""
    head, planned = before.head, await plan(db, before.head.number + 1)
    if not planned:
        return before, ()
    added = await _store.replace(db, planned)
    if added is None:
        raise Unreadable("rows are changed by something else than this run")
    changes = [(stored.row, after) for stored, after in planned]
    rows = tuple(after for _, after in planned)
    moved = _totals.moved(before.totals, changes)
    await journal.set_totals(db, moved, before.totals)
    digest = hash_chain.moved(head.rows_digest, (stored.digest for stored, _ in planned), added)
    entry = hash_chain.linked(head, before.header.binding.batch_id, at, kind, hash_chain.told(rows), digest)
    await journal.append(db, entry)
    return Standing(before.header, entry, {**before.totals, **moved}), rows


async def rebind(db: AsyncConnection, before: Standing, binding: Binding, at: Moment) -> Standing:
    """Write down another binding, with an entry that says so, and the sums that corrections have changed."""
    totals = _totals.by_currency(before.totals)
    header = attrs.evolve(before.header, binding=binding, totals=totals)
    facts, digest = journal.facts(header), before.head.rows_digest
    entry = hash_chain.linked(before.head, binding.batch_id, at, "header", facts, digest)
    await journal.append(db, entry)
    await journal.set_header(db, header, entry, fresh=False)
    return Standing(header, entry, before.totals)
