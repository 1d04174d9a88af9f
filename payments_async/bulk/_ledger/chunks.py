"""Chunks: ranges of a batch's rows. Each has a hash chain, figures and, in a database, a holder of its own.

A transaction that changes rows first locks their chunks, in rising order, and the batch's own row last. Chunk
0 has no rows. Its chain records what is done to the whole batch: import, plan, edits, pause, closing. A batch
in a file has one other chunk.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import attrs

from .._protocol.clocks import Timestamps
from .._protocol.outcomes import CREATED, Outcome, totals_text
from .._protocol.records import RowFigures
from . import hash_chain
from .hash_chain import ChainEntry
from .statements import Rows, Statement
from .stored_rows import Change, StoredRow, blob, readable
from .stored_rows import changed as changed_row
from .transactions import Transaction

BATCH_CHUNK: Final = 0
"""The number of the chunk that stands for the batch itself."""
_O = Outcome


def of_batch(batch: int, sql: str, *values: Any) -> Statement:
    """Make a statement about the tables of one batch."""
    return sql.format(batch=batch), values


@attrs.frozen
class Batch:
    """What finds the rows of a batch."""

    batch: int
    """Its number in the database."""
    batch_id: str
    chunk_size: int
    hash_key: bytes = attrs.field(repr=False)
    """The secret random key of its keyed hashes (`identifiers.keyed_hash`)."""

    def chunk_of(self, number: int) -> int:
        """The chunk of a row."""
        return (number - 1) // self.chunk_size + 1

    def chunks_of(self, numbers: Iterable[int]) -> set[int]:
        """The chunks of some rows."""
        return {self.chunk_of(number) for number in numbers}

    def chain(self, chunk: int, lease: bytes | None) -> str:
        """The name that a chunk's entries are linked under; it holds the lease that one was made with."""
        return f"{self.batch_id}#{chunk}#{'' if lease is None else lease.hex()}"


@attrs.frozen
class Chunk:
    """A chunk, as stored."""

    number: int
    first: int
    """The number of its first row."""
    last: int
    granted_to: int
    """The highest row number that the stop rules let be taken; 0 before the first grant."""
    lease: bytes | None
    """The lease of the worker that may send its rows; None without one."""
    entries: int
    """How many entries its chain has."""
    head: bytes
    """The hash of the last."""
    digest: bytes
    """The digest of its rows."""
    figures: RowFigures

    @property
    def line(self) -> str:
        """The chunk as a line of JSON text, for the root over all chunks."""
        rows = sum(rows for rows, _ in self.figures.totals.values())
        facts = {"chunk": self.number, "first": self.first, "last": self.last, "rows": rows}
        ends = {"entries": self.entries, "head": self.head.hex(), "digest": self.digest.hex()}
        return json.dumps(
            {**facts, **ends, "totals": json.loads(totals_text(self.figures.totals))}, sort_keys=True
        )

    @property
    def end(self) -> ChainEntry:
        """The last entry of its chain, as far as the next one depends on it."""
        return ChainEntry(self.entries, _UNSAID, "", "", self.digest, self.head)


_UNSAID: Final = Timestamps(0.0, 0.0, "")


def chunk_of(
    number: int,
    first: int,
    last: int,
    granted_to: int,
    lease: bytes | None,
    entries: int,
    head: bytes,
    digest: bytes,
    totals: str,
    generation: int,
) -> Chunk:
    """Make a chunk of a table row's values. Those that none has raise one of the errors of `readable`."""
    figures = RowFigures.read(totals, generation)
    return Chunk(number, first, last, granted_to, lease, int(entries), blob(head), blob(digest), figures)


def read_chunks(found: Iterable[Iterable[Any]]) -> list[Chunk]:
    """Make chunks of what a statement has read. Raises UnreadableRecord."""
    with readable("a chunk"):
        return [chunk_of(*values) for values in found]


def entry_of(
    number: int,
    wall: float,
    monotonic: float,
    session: str,
    server: float | None,
    kind: str,
    changes: str,
    rows_digest: bytes,
    digest: bytes,
    lease: bytes | None,
) -> tuple[ChainEntry, bytes | None]:
    """Make an entry, and the lease that it was made with, of the values of a table row."""
    at = Timestamps(float(wall), float(monotonic), session, None if server is None else float(server))
    return ChainEntry(int(number), at, kind, changes, blob(rows_digest), blob(digest)), lease


class Root:
    """A hash over chunks, in the order of their numbers: it stands for all that was recorded of a batch."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, chunk: Chunk) -> None:
        """Add the next chunk."""
        self._hash.update(f"{chunk.line}\n".encode())

    @property
    def hex(self) -> str:
        """The hash, hexadecimal."""
        return self._hash.hexdigest()


class LockedChunks(NamedTuple):
    """Locked chunks."""

    wall: float
    """The database's time, in seconds since 1970."""
    state: str
    """The batch's state."""
    reason: str | None
    chunks: dict[int, Chunk]
    is_here: bool = True
    """True if this session's store is that of the batch's last commit (`failover`)."""
    losses: int = 0
    """How often the batch has lost commits."""
    is_unproven: bool = False
    """True if no reading of the service's list has shown yet what was lost."""

    @classmethod
    def of(cls, found: Rows) -> LockedChunks:
        """Make it of what `Statements.lock_chunks` has read. Raises UnreadableRecord, also without any."""
        with readable("a chunk"):
            wall, state, reason, is_here, losses, is_unproven, *_ = found[0]
            chunks = read_chunks([values for _, _, _, _, _, _, *values in found])
        by_number = {chunk.number: chunk for chunk in chunks}
        return cls(wall, state, reason, by_number, bool(is_here), losses, bool(is_unproven))


NOTHING_LOCKED: Final = LockedChunks(0.0, "", None, {})


class ChunkWrite(NamedTuple):
    """A chunk with one more entry, to be written."""

    chunk: Chunk
    entry: ChainEntry
    lease: bytes | None
    rows: tuple[StoredRow, ...] = ()
    states: tuple[tuple[Any, ...], ...] = ()
    """The values of the rows' states."""


def with_entry(
    batch: Batch, chunk: Chunk, kind: str, at: Timestamps, text: str, lease: bytes | None = None
) -> ChunkWrite:
    """Add an entry about the chunk itself."""
    entry = hash_chain.linked(chunk.end, batch.chain(chunk.number, lease), at, kind, text, chunk.digest)
    return ChunkWrite(attrs.evolve(chunk, entries=entry.number, head=entry.hash), entry, lease)


def with_changed_rows(
    batch: Batch, chunk: Chunk, kind: str, at: Timestamps, changes: Sequence[Change], lease: bytes | None
) -> ChunkWrite:
    """Add an entry about changed rows of the chunk, and compute its figures anew."""
    rows, states = zip(*(changed_row(change, batch.hash_key) for change in changes), strict=True)
    digest = hash_chain.digest_after(
        chunk.digest, (before.digest for before, _ in changes), (row.digest for row in rows)
    )
    text = hash_chain.outlines(each.row for each in rows)
    entry = hash_chain.linked(chunk.end, batch.chain(chunk.number, lease), at, kind, text, digest)
    figures = chunk.figures.after([(before.row, after) for before, after in changes])
    after = attrs.evolve(chunk, entries=entry.number, head=entry.hash, digest=digest, figures=figures)
    return ChunkWrite(after, entry, lease, rows, states)


def stored_values(chunk: Chunk) -> tuple[Any, ...]:
    """The values of a chunk that a commit changes."""
    figures = chunk.figures
    return (
        *(chunk.entries, chunk.head, chunk.digest),
        *figures.counts((_O.NOT_STARTED,), (_O.UNDER_WAY,), (_O.IN_DOUBT,)),
        *figures.counts(CREATED, (_O.REJECTED, _O.CONFLICT), (_O.NOT_FINAL,)),
        *(figures.generation, totals_text(figures.totals)),
    )


def entry_values(batch: Batch, made: ChunkWrite) -> tuple[Any, ...]:
    """The values of an entry."""
    entry, at = made.entry, made.entry.at
    return (
        *(batch.batch, made.chunk.number, entry.number),
        *(at.wall, at.monotonic, at.session, at.server),
        *(entry.kind, made.lease, entry.rows_digest, entry.hash, entry.changes),
    )


def write_chunks(transaction: Transaction, batch: Batch, writes: Sequence[ChunkWrite]) -> None:
    """Store chunks, their new entries and the states of their changed rows, with the commit."""
    states, sql = [state for each in writes for state in each.states], transaction.sql
    if states:
        transaction.write_rows(sql.set_states.format(batch=batch.batch), states)
    statements = list[Statement]()
    for each in writes:
        place = (batch.batch, each.chunk.number)
        statements.append(of_batch(batch.batch, sql.append, *entry_values(batch, each)))
        statements.append((sql.set_chunk, (*stored_values(each.chunk), *place)))
    transaction.write(*statements)


async def insert_chunks(transaction: Transaction, batch: Batch, writes: Sequence[ChunkWrite]) -> None:
    """Insert chunks with their first entries."""
    chunks = [
        (batch.batch, chunk.number, chunk.first, chunk.last, chunk.granted_to, *stored_values(chunk))
        for chunk, *_ in writes
    ]
    await transaction.copy(transaction.sql.add_chunks, chunks)
    into = transaction.sql.add_entries.of_batch(batch.batch)
    await transaction.copy(into, [entry_values(batch, each) for each in writes])


def locking_chunks(transaction: Transaction, batch: int, chunks: Iterable[int]) -> Statement:
    """Make a statement that locks chunks, for `LockedChunks.of`."""
    return transaction.sql.lock_chunks, (batch, sorted(set(chunks)))


async def is_stored(transaction: Transaction, batch: int, writes: Iterable[ChunkWrite]) -> bool:
    """Find out whether entries were committed. Waits for a lost session that may still be doing so."""
    places = [(each.chunk.number, each.entry.hash) for each in writes]
    chunks, hashes = [chunk for chunk, _ in places], [hash_ for _, hash_ in places]
    count = of_batch(batch, transaction.sql.count_entries, batch, chunks, hashes)
    _, ((stored,),) = await transaction.read(locking_chunks(transaction, batch, chunks), count)
    return bool(stored == len(places))
