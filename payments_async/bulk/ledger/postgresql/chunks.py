"""Chunks: ranges of a batch's rows. Each has a hash chain, figures and a holder of its own.

Whoever changes rows locks their chunks first, in rising order, and the batch's own row last. Chunk 0 stands
for the batch itself, and its chain for what is rare: import, plan, edits, pause, closing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, NamedTuple

import attrs

from ...protocol.clocks import Timestamps
from ...protocol.outcomes import CREATED, Outcome
from .. import hash_chain
from ..hash_chain import ChainEntry
from ..rows import readable
from .driver.database import Transaction
from .driver.session import Rows, Statement
from .figures import RowFigures
from .rows import Change, Moved, moved, updating

WHOLE: Final = 0
"""The number of the chunk that stands for the batch itself."""
BLOCK: Final = 500
_LARGEST: Final = 10_000
_CHUNKS: Final = 200
_O = Outcome


def chunk_size(last: int) -> int:
    """The rows of a chunk of a batch whose last row has this number: 500 to 10,000, in steps of 500."""
    wanted = max(BLOCK, min(_LARGEST, last // _CHUNKS))
    return -(-wanted // BLOCK) * BLOCK


@attrs.frozen
class Batch:
    """What finds the rows of a batch."""

    batch: int
    """Its number in the database."""
    batch_id: str
    chunk_size: int

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
        return json.dumps({**facts, **ends, "totals": json.loads(self.figures.totals_text)}, sort_keys=True)

    @property
    def end(self) -> ChainEntry:
        """The last entry of its chain, as far as the next one depends on it."""
        return ChainEntry(self.entries, _UNSAID, "", "", self.digest, self.head)


_UNSAID: Final = Timestamps(0.0, 0.0, "")
_COLUMNS: Final = (
    "c.chunk, c.first, c.last, c.granted_to, c.lease, c.entries, c.head, c.digest, c.totals, c.generation"
)
_READ: Final = f"SELECT {_COLUMNS} FROM payments.chunks c WHERE c.batch = %s"
HERE: Final = "b.store = current_setting('payments.store') AND b.tables = b.tableoid::bigint"
"""Whether a batch's last commit went to the store that the session works on (`failover`)."""
_LOCK: Final = (
    "SELECT extract(epoch FROM clock_timestamp())::float8, b.state, b.reason, "
    f"{HERE}, b.losses, b.lost_in IS NOT NULL, {_COLUMNS} "
    "FROM payments.chunks c JOIN payments.batches b ON b.batch = c.batch "
    "WHERE c.batch = %s AND c.chunk = ANY(%b::int4[]) ORDER BY c.chunk FOR UPDATE OF c"
)


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


def reading(batch: int, condition: str = "", *values: Any) -> Statement:
    """Make a statement that reads chunks in the order of their numbers."""
    return f"{_READ} {condition} ORDER BY c.chunk", (batch, *values)


def locking(batch: int, chunks: Iterable[int]) -> Statement:
    """Make a statement that locks chunks, for `Locked.of`."""
    return _LOCK, (batch, sorted(set(chunks)))


def locking_all(batch: int) -> Statement:
    """Make a statement that locks all chunks."""
    return "SELECT 1 FROM payments.chunks WHERE batch = %s ORDER BY chunk FOR UPDATE", (batch,)


def read(found: Rows) -> list[Chunk]:
    """Make chunks of what a statement of `reading` found. Raises UnreadableRecord."""
    with readable("a chunk"):
        return [_chunk_of(values) for values in found]


def _chunk_of(values: Sequence[Any]) -> Chunk:
    return Chunk(*(*values[:8], RowFigures.read(*values[8:10])))


class Locked(NamedTuple):
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
    def of(cls, found: Rows) -> Locked:
        """Make it of what a statement of `locking` found. Raises UnreadableRecord, also without any."""
        with readable("a chunk"):
            wall, state, reason, *facts = found[0][:6]
            chunks = {chunk.number: chunk for chunk in (_chunk_of(values[6:]) for values in found)}
        return cls(wall, state, reason, chunks, *facts)


class Entered(NamedTuple):
    """A chunk with one more entry, to be written."""

    chunk: Chunk
    entry: ChainEntry
    lease: bytes | None
    rows: tuple[Moved, ...] = ()


def entered(
    batch: Batch, chunk: Chunk, kind: str, at: Timestamps, text: str, lease: bytes | None = None
) -> Entered:
    """Add an entry about the chunk itself."""
    entry = hash_chain.linked(chunk.end, batch.chain(chunk.number, lease), at, kind, text, chunk.digest)
    return Entered(attrs.evolve(chunk, entries=entry.number, head=entry.hash), entry, lease)


def changed(
    batch: Batch, chunk: Chunk, kind: str, at: Timestamps, changes: Sequence[Change], lease: bytes | None
) -> Entered:
    """Add an entry about changed rows of the chunk, and compute its figures anew."""
    rows = tuple(map(moved, changes))
    digest = hash_chain.moved(
        chunk.digest, (before.digest for before, _ in changes), (row.digest for row in rows)
    )
    text = hash_chain.outlines(each.row for each in rows)
    entry = hash_chain.linked(chunk.end, batch.chain(chunk.number, lease), at, kind, text, digest)
    figures = chunk.figures.moved((before.row, after) for before, after in changes)
    after = attrs.evolve(chunk, entries=entry.number, head=entry.hash, digest=digest, figures=figures)
    return Entered(after, entry, lease, rows)


_UPDATE: Final = (
    "UPDATE payments.chunks SET entries = %s, head = %s, digest = %s, unsent = %s, in_flight = %s, "
    "in_doubt = %s, created = %s, refused = %s, not_final = %s, generation = %s, totals = %s "
    "WHERE batch = %s AND chunk = %s"
)
_APPEND: Final = (
    "INSERT INTO payments.entries (batch, chunk, number, wall, monotonic, session, server, kind, lease, "
    "rows_digest, hash, changes) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
)
_COPY_CHUNKS: Final = (
    "COPY payments.chunks (batch, chunk, first, last, granted_to, entries, head, digest, unsent, in_flight, "
    "in_doubt, created, refused, not_final, generation, totals) FROM STDIN (FORMAT binary)"
)
_CHUNK_TYPES: Final = (
    *("int8", "int4", "int4", "int4", "int4", "int4", "bytea", "bytea", "int4", "int4"),
    *("int4", "int4", "int4", "int4", "int4", "text"),
)
_COPY_ENTRIES: Final = (
    "COPY payments.entries (batch, chunk, number, wall, monotonic, session, server, kind, lease, "
    "rows_digest, hash, changes) FROM STDIN (FORMAT binary)"
)
_ENTRY_TYPES: Final = (
    *("int8", "int4", "int4", "float8", "float8", "text", "float8", "text", "bytea"),
    *("bytea", "bytea", "text"),
)


def stored_values(chunk: Chunk) -> tuple[Any, ...]:
    """The values of a chunk that a commit changes."""
    figures = chunk.figures
    return (
        *(chunk.entries, chunk.head, chunk.digest),
        *(figures.count(_O.NOT_STARTED), figures.count(_O.UNDER_WAY), figures.count(_O.IN_DOUBT)),
        *(figures.count(*CREATED), figures.count(_O.REJECTED, _O.CONFLICT), figures.count(_O.NOT_FINAL)),
        *(figures.generation, figures.totals_text),
    )


def write(transaction: Transaction, batch: Batch, all_entered: Sequence[Entered]) -> None:
    """Store chunks, their new entries and the states of their changed rows, with the commit."""
    rows = [row for each in all_entered for row in each.rows]
    if rows:
        transaction.write(updating(batch.batch, rows))
    for each in all_entered:
        transaction.write((_APPEND, _entry_values(batch, each)))
        place = (batch.batch, each.chunk.number)
        transaction.write((_UPDATE, (*stored_values(each.chunk), *place)))


async def insert(transaction: Transaction, batch: Batch, all_entered: Sequence[Entered]) -> None:
    """Insert chunks with their first entries."""
    chunks = [
        (batch.batch, chunk.number, chunk.first, chunk.last, chunk.granted_to, *stored_values(chunk))
        for chunk, *_ in all_entered
    ]
    await transaction.copy(_COPY_CHUNKS, _CHUNK_TYPES, chunks)
    entries = [_entry_values(batch, each) for each in all_entered]
    await transaction.copy(_COPY_ENTRIES, _ENTRY_TYPES, entries)


def _entry_values(batch: Batch, entered: Entered) -> tuple[Any, ...]:
    entry, at = entered.entry, entered.entry.at
    return (
        *(batch.batch, entered.chunk.number, entry.number),
        *(at.wall, at.monotonic, at.session, at.server),
        *(entry.kind, entered.lease, entry.rows_digest, entry.hash, entry.changes),
    )


async def is_stored(transaction: Transaction, batch: int, all_entered: Collection[Entered]) -> bool:
    """Find out whether entries were committed. Waits for a lost session that may still be doing so."""
    chunks = [each.chunk.number for each in all_entered]
    hashes = [each.entry.hash for each in all_entered]
    count = (
        "SELECT count(*) FROM payments.entries "
        "WHERE batch = %s AND chunk = ANY(%b::int4[]) AND hash = ANY(%b::bytea[])"
    )
    _, ((stored,),) = await transaction.read(locking(batch, chunks), (count, (batch, chunks, hashes)))
    return bool(stored == len(all_entered))
