"""What work a batch has left: the view that a step begins and ends with, and chunks that are free and due.

Reads the figures of chunks and no row.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

import attrs

from ...._http.addresses import same_service
from ..._protocol.machines import BatchState
from ..._protocol.outcomes import Outcome
from ..._protocol.records import RowFigures, added_up
from ...ledger_errors import LedgerDamaged, LedgerMissing
from ..batches import FORM
from ..chunks import Batch
from ..stored_rows import readable, undamaged
from .batches import SharedFacts, by_id, found_as, pause
from .database import Database
from .dialect import HERE
from .failover import judge
from .leases import Work
from .worker_registry import Worker

_FREE: Final = "(c.expires IS NULL OR c.expires <= clock_timestamp())"
_HAS_NEW: Final = "c.unsent > 0 AND c.granted_to >= CASE WHEN b.stopped IS NULL THEN 0 ELSE 1 END"
_DUE: Final = "(c.look_at IS NULL OR c.look_at <= clock_timestamp())"
_ANY: Final = (  # in the order of the index; of EXISTS a planner may make a look at all chunks
    "(SELECT k.chunk FROM payments.chunks k WHERE k.batch = b.batch AND k.chunk > 0 AND k.stage IS NOT NULL "
    "AND ({}) ORDER BY k.stage, k.chunk LIMIT 1)"
)
_COMPLETE: Final = f"b.lost_in IS NULL AND {_ANY.format('k.unsent + k.in_flight + k.in_doubt > 0')} IS NULL"
_RUNS: Final = "k.expires > clock_timestamp() OR k.in_flight > 0 OR k.unsent > 0 AND b.stopped IS NULL"
IS_DUE: Final = {
    Work.SEND: f"{_FREE} AND c.chunk > 0 AND c.stage >= 1 AND ({_HAS_NEW} OR c.in_flight > 0)",
    Work.LOOK: f"{_FREE} AND c.chunk > 0 AND c.stage <= CASE WHEN b.stopped IS NULL THEN 1 ELSE 2 END "
    f"AND c.in_doubt > 0 AND c.in_flight = 0 AND NOT ({_HAS_NEW}) AND {_DUE}",
    Work.CLOSE: f"{_FREE} AND c.chunk = 0 AND {_DUE} AND {_COMPLETE}",
}
"""{kind of work: the condition of chunk `c` of batch `b` that is free and has some}."""
_DUE_WORK: Final = (
    "SELECT b.batch_id, due.chunk FROM payments.batches b CROSS JOIN LATERAL ("
    "SELECT count(DISTINCT k.holder) AS workers FROM payments.chunks k WHERE k.batch = b.batch "
    "AND k.stage = 1 AND k.lease IS NOT NULL AND k.expires > clock_timestamp()) busy CROSS JOIN LATERAL ("
    "SELECT c.chunk, c.in_flight FROM payments.chunks c WHERE c.batch = b.batch AND {condition} "
    "ORDER BY c.stage, c.chunk LIMIT %s) due "  # in the order of the index, so that no others are read
    "WHERE b.batch = ANY(%b::int8[]) "
    # rows that a dead worker left come first, then the batch with the fewest workers
    "ORDER BY due.in_flight = 0, busy.workers, b.batch, due.chunk LIMIT %s"
)
_OPEN: Final = (
    f"SELECT b.batch, b.batch_id, b.chunk_size, b.hash_key, {HERE}, b.base_url FROM payments.batches b "
    f"WHERE b.state = 'open' AND b.schema = {FORM} AND b.environment = %s "
    "AND (%s::bigint IS NULL OR b.batch = %s) AND (NOT %s OR %s = ANY(b.keys))"
)
_UNDER_WAY: Final = (  # a batch that is complete is closed next
    f" AND ({_ANY.format(_RUNS)} IS NOT NULL OR {_COMPLETE})"
)
_CHUNKS: Final = (
    "SELECT c.chunk, c.granted_to, extract(epoch FROM c.expires - clock_timestamp())::float8, "
    f"extract(epoch FROM c.look_at - clock_timestamp())::float8, {HERE}, c.totals, c.generation "
    "FROM payments.chunks c JOIN payments.batches b ON b.batch = c.batch "
    "WHERE b.batch_id = %s AND (%s::int4 IS NULL OR c.chunk = %s) ORDER BY c.chunk"
)

_CHANGES: Final = (
    "SELECT extract(epoch FROM min(t.at) - clock_timestamp())::float8 FROM payments.chunks c, "
    "LATERAL (VALUES (c.expires), (c.look_at)) t (at) "
    "WHERE c.batch = ANY(%b::int8[]) AND c.stage <= 1 AND t.at > clock_timestamp()"
)


@attrs.frozen
class ChunkView:
    """What a step sees of a chunk."""

    number: int
    granted_to: int
    """The highest row number that the stop rules let be taken; 0 before the first grant."""
    leased_for: float
    """Seconds for which a process still has it; 0 when it is free."""
    due_in: float
    """Seconds until its rows in doubt are due for a look; 0 when they are."""
    figures: RowFigures

    def count(self, *outcomes: Outcome) -> int:
        """Count its rows of these outcomes."""
        return self.figures.count(*outcomes)


@attrs.frozen
class BatchView:
    """What a step sees of a batch: its facts, and one chunk or all."""

    facts: SharedFacts
    itself: ChunkView | None
    """Chunk 0, which stands for the batch; None in the view of one chunk."""
    chunks: Sequence[ChunkView]
    is_here: bool = True
    """False if its last commit went to another store than this one."""
    is_clean: bool | None = None
    """Whether the list agreed with the ledger when it was closed; None if it is open, or was not compared."""

    @property
    def figures(self) -> RowFigures:
        """The figures of these chunks together."""
        return added_up(chunk.figures for chunk in self.chunks)


async def batch_view(database: Database, batch_id: str, chunk: int | None = None) -> BatchView:
    """Look at a batch, or at one chunk of it. Raises LedgerMissing, and LedgerError."""
    found, values = await database.read(by_id(batch_id), (_CHUNKS, (batch_id, chunk, chunk)))
    label = f"{database.label}, batch {batch_id}"
    facts = found_as(label, found)
    with undamaged(label), readable("a batch"):
        chunks, is_here = list[ChunkView](), True
        for number, granted_to, leased, due, here, *figures in values:
            seconds = (max(leased or 0.0, 0.0), max(due or 0.0, 0.0))
            chunks.append(ChunkView(number, granted_to, *seconds, RowFigures.read(*figures)))
            is_here = is_here and here
    is_clean = None
    if facts.state is BatchState.CLOSED and facts.closing is not None:
        is_clean = facts.closing.get("clean")
    itself = chunks.pop(0) if chunks and chunks[0].number == 0 else None
    return BatchView(facts, itself, chunks, is_here=is_here, is_clean=is_clean)


class DueWork(NamedTuple):
    """A piece of work that is free and due."""

    kind: Work
    batch_id: str
    chunk: int
    """The chunk to pay; 0 for work on the batch as a whole."""


async def open_batches(
    database: Database, worker: Worker, only: int | None, *, proven: bool = True, under_way: bool = False
) -> list[Batch]:
    """Find the open batches of a worker's account.

    One whose last commit went to another store is judged first, and one that is damaged is paused.

    Args:
        database: where they are.
        worker: who wants to pay them.
        only: the number of the only batch to look at; None for all.
        proven: only those whose project the account's key is proven to be of.
        under_way: find only those whose rows are sent now, or can be, and those that are complete and not
            closed yet. Rows in doubt wait for a look.

    Raises LedgerError.
    """
    account, clock = worker.account, worker.clock(database)
    sql = f"{_OPEN}{_UNDER_WAY if under_way else ''}"
    (found,) = await database.read((sql, (account.environment, only, only, proven, account.key)))
    batches = list[Batch]()
    for number, batch_id, size, key, is_here, url in found:
        if not same_service(url, account.base_url):
            continue
        batch = Batch(number, batch_id, size, key)
        with suppress(LedgerMissing):  # discarded meanwhile
            try:
                if not is_here:
                    await judge(database, batch, clock)
                batches.append(batch)
            except LedgerDamaged as damage:
                await pause(database, batch, clock, str(damage))
    return batches


async def due_work(
    database: Database, batches: Collection[int], kinds: Sequence[Work], most: int
) -> list[DueWork]:
    """Find pieces of work of these batches that are free and due, at most so many of each kind.

    Raises LedgerError.
    """
    numbers = sorted(batches)
    values = (most, numbers, most)
    statements = [(_DUE_WORK.format(condition=IS_DUE[kind]), values) for kind in kinds]
    due = dict.fromkeys(
        DueWork(kind, batch_id, chunk if kind is Work.SEND else 0)
        for kind, found in zip(kinds, await database.read(*statements), strict=True)
        for batch_id, chunk in found
    )
    return list(due)


async def seconds_until_due(database: Database, batches: Collection[int]) -> float:
    """Find out when work of these batches may fall due of itself: a lease ends, or a look is due.

    Raises LedgerError.
    """
    (((seconds,),),) = await database.read((_CHANGES, (sorted(batches),)))
    return math.inf if seconds is None else float(seconds)
