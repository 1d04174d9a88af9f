"""Chunks: ranges of a batch's rows. Each has a hash chain, figures and a holder of its own.

Whoever changes rows locks their chunks first, in rising order, and the batch's own row last. Chunk 0 stands
for the batch itself, and its chain for what is rare: import, plan, edits, pause, closing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final, NamedTuple

import attrs

from ...protocol.clocks import Timestamps
from ...protocol.outcomes import CREATED, Outcome
from .. import hash_chain
from ..hash_chain import ChainEntry
from ..rows import readable
from .driver import arrays
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
    "WHERE c.batch = %s AND c.chunk = ANY(%s) ORDER BY c.chunk FOR UPDATE OF c"
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
    return _LOCK, (batch, arrays.int4s(sorted(set(chunks))))


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


_STORED: Final[tuple[tuple[str, Callable[[Sequence[Any]], arrays.PackedArray]], ...]] = (
    ("entries", arrays.int4s),
    ("head", arrays.blobs),
    ("digest", arrays.blobs),
    ("unsent", arrays.int4s),
    ("in_flight", arrays.int4s),
    ("in_doubt", arrays.int4s),
    ("created", arrays.int4s),
    ("refused", arrays.int4s),
    ("not_final", arrays.int4s),
    ("generation", arrays.int4s),
    ("totals", arrays.texts),
)
_UPDATE: Final = (
    f"UPDATE payments.chunks c SET {', '.join(f'{name} = u.{name}' for name, _ in _STORED)} "
    f"FROM unnest(%s, {', '.join('%s' for _ in _STORED)}) AS u(chunk, {', '.join(n for n, _ in _STORED)}) "
    "WHERE c.batch = %s AND c.chunk = u.chunk"
)
_APPEND: Final = (
    "INSERT INTO payments.entries (batch, chunk, number, wall, monotonic, session, server, kind, lease, "
    "rows_digest, hash, changes) SELECT %s, * FROM unnest(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
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
    transaction.write(_appending(batch.batch, all_entered))
    numbers = arrays.int4s([each.chunk.number for each in all_entered])
    columns = zip(*(stored_values(each.chunk) for each in all_entered), strict=True)
    packed = [pack(column) for (_, pack), column in zip(_STORED, columns, strict=True)]
    transaction.write((_UPDATE, (numbers, *packed, batch.batch)))


_KEPT: Final[tuple[tuple[str, Callable[[Sequence[Any]], arrays.PackedArray]], ...]] = (
    ("chunk", arrays.int4s),
    ("first", arrays.int4s),
    ("last", arrays.int4s),
    ("granted_to", arrays.int4s),
)
_INSERT: Final = (
    f"INSERT INTO payments.chunks (batch, {', '.join(n for n, _ in (*_KEPT, *_STORED))}) "
    f"SELECT %s, * FROM unnest({', '.join('%s' for _ in (*_KEPT, *_STORED))})"
)


def insert(transaction: Transaction, batch: Batch, all_entered: Sequence[Entered]) -> None:
    """Insert chunks with their first entries."""
    rows = [
        (chunk.number, chunk.first, chunk.last, chunk.granted_to, *stored_values(chunk))
        for chunk, *_ in all_entered
    ]
    columns = zip(*rows, strict=True)
    packed = [pack(column) for (_, pack), column in zip((*_KEPT, *_STORED), columns, strict=True)]
    transaction.write((_INSERT, (batch.batch, *packed)))
    transaction.write(_appending(batch.batch, all_entered))


def _appending(batch: int, all_entered: Sequence[Entered]) -> Statement:
    chunks = [each.chunk.number for each in all_entered]
    entries = [each.entry for each in all_entered]
    return _APPEND, (
        batch,
        arrays.int4s(chunks),
        arrays.int4s([entry.number for entry in entries]),
        arrays.float8s([entry.at.wall for entry in entries]),
        arrays.float8s([entry.at.monotonic for entry in entries]),
        arrays.texts([entry.at.session for entry in entries]),
        arrays.float8s([entry.at.server for entry in entries]),
        arrays.texts([entry.kind for entry in entries]),
        arrays.blobs([each.lease for each in all_entered]),
        arrays.blobs([entry.rows_digest for entry in entries]),
        arrays.blobs([entry.hash for entry in entries]),
        arrays.texts([entry.changes for entry in entries]),
    )


async def is_stored(transaction: Transaction, batch: int, all_entered: Collection[Entered]) -> bool:
    """Find out whether entries were committed. Waits for a lost session that may still be doing so."""
    chunks = [each.chunk.number for each in all_entered]
    hashes = arrays.blobs([each.entry.hash for each in all_entered])
    count = "SELECT count(*) FROM payments.entries WHERE batch = %s AND chunk = ANY(%s) AND hash = ANY(%s)"
    _, ((stored,),) = await transaction.read(
        locking(batch, chunks), (count, (batch, arrays.int4s(chunks), hashes))
    )
    return bool(stored == len(all_entered))
