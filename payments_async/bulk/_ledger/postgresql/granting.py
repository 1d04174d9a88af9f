"""Finds open batches, and grants leases of their free chunks, as far as a batch's stop rules allow."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal
from functools import partial
from typing import Final, NamedTuple

import attrs

from ...._http.addresses import same_service
from ..._protocol import machines
from ..._protocol.machines import BatchState, own_end
from ..._protocol.outcomes import Outcome, Sums
from ..._protocol.stop_rules import Account, StopRules, allows_any, stop_reason
from ...ledger_errors import LeaseLost, LedgerDamaged, LedgerMissing
from ..batches import FORM
from ..chunks import (
    Batch,
    Chunk,
    ChunkWrite,
    LockedChunks,
    is_stored,
    locking_chunks,
    read_chunks,
    with_entry,
    write_chunks,
)
from ..stored_rows import UnreadableRecord
from ..transactions import Transaction
from .batches import pause, read_rules, stopping
from .database import Database
from .dialect import HERE
from .failover import judge
from .leases import Lease, Work
from .schema import rows_table, states_table
from .worker_registry import Worker

NewRows = Sequence[tuple[int, str, Decimal]]
"""Number, currency and amount of new rows, in the order of their numbers."""
Taken = Sums[tuple[Outcome, str]]
"""Rows that were or may be taken, with their sums."""
_FREE: Final = "c.batch = ANY(%b::int8[]) AND (c.expires IS NULL OR c.expires <= clock_timestamp())"
_HAS_NEW: Final = "c.unsent > 0 AND (b.stopped IS NULL OR c.granted_to > 0)"
_BUSY: Final = (
    "WITH busy AS (SELECT k.batch, count(DISTINCT k.holder) AS workers FROM payments.chunks k "
    "WHERE k.batch = ANY(%b::int8[]) AND k.lease IS NOT NULL AND k.expires > clock_timestamp() "
    "GROUP BY k.batch) "
)
_DUE: Final = "(c.look_at IS NULL OR c.look_at <= clock_timestamp())"
_COMPLETE: Final = (
    "b.lost_in IS NULL AND NOT EXISTS (SELECT 1 FROM payments.chunks k "
    "WHERE k.batch = b.batch AND k.unsent + k.in_flight + k.in_doubt > 0)"
)
_CONDITIONS: Final = {
    Work.SEND: f"c.chunk > 0 AND ({_HAS_NEW} OR c.in_flight > 0)",
    Work.LOOK: f"c.chunk > 0 AND c.in_doubt > 0 AND c.in_flight = 0 AND NOT ({_HAS_NEW}) AND {_DUE}",
    Work.CLOSE: f"c.chunk = 0 AND {_DUE} AND {_COMPLETE}",
}
_FIND: Final = (
    f"{_BUSY}SELECT c.batch, c.chunk FROM payments.chunks c JOIN payments.batches b ON b.batch = c.batch "
    "LEFT JOIN busy ON busy.batch = c.batch "
    f"WHERE {_FREE} AND {HERE} AND {{condition}} AND (%s::int IS NULL OR c.chunk = %s) "
    # rows that a dead worker left come first, then the batch with the fewest workers
    "ORDER BY c.in_flight = 0, coalesce(busy.workers, 0), c.batch, c.chunk"
)
_TO_SEND: Final = "SELECT unsent + in_flight FROM payments.chunks WHERE batch = %s AND chunk = %s"
_LOCK_BATCH: Final = (
    "SELECT batch_id, chunk_size, rules, state, stopped FROM payments.batches WHERE batch = %s FOR UPDATE"
)
_NEW_ROWS: Final = (
    "SELECT s.number, r.currency, r.amount FROM {states} s "
    "JOIN {rows} r ON r.number = s.number AND r.version = s.version "
    "WHERE s.number BETWEEN %s AND %s AND s.state = 'NEW' ORDER BY s.number"
)
_ALLOW: Final = "UPDATE payments.chunks SET granted_to = %s WHERE batch = %s AND chunk = %s"
_GRANT: Final = (
    "UPDATE payments.chunks SET lease = %s, holder = %s, granted_to = %s, "
    "expires = clock_timestamp() + %s * interval '1 s' WHERE batch = %s AND chunk = %s"
)
_OPEN: Final = (
    f"SELECT b.batch, b.batch_id, b.chunk_size, {HERE}, b.base_url FROM payments.batches b "
    f"WHERE b.state = 'open' AND b.schema = {FORM} AND b.environment = %s AND (%s = ANY(b.keys)) = %s "
    "AND (%s::bigint IS NULL OR b.batch = %s)"
)
_UNDER_WAY: Final = (
    " AND (EXISTS (SELECT 1 FROM payments.chunks c WHERE c.batch = b.batch AND c.chunk > 0 "
    "AND (c.expires > clock_timestamp() OR c.in_flight > 0 OR c.unsent > 0 AND b.stopped IS NULL)) "
    f"OR {_COMPLETE})"  # the batch is closed next
)


async def open_batches(
    database: Database, account: Account, only: int | None, *, proven: bool = True, under_way: bool = False
) -> list[tuple[Batch, bool]]:
    """Find open batches, each with whether its last commit went to this server. Raises LedgerError.

    Args:
        database: where they are.
        account: the account that they are paid from.
        only: the number of the only batch to look at; None for all.
        proven: whether the account's key is proven to be of the batch's project.
        under_way: find only those whose rows are sent now, or can be, and those that are complete and not
            closed yet. Rows in doubt wait for a look.
    """
    sql = f"{_OPEN}{_UNDER_WAY if under_way else ''}"
    (found,) = await database.read((sql, (account.environment, account.key, proven, only, only)))
    return [
        (Batch(number, batch_id, size), is_here)
        for number, batch_id, size, is_here, url in found
        if same_service(url, account.base_url)
    ]


async def grant(
    database: Database,
    worker: Worker,
    *,
    kinds: Sequence[Work] = (Work.SEND,),
    batch: int | None = None,
    chunk: int | None = None,
) -> list[Lease]:
    """Ask for a lease of any free chunk with work of the first of these kinds, or of one batch or chunk.

    Returns several for `LOOK`, none when there is nothing to do. Pauses a damaged batch, and goes on with
    the others. Raises LedgerError.
    """
    among, clock = dict[int, Batch](), worker.clock(database)
    for each, is_here in await open_batches(database, worker.account, batch):
        with suppress(LedgerMissing):  # discarded meanwhile
            try:
                if not is_here:
                    await judge(database, each, clock)
                among[each.batch] = each
            except LedgerDamaged as damage:
                await pause(database, each, clock, str(damage))
    while among:
        granting = _Granting(database, worker, kinds)
        work = partial(granting.grant, among=sorted(among), chunk=chunk)
        try:
            return await database.commit(work, granting.is_granted)
        except UnreadableRecord as error:
            damaged, finding = among.pop(granting.batch), str(error)
        reason = LedgerDamaged(f"{database.label}, batch {damaged.batch_id}", [finding])
        with suppress(LedgerMissing):
            await pause(database, damaged, clock, str(reason))
    return []


async def has_rows_to_send(database: Database, batch: int, chunk: int) -> bool:
    """Find out whether a chunk has rows that are new or in flight. Raises LedgerError."""
    (found,) = await database.read((_TO_SEND, (batch, chunk)))
    return found != [(0,)]


@attrs.define
class _Granting:
    """One request for leases."""

    database: Database
    worker: Worker
    kinds: Sequence[Work]
    kind: Work = Work.SEND
    """The kind that the last attempt has found."""
    batch: int = 0
    """The batch that the last attempt has found a chunk of."""
    _last: tuple[int, list[ChunkWrite]] = (0, [])

    async def grant(self, transaction: Transaction, among: Sequence[int], chunk: int | None) -> list[Lease]:
        """Find free chunks and grant their leases, each with an entry of its chain."""
        self._last = (0, [])
        asked = self.database.runtime.boottime()
        if asked is None:
            raise LeaseLost(
                self.database.label, "this machine has no clock that counts while it is suspended"
            )
        values = (list(among), list(among), chunk, chunk)
        for kind in self.kinds:
            sql = _FIND.format(condition=_CONDITIONS[kind])
            most = "" if kind is Work.LOOK else " LIMIT 1"
            (found,) = await transaction.read((f"{sql}{most} FOR UPDATE OF c SKIP LOCKED", values))
            if found:
                (self.batch, _), self.kind = found[0], kind
                chunks = [number for batch, number in found if batch == self.batch]
                return await self._grant(transaction, self.batch, chunks, asked)
        return []

    async def _grant(
        self, transaction: Transaction, number: int, chunks: Sequence[int], asked: float
    ) -> list[Lease]:
        """Grant locked chunks, under the lock of their batch."""
        ((batch_id, size, rules, state, stopped),), found = await transaction.read(
            (_LOCK_BATCH, (number,)), locking_chunks(transaction, number, chunks)
        )
        if state != BatchState.OPEN:
            return []
        batch, locked = Batch(number, batch_id, size), LockedChunks.of(found)
        limits = _Limits(transaction, batch, read_rules(rules), stopped)
        granted = []
        for chunk in locked.chunks.values():
            allowed, claimable = Allowance(chunk.granted_to, stopped), 0
            if self.kind is Work.SEND:
                allowed, claimable = await limits.allowed(chunk)
            if self.kind is not Work.SEND or claimable or chunk.figures.count(Outcome.UNDER_WAY):
                granted.append(self._write(transaction, batch, chunk, allowed, locked.wall))
            else:
                transaction.write((_ALLOW, (0, number, chunk.number)))
        if granted:
            write_chunks(transaction, batch, granted)
        self._last = (number, granted)
        return [self._lease(batch, each, asked) for each in granted]

    def _write(
        self, transaction: Transaction, batch: Batch, chunk: Chunk, allowed: Allowance, wall: float
    ) -> ChunkWrite:
        lease = self.database.runtime.token(16)
        worker = self.worker
        facts = {"worker": worker.id.hex(), "host": worker.host, "pid": worker.pid, "for": self.kind}
        text = json.dumps({**facts, "granted_to": allowed.granted_to})
        place = (batch.batch, chunk.number)
        transaction.write((_GRANT, (lease, worker.id, allowed.granted_to, machines.LEASE, *place)))
        at = worker.moment(self.database, wall)
        granted = attrs.evolve(chunk, lease=lease, granted_to=allowed.granted_to)
        return with_entry(batch, granted, "lease", at, text, lease)

    def _lease(self, batch: Batch, write: ChunkWrite, asked: float) -> Lease:
        chunk = write.chunk
        return Lease(
            batch=batch,
            kind=self.kind,
            chunk=chunk.number,
            id=chunk.lease or b"",
            first=chunk.first,
            last=chunk.last,
            granted_to=chunk.granted_to,
            begun_in=chunk.entries,
            ends=own_end(asked),
            now=self.database.runtime.boottime,
        )

    async def is_granted(self, transaction: Transaction) -> bool:
        """Find out whether the last attempt was committed."""
        return await is_stored(transaction, *self._last)


@attrs.frozen
class _Limits:
    """What the stop rules of a locked batch let be taken."""

    transaction: Transaction
    batch: Batch
    rules: StopRules
    stopped: str | None

    async def allowed(self, chunk: Chunk) -> tuple[Allowance, int]:
        """Decide how far a chunk's new rows may be taken, and count those. Stores why no more may be."""
        unsent = chunk.figures.count(Outcome.NOT_STARTED)
        if self.stopped is not None:  # what was granted before stays so
            new = await self._new(chunk, chunk.granted_to)
            return Allowance(chunk.granted_to, self.stopped), len(new)
        if not unsent or not limits_rows(self.rules):
            return Allowance(chunk.last, None), unsent
        new = await self._new(chunk, chunk.last)
        allowed = allowance(self.rules, await self._taken(chunk), chunk, new)
        if allowed.stopped is not None:
            self.transaction.write(stopping(self.batch.batch, allowed.stopped))
        return allowed, sum(number <= allowed.granted_to for number, _, _ in new)

    async def _taken(self, chunk: Chunk) -> Taken:
        """Add up what was promised of other chunks, and what was taken of this one."""
        (found,) = await self.transaction.read((self.transaction.sql.chunks, (self.batch.batch,)))
        taken = Taken()
        promise(taken, attrs.evolve(chunk, granted_to=0))
        for other in read_chunks(found):
            if other.number != chunk.number:
                promise(taken, other)
        return taken

    async def _new(self, chunk: Chunk, until: int) -> NewRows:
        batch = self.batch.batch
        sql = _NEW_ROWS.format(states=states_table(batch), rows=rows_table(batch))
        (found,) = await self.transaction.read((sql, (chunk.first, until)))
        return [(number, currency, Decimal(amount)) for number, currency, amount in found]


# What the stop rules allow. Pure


class Allowance(NamedTuple):
    """What may be taken of a chunk."""

    granted_to: int
    """The highest row number; 0 when no row may be taken."""
    stopped: str | None
    """The reason why no further row of the batch may be taken; None while they may."""


def limits_rows(rules: StopRules) -> bool:
    """True if the rules limit which rows are taken before any outcome is known."""
    return rules.max_amount is not None or rules.max_rows is not None


def promise(taken: Taken, chunk: Chunk) -> None:
    """Add a chunk's rows that were or may be taken, of any outcome, as if all were under way.

    A chunk of which only a part was granted has stopped the batch: no other is granted beside it.
    """
    untaken = {Outcome.CANCELLED} if chunk.granted_to else {Outcome.CANCELLED, Outcome.NOT_STARTED}
    for (outcome, currency), (rows, amount) in chunk.figures.totals.items():
        if outcome not in untaken:
            taken.add((Outcome.UNDER_WAY, currency), amount, rows)


def allowance(rules: StopRules, taken: Taken, chunk: Chunk, new: NewRows) -> Allowance:
    """Find the last of a chunk's first new rows that the rules allow, and add those to what is taken.

    `taken`: all that was promised elsewhere, and this chunk's rows that are not new.
    """
    limits, both = StopRules(rules.max_amount, rules.max_rows), Sums(taken.totals)
    for _, currency, amount in new:
        both.add((Outcome.UNDER_WAY, currency), amount)
    if allows_any(limits, both.totals, 0):
        return Allowance(chunk.last, None)
    granted_to = 0
    for number, currency, amount in new:
        if reason := stop_reason(limits, taken.totals, amount=amount, currency=currency):
            return Allowance(granted_to, reason)
        granted_to = number
        taken.add((Outcome.UNDER_WAY, currency), amount)
    return Allowance(chunk.last, None)
