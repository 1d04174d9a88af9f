"""Leases of chunks: who may send which rows, until when. Granted and renewed on the database's clock.

    (lease,) = await grant(database, worker)
    renewal = await renew(database, worker, [lease])        # every 3 seconds
    await give_back(database, worker, [lease])

A lease is a random number in the chunk's row, compared by equality. Every commit of an intent proves it
(`commits`). It keeps workers apart; what prevents a second payment is the reference.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final

import attrs

from ...._http.addresses import same_service
from ...ledger_errors import LeaseLost
from ...protocol import leases as _rules
from ...protocol.clocks import Timestamps
from ...protocol.leases import BatchState, may_send, own_end
from ...protocol.row_state import RowState
from ...protocol.stop_rules import Account, StopRules, Totals, stop_reason
from . import allowances
from . import chunks as _chunks
from .allowances import Allowance, NewRows
from .batches import read_rules
from .chunks import HERE, Batch, Chunk, Entered
from .driver import arrays
from .driver.database import Database, Transaction
from .driver.session import Statement
from .failover import STANDBYS, judge, observed, standbys_of
from .rows import undamaged
from .schema import rows_table, states_table


class Work(StrEnum):
    """What a lease is asked for."""

    SEND = "send"
    """Rows that are new, or that a worker left in flight: one chunk."""
    LOOK = "look"
    """Rows in doubt that are due: all free chunks of one batch that have some and are otherwise done."""
    CLOSE = "close"
    """The closing of a batch all of whose rows are decided: its chunk 0."""


@attrs.frozen
class Worker:
    """A process that asks for leases."""

    id: bytes
    """Sixteen random bytes."""
    host: str
    pid: int
    version: str
    """That of this package."""
    slots: int
    """How many chunks it works on at a time."""
    account: Account
    """The account that it pays from: it gets leases of no other's batches."""


@attrs.define(eq=False)
class Lease:
    """The right to send a chunk's rows, for a while."""

    batch: int
    batch_id: str
    chunk: int
    id: bytes = attrs.field(repr=False)
    first: int
    """The number of the chunk's first row."""
    last: int
    granted_to: int
    """The highest row number that the stop rules let be taken."""
    begun_in: int
    """The entry of the chunk's chain that records it: rows changed up to there are of an earlier holder."""
    ends: float
    """When this worker stops under it, on its clock that counts suspension."""
    _now: Callable[[], float | None] = attrs.field(repr=False)
    is_lost: bool = False

    def holds(self) -> bool:
        """True if a request may begin. Asked right before its first byte."""
        now = self._now()
        return not self.is_lost and now is not None and may_send(self.ends, now)


@attrs.frozen
class Renewal:
    """What a worker learns when it renews its leases."""

    lost: tuple[Lease, ...]
    """Leases that are void: they had ended, another worker has the chunks, or the batch is suspect."""
    held: Mapping[int, str]
    """{batch: why no row of it may be sent now}."""
    stopped: Mapping[int, str]
    """{batch: why the stop rules let no further new row be taken}."""
    drain: bool
    """True if the operator wants this worker to take no new chunk."""


# Granting

_OPEN: Final = (
    f"SELECT b.batch, b.batch_id, b.chunk_size, b.base_url, {HERE} "
    "FROM payments.batches b WHERE b.state = 'open' AND b.environment = %s AND %s = ANY(b.keys)"
)
_FREE: Final = "c.batch = ANY(%s) AND (c.expires IS NULL OR c.expires <= clock_timestamp())"
_HAS_NEW: Final = "c.unsent > 0 AND (b.stopped IS NULL OR c.granted_to > 0)"
_BUSY: Final = (
    "WITH busy AS (SELECT k.batch, count(DISTINCT k.holder) AS workers FROM payments.chunks k "
    "WHERE k.batch = ANY(%s) AND k.lease IS NOT NULL AND k.expires > clock_timestamp() GROUP BY k.batch) "
)
_DUE: Final = "(c.look_at IS NULL OR c.look_at <= clock_timestamp())"
_CONDITIONS: Final = {
    Work.SEND: f"c.chunk > 0 AND ({_HAS_NEW} OR c.in_flight > 0)",
    Work.LOOK: f"c.chunk > 0 AND c.in_doubt > 0 AND c.in_flight = 0 AND NOT ({_HAS_NEW}) AND {_DUE}",
    Work.CLOSE: f"c.chunk = 0 AND {_DUE} AND b.lost_in IS NULL "
    "AND NOT EXISTS (SELECT 1 FROM payments.chunks k "
    "WHERE k.batch = c.batch AND k.unsent + k.in_flight + k.in_doubt > 0)",
}
_FIND: Final = (
    f"{_BUSY}SELECT c.batch, c.chunk FROM payments.chunks c JOIN payments.batches b ON b.batch = c.batch "
    "LEFT JOIN busy ON busy.batch = c.batch "
    f"WHERE {_FREE} AND {HERE} AND {{condition}} AND (%s::int IS NULL OR c.chunk = %s) "
    # rows that a dead worker left come first, then the batch with the fewest workers
    "ORDER BY c.in_flight = 0, coalesce(busy.workers, 0), c.batch, c.chunk"
)
_LOCK_BATCH: Final = (
    "SELECT batch_id, chunk_size, rules, state, stopped FROM payments.batches WHERE batch = %s FOR UPDATE"
)
_NEW_ROWS: Final = (
    "SELECT s.number, r.currency, r.amount FROM {states} s "
    "JOIN {rows} r ON r.number = s.number AND r.version = s.version "
    "WHERE s.number BETWEEN %s AND %s AND s.state = 'NEW' ORDER BY s.number"
)
_ALLOW: Final = "UPDATE payments.chunks SET granted_to = %s WHERE batch = %s AND chunk = %s"
_STOP: Final = "UPDATE payments.batches SET stopped = %s WHERE batch = %s"
_GRANT: Final = (
    "UPDATE payments.chunks SET lease = %s, holder = %s, granted_to = %s, "
    "expires = clock_timestamp() + %s * interval '1 s' WHERE batch = %s AND chunk = %s"
)


async def grant(
    database: Database,
    worker: Worker,
    *,
    kind: Work = Work.SEND,
    batch: int | None = None,
    chunk: int | None = None,
) -> list[Lease]:
    """Ask for a lease of any free chunk with work of this kind, or of one batch or chunk.

    Returns several for `LOOK`, none when there is nothing to do. Raises LedgerError.
    """
    open_batches = [number for number in await _open_batches(database, worker) if batch in (None, number)]
    if not open_batches:
        return []
    granting = _Granting(database, worker, kind)
    with undamaged(database.label):
        return await database.commit(
            lambda transaction: granting.grant(transaction, open_batches, chunk), granting.is_granted
        )


async def _open_batches(database: Database, worker: Worker) -> list[int]:
    """Find the batches that this worker may work on. Judges those whose store has changed."""
    place, numbers = worker.account, []
    (found,) = await database.read((_OPEN, (place.environment, place.key)))
    for number, batch_id, size, url, is_here in found:
        if same_service(url, place.base_url):
            if not is_here:
                await judge(database, Batch(number, batch_id, size), _clock(database, worker))
            numbers.append(number)
    return numbers


@attrs.define
class _Granting:
    """One request for leases."""

    database: Database
    worker: Worker
    kind: Work
    _last: tuple[int, list[Entered]] = (0, [])

    async def grant(
        self, transaction: Transaction, open_batches: Collection[int], chunk: int | None
    ) -> list[Lease]:
        """Find free chunks and grant their leases, each with an entry of its chain."""
        self._last = (0, [])
        asked = self.database.runtime.boottime()
        if asked is None:
            raise LeaseLost(
                self.database.label, "this machine has no clock that counts while it is suspended"
            )
        sql = _FIND.format(condition=_CONDITIONS[self.kind])
        most = "" if self.kind is Work.LOOK else " LIMIT 1"
        among = arrays.int8s(sorted(open_batches))
        values = (among, among, chunk, chunk)
        (found,) = await transaction.read((f"{sql}{most} FOR UPDATE OF c SKIP LOCKED", values))
        if not found:
            return []
        batch = found[0][0]
        return await self._grant(transaction, batch, [each[1] for each in found if each[0] == batch], asked)

    async def _grant(
        self, transaction: Transaction, number: int, chunks: Sequence[int], asked: float
    ) -> list[Lease]:
        """Grant locked chunks, under the lock of their batch."""
        ((batch_id, size, rules, state, stopped),), found = await transaction.read(
            (_LOCK_BATCH, (number,)), _chunks.locking(number, chunks)
        )
        if state != BatchState.OPEN:
            return []
        batch, locked = Batch(number, batch_id, size), _chunks.Locked.of(found)
        limits = _Limits(transaction, batch, read_rules(rules), stopped)
        granted = []
        for chunk in locked.chunks.values():
            allowed, claimable = Allowance(chunk.granted_to, stopped), 0
            if self.kind is Work.SEND:
                allowed, claimable = await limits.allowed(chunk)
            if self.kind is not Work.SEND or claimable or chunk.figures.count(RowState.IN_FLIGHT):
                granted.append(self._entered(transaction, batch, chunk, allowed, locked.wall))
            else:
                transaction.write((_ALLOW, (0, number, chunk.number)))
        if granted:
            _chunks.write(transaction, batch, granted)
        self._last = (number, granted)
        return [self._lease(batch, each, asked) for each in granted]

    def _entered(
        self, transaction: Transaction, batch: Batch, chunk: Chunk, allowed: Allowance, wall: float
    ) -> Entered:
        lease = self.database.runtime.token(16)
        worker = self.worker
        facts = {"worker": worker.id.hex(), "host": worker.host, "pid": worker.pid, "for": self.kind}
        text = json.dumps({**facts, "granted_to": allowed.granted_to})
        place = (batch.batch, chunk.number)
        transaction.write((_GRANT, (lease, worker.id, allowed.granted_to, _rules.LEASE, *place)))
        at = _moment(self.database, worker, wall)
        granted = attrs.evolve(chunk, lease=lease, granted_to=allowed.granted_to)
        return _chunks.entered(batch, granted, "lease", at, text, lease)

    def _lease(self, batch: Batch, entered: Entered, asked: float) -> Lease:
        chunk = entered.chunk
        return Lease(
            batch=batch.batch,
            batch_id=batch.batch_id,
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
        return await _chunks.is_stored(transaction, *self._last)


@attrs.frozen
class _Limits:
    """What the stop rules of a locked batch let be taken."""

    transaction: Transaction
    batch: Batch
    rules: StopRules
    stopped: str | None

    async def allowed(self, chunk: Chunk) -> tuple[Allowance, int]:
        """Decide how far a chunk's new rows may be taken, and count those. Stores why no more may be."""
        unsent = chunk.figures.count(RowState.NEW)
        if self.stopped is not None:  # what was granted before stays so
            new = await self._new(chunk, chunk.granted_to)
            return Allowance(chunk.granted_to, self.stopped), len(new)
        if not unsent or not allowances.limits_rows(self.rules):
            return Allowance(chunk.last, None), unsent
        new = await self._new(chunk, chunk.last)
        allowed = allowances.allowance(self.rules, await self._taken(chunk), chunk, new)
        if allowed.stopped is not None:
            self.transaction.write((_STOP, (allowed.stopped, self.batch.batch)))
        return allowed, sum(number <= allowed.granted_to for number, _, _ in new)

    async def _taken(self, chunk: Chunk) -> Totals:
        """Add up what was promised of other chunks, and what was taken of this one."""
        (found,) = await self.transaction.read(
            _chunks.reading(self.batch.batch, "AND c.chunk > 0 AND c.chunk <> %s", chunk.number)
        )
        parts = [allowances.promised(attrs.evolve(chunk, granted_to=0))]
        for other in _chunks.read(found):
            is_partial = 0 < other.granted_to < other.last
            new = await self._new(other, other.granted_to) if is_partial else ()
            parts.append(allowances.promised(other, new))
        return allowances.added_up(parts)

    async def _new(self, chunk: Chunk, until: int) -> NewRows:
        batch = self.batch.batch
        sql = _NEW_ROWS.format(states=states_table(batch), rows=rows_table(batch))
        (found,) = await self.transaction.read((sql, (chunk.first, until)))
        return [(number, currency, Decimal(amount)) for number, currency, amount in found]


def _clock(database: Database, worker: Worker) -> Callable[[], Timestamps]:
    return lambda: _moment(database, worker, database.clock.now())


def _moment(database: Database, worker: Worker, wall: float) -> Timestamps:
    return Timestamps(wall, database.runtime.monotonic(), worker.id.hex())


# Keeping

_RENEW: Final = (
    "UPDATE payments.chunks c SET expires = clock_timestamp() + %s * interval '1 s' "
    "FROM unnest(%s, %s, %s) AS u(batch, chunk, lease), payments.batches b "
    "WHERE c.batch = u.batch AND c.chunk = u.chunk AND c.lease = u.lease AND c.expires > clock_timestamp() "
    f"AND b.batch = c.batch AND {HERE} RETURNING c.lease"
)
_STATES: Final = (
    f"SELECT b.batch, b.batch_id, b.chunk_size, {HERE}, b.state, b.reason, b.stopped, b.rules "
    "FROM payments.batches b WHERE b.batch = ANY(%s) ORDER BY b.batch"
)
_DECIDED: Final = (
    "SELECT coalesce(sum(created), 0)::int, coalesce(sum(refused), 0)::int "
    "FROM payments.chunks WHERE batch = %s"
)
_SINCE: Final = "greatest(extract(epoch FROM clock_timestamp() - w.last_seen)::float8, 1)"
_RATE: Final = f"(excluded.rows - w.rows) * 60 / {_SINCE}"
_SEEN: Final = (
    "INSERT INTO payments.workers AS w (id, host, pid, version, slots, started, last_seen, rows) "
    "VALUES (%s, %s, %s, %s, %s, clock_timestamp(), clock_timestamp(), %s) "
    "ON CONFLICT (id) DO UPDATE SET last_seen = clock_timestamp(), rows = excluded.rows, "
    # rows a minute, of which what is older than 20 s counts little
    f"pace = coalesce(w.pace + (1 - exp(-{_SINCE} / 20)) * ({_RATE} - w.pace), {_RATE}) RETURNING w.drain"
)
_NOW: Final[Statement] = ("SELECT extract(epoch FROM clock_timestamp())::float8", ())
_NO_NEW: Final = "UPDATE payments.chunks SET granted_to = 0 WHERE batch = %s AND unsent > 0"


async def renew(database: Database, worker: Worker, leases: Sequence[Lease], *, rows: int = 0) -> Renewal:
    """Renew leases, register the worker, and learn what the operator wants. Moves the leases' `ends`.

    A lease that has ended is lost, even if no other worker has the chunk: requests may wait since before.
    `rows`: how many rows it has sent in all. Raises LedgerError.
    """
    renewing = _Renewing(database, worker, leases, rows)
    while True:
        renewal = await database.commit(renewing.renew)
        for batch in renewing.moved:
            await judge(database, batch, _clock(database, worker))
        if not renewing.moved:
            break
    for lease in leases:
        lease.is_lost = lease.is_lost or lease.id not in renewing.renewed
        lease.ends = max(lease.ends, own_end(renewing.asked or 0.0))
    lost = tuple(lease for lease in leases if lease.id not in renewing.renewed)
    return attrs.evolve(renewal, lost=lost)


@attrs.define
class _Renewing:
    """One renewal."""

    database: Database
    worker: Worker
    leases: Sequence[Lease]
    rows: int
    asked: float | None = None
    """When the last attempt was begun, on the clock that counts suspension."""
    renewed: set[bytes] = attrs.field(factory=set)
    """The leases that the last attempt renewed."""
    moved: list[Batch] = attrs.field(factory=list)
    """Batches whose last commit went to another store than this one."""

    async def renew(self, transaction: Transaction) -> Renewal:
        """Renew the leases of batches that are here."""
        self.asked = self.database.runtime.boottime()
        numbers = sorted({lease.batch for lease in self.leases})
        ((now,),), renewed, found, ((drain,),), receivers = await transaction.read(
            _NOW,
            (_RENEW, (_rules.LEASE, *_places(self.leases, self.asked))),
            (_STATES, (arrays.int8s(numbers),)),
            (_SEEN, self._seen),
            STANDBYS,
        )
        self.database.clock.note(now)
        self.renewed = {lease for (lease,) in renewed}
        self.moved = [Batch(*each[:3]) for each in found if not each[3]]
        held, stopped = dict[int, str](), dict[int, str]()
        for batch, _, _, _, state, reason, why, rules in found:
            if state != BatchState.OPEN:
                held[batch] = f"{state}: {reason}" if reason else str(state)
            why = why or await _failure(transaction, batch, read_rules(rules))
            if why is not None:
                stopped[batch] = why
        transaction.write(observed(standbys_of(receivers), numbers))
        return Renewal((), held, stopped, bool(drain))

    @property
    def _seen(self) -> Sequence[Any]:
        worker = self.worker
        return (worker.id, worker.host, worker.pid, worker.version, worker.slots, self.rows)


def _places(leases: Iterable[Lease], now: float | None) -> Sequence[Any]:
    """Batches, chunks and ids of the leases that have not ended for their holder."""
    held = [lease for lease in leases if now is not None and may_send(lease.ends, now)]
    return (
        arrays.int8s([lease.batch for lease in held]),
        arrays.int4s([lease.chunk for lease in held]),
        arrays.blobs([lease.id for lease in held]),
    )


async def _failure(transaction: Transaction, batch: int, rules: StopRules) -> str | None:
    """Stop a batch of which more rows have failed than its rules allow. Returns the reason."""
    if rules.max_failure_rate is None:
        return None
    (((created, refused),),) = await transaction.read((_DECIDED, (batch,)))
    tally = Totals({RowState.CREATED: created, RowState.REJECTED: refused}, {})
    reason = stop_reason(
        StopRules(max_failure_rate=rules.max_failure_rate), tally, amount=Decimal(0), currency=""
    )
    if reason is not None:
        transaction.write((_NO_NEW, (batch,)))
        transaction.write((_STOP, (reason, batch)))
    return reason


# Giving back

_END: Final = (
    "UPDATE payments.chunks SET lease = NULL, holder = NULL, expires = NULL, "
    "look_at = clock_timestamp() + %s * interval '1 s' WHERE batch = %s AND chunk = %s"
)


async def look_now(database: Database, batch: int) -> None:
    """Let rows in doubt of a batch be due for a look at once. Raises LedgerError."""
    await database.read(("UPDATE payments.chunks SET look_at = NULL WHERE batch = %s", (batch,)))


async def give_back(
    database: Database, worker: Worker, leases: Iterable[Lease], *, look_after: float | None = None
) -> None:
    """End leases. Those that are another worker's by now are left.

    `look_after`: seconds until the chunks' rows in doubt are due for a look; None for at once.
    Raises LedgerError.
    """
    by_batch: dict[int, list[Lease]] = {}
    for lease in leases:
        by_batch.setdefault(lease.batch, []).append(lease)
    for number, of_batch in by_batch.items():
        ending = _Ending(database, worker, number, {lease.chunk: lease.id for lease in of_batch}, look_after)
        with undamaged(database.label):
            await database.commit(ending.end, ending.is_ended)
        for lease in of_batch:
            lease.is_lost = True


@attrs.define
class _Ending:
    """The end of leases of one batch."""

    database: Database
    worker: Worker
    number: int
    leases: Mapping[int, bytes]
    look_after: float | None
    _last: tuple[int, list[Entered]] = (0, [])

    async def end(self, transaction: Transaction) -> None:
        """End the leases that are still there, each with an entry of its chunk's chain."""
        self._last = (0, [])
        lock, found = await transaction.read(
            ("SELECT batch_id, chunk_size FROM payments.batches WHERE batch = %s", (self.number,)),
            _chunks.locking(self.number, self.leases),
        )
        if not found:
            return
        batch, locked = Batch(self.number, *lock[0]), _chunks.Locked.of(found)
        ended = []
        for chunk in locked.chunks.values():
            if chunk.lease == self.leases[chunk.number]:
                at = _moment(self.database, self.worker, locked.wall)
                ended.append(_chunks.entered(batch, chunk, "ended", at, "{}", chunk.lease))
                transaction.write((_END, (self.look_after, self.number, chunk.number)))
        if ended:
            _chunks.write(transaction, batch, ended)
        self._last = (self.number, ended)

    async def is_ended(self, transaction: Transaction) -> bool:
        """Find out whether the last attempt was committed."""
        return await _chunks.is_stored(transaction, *self._last)
