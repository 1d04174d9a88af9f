"""Commits a change: rows, totals, an entry of the hash chain and the header, in one transaction."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import attrs
from aiosqlite import Connection

from ...protocol import totals as _totals
from ...protocol.clocks import Timestamps
from ...protocol.outcomes import ExtraPayout, Outcome
from ...protocol.records import Binding, Header, LedgerRow, RowTotals
from ...protocol.totals import as_text, read_totals, totals_text
from .. import hash_chain
from ..hash_chain import ChainEntry
from ..rows import UnreadableRecord, blob, readable
from . import rows as _store
from .driver import run, run_many
from .rows import StoredRow

_BINDING: Final = ("batch_id", "environment", "base_url", "key_fingerprint", "input_hash", "input_stat")
_TOTALS: Final = "SELECT outcome, currency, rows, amount FROM totals"
_SET_TOTAL: Final = "INSERT OR REPLACE INTO totals VALUES (?, ?, ?, ?)"
_HEADER: Final = """
    SELECT batch_id, environment, base_url, key_fingerprint, input_hash, input_stat, created_at,
        client_version, schema, rows, totals, extra, told_in, head, head_hash
    FROM header
"""
_ADD_HEADER: Final = f"INSERT INTO header VALUES (1, {', '.join('?' * 15)})"
_SET_HEADER: Final = """
    UPDATE header SET schema = ?, batch_id = ?, environment = ?, base_url = ?, key_fingerprint = ?,
        input_hash = ?, input_stat = ?, created_at = ?, client_version = ?, rows = ?, totals = ?, extra = ?,
        told_in = ?, head = ?, head_hash = ?
"""
_SET_HEAD: Final = "UPDATE header SET head = ?, head_hash = ?"
_APPEND: Final = "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_ENTRY: Final = (
    "SELECT number, wall, monotonic, session, server, kind, rows_digest, hash, changes FROM entries"
)
LAST: Final = f"{_ENTRY} ORDER BY number DESC LIMIT 1"
BETWEEN: Final = f"{_ENTRY} WHERE number BETWEEN ? AND ? ORDER BY number"
AFTER: Final = f"{_ENTRY} WHERE number > ? ORDER BY number LIMIT 64"


async def totals(db: Connection) -> RowTotals:
    """Read the stored totals. Raises UnreadableRecord."""
    with readable("a total"):
        found = await run(db, _TOTALS)
        return {(Outcome(outcome), code): (rows, Decimal(amount)) for outcome, code, rows, amount in found}


async def set_totals(db: Connection, changed: RowTotals) -> None:
    """Store totals."""
    values = [(*place, rows, as_text(sum_)) for place, (rows, sum_) in changed.items()]
    await run_many(db, _SET_TOTAL, values)


def facts(header: Header) -> str:
    """The facts of a header that an entry records, as JSON text."""
    values = attrs.asdict(header)
    sums = {"totals": _amounts(header.totals), "extra": totals_text(header.extra)}
    return json.dumps({**values, **sums}, separators=(",", ":"), sort_keys=True)


def _amounts(totals: Mapping[str, Decimal]) -> dict[str, str]:
    return {currency: as_text(amount) for currency, amount in sorted(totals.items())}


async def set_header(db: Connection, header: Header, entry: ChainEntry, *, fresh: bool) -> None:
    """Store the header, with the entry that carries its facts."""
    values = (
        header.schema,
        *(getattr(header.binding, name) for name in _BINDING),
        *(header.created_at, header.client_version, header.rows, json.dumps(_amounts(header.totals))),
        totals_text(header.extra),
        *(entry.number, entry.number, entry.hash),
    )
    await run_many(db, _ADD_HEADER if fresh else _SET_HEADER, [values])


async def header(db: Connection) -> tuple[Header, int, tuple[int, bytes]] | None:
    """Read the header, the entry that carries its facts, and the chain's head; None before the import."""
    found = await run(db, _HEADER)
    if not found:
        return None
    with readable("the header"):
        ((*names, created_at, version, schema, rows, totals, extra, told_in, head, digest),) = found
        binding = Binding(**dict(zip(_BINDING, names, strict=True)))
        amounts = {currency: Decimal(text) for currency, text in json.loads(totals).items()}
        facts = Header(
            binding, float(created_at), version, schema, int(rows), amounts, read_totals(extra, ExtraPayout)
        )
        return facts, int(told_in), (int(head), blob(digest))


async def schema(db: Connection) -> int | None:
    """Read the ledger's schema version; None before the import."""
    found = await run(db, "SELECT schema FROM header")
    return found[0][0] if found else None


async def entries(db: Connection, statement: str, *parameters: int) -> list[ChainEntry]:
    """Read entries of the chain: `LAST`, `BETWEEN` two numbers, or a page `AFTER` one."""
    with readable("the chain"):
        return [_entry_of(values) for values in await run(db, statement, *parameters)]


def _entry_of(values: Sequence[Any]) -> ChainEntry:
    number, wall, monotonic, session, server, kind, rows_digest, digest, changes = values
    at = Timestamps(float(wall), float(monotonic), session, None if server is None else float(server))
    return ChainEntry(int(number), at, kind, changes, blob(rows_digest), blob(digest))


async def append(db: Connection, entry: ChainEntry) -> None:
    """Add an entry to the chain, and record it in the header as the last."""
    at, ended = entry.at, (entry.number, entry.hash)
    moment = (at.wall, at.monotonic, at.session, at.server)
    values = (entry.number, *moment, entry.kind, entry.rows_digest, entry.hash, entry.changes)
    await run_many(db, _APPEND, [values])
    await run_many(db, _SET_HEAD, [ended])


@attrs.frozen
class LedgerState:
    """The state of a ledger after its last commit. It is kept in memory, as there is no other writer."""

    header: Header
    head: ChainEntry
    totals: RowTotals


Change = tuple[StoredRow, LedgerRow]
"""A row before and after a change."""
Plan = Callable[[Connection, int], Awaitable[Sequence[Change]]]
"""Reads rows and returns their changes, given the number of the entry to come."""


async def commit(
    db: Connection, before: LedgerState, kind: str, at: Timestamps, plan: Plan
) -> tuple[LedgerState, tuple[LedgerRow, ...]]:
    """Carry out a plan; without changes nothing is written. Raises UnreadableRecord if rows have changed."""
    head, planned = before.head, await plan(db, before.head.number + 1)
    if not planned:
        return before, ()
    added = await _store.replace(db, planned)
    if added is None:
        raise UnreadableRecord("rows are changed by something else than this run")
    changes = [(stored.row, after) for stored, after in planned]
    rows = tuple(after for _, after in planned)
    moved = _totals.moved(before.totals, changes)
    await set_totals(db, moved)
    digest = hash_chain.moved(head.rows_digest, (stored.digest for stored, _ in planned), added)
    entry = hash_chain.linked(
        head, before.header.binding.batch_id, at, kind, hash_chain.outlines(rows), digest
    )
    await append(db, entry)
    return LedgerState(before.header, entry, {**before.totals, **moved}), rows


async def describe(db: Connection, before: LedgerState, at: Timestamps, header: Header) -> LedgerState:
    """Store another header, with its entry, and the sums that corrections have changed."""
    header = attrs.evolve(header, totals=_totals.by_currency(before.totals))
    described, digest = facts(header), before.head.rows_digest
    entry = hash_chain.linked(before.head, header.binding.batch_id, at, "header", described, digest)
    await append(db, entry)
    await set_header(db, header, entry, fresh=False)
    return LedgerState(header, entry, before.totals)
