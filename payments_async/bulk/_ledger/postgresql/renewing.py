"""Renews leases, and learns what the operator and the stop rules want."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import attrs

from ..._protocol import machines
from ..._protocol.machines import may_send, own_end
from ..._protocol.outcomes import Outcome
from ..._protocol.stop_rules import StopRules, stop_reason
from ..chunks import Batch
from ..stored_rows import UnreadableRecord
from ..transactions import Transaction
from .batches import hold_reason, read_rules, stopping
from .database import Database
from .dialect import HERE, observing
from .failover import judge
from .leases import Lease
from .session import NOW
from .worker_registry import Worker

_RENEW: Final = (
    "UPDATE payments.chunks c SET expires = clock_timestamp() + %s * interval '1 s' "
    "FROM unnest(%b::int8[], %b::int4[], %b::bytea[]) AS u(batch, chunk, lease), payments.batches b "
    "WHERE c.batch = u.batch AND c.chunk = u.chunk AND c.lease = u.lease AND c.expires > clock_timestamp() "
    f"AND b.batch = c.batch AND {HERE} RETURNING c.lease"
)
_STATES: Final = (
    f"SELECT b.batch, b.batch_id, b.chunk_size, {HERE}, b.state, b.reason, b.stopped, b.rules "
    "FROM payments.batches b WHERE b.batch = ANY(%b::int8[]) ORDER BY b.batch"
)
_DECIDED: Final = (
    "SELECT coalesce(sum(created), 0)::int, coalesce(sum(refused), 0)::int "
    "FROM payments.chunks WHERE batch = %s"
)
_NO_NEW: Final = "UPDATE payments.chunks SET granted_to = 0 WHERE batch = %s AND unsent > 0"


@attrs.frozen
class Renewal:
    """What a worker learns when it renews its leases."""

    lost: tuple[Lease, ...]
    """Leases that are void: they had ended, another worker has the chunks, or the batch is suspect."""
    hold_reasons: Mapping[int, str]
    """{batch: why no row of it may be sent now}."""
    stopped: Mapping[int, str]
    """{batch: why the stop rules let no further new row be taken}."""
    drain: bool
    """True if the operator wants this worker to take no new chunk."""


async def renew(
    database: Database,
    worker: Worker,
    leases: Sequence[Lease],
    *,
    rows: int = 0,
    trouble: str | None = None,
) -> Renewal:
    """Renew leases, register the worker, and learn what the operator wants. Moves the leases' `ends`.

    A lease that has ended is lost, even if no other worker has the chunk: requests may wait since before.
    `rows`: how many rows it has sent in all. `trouble`: why it cannot use the service. Raises LedgerError.
    """
    renewing = _Renewing(database, worker, leases, rows, trouble)
    while True:
        renewal = await database.commit(renewing.renew)
        for batch in renewing.moved:
            await judge(database, batch, worker.clock(database))
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
    trouble: str | None
    asked: float | None = None
    """When the last attempt was begun, on the clock that counts suspension."""
    renewed: set[bytes] = attrs.field(factory=set)
    """The leases that the last attempt renewed."""
    moved: list[Batch] = attrs.field(factory=list)
    """Batches whose last commit went to another server than this one."""

    async def renew(self, transaction: Transaction) -> Renewal:
        """Renew the leases of batches that are here."""
        self.asked = self.database.runtime.boottime()
        numbers = sorted({lease.batch.batch for lease in self.leases})
        ((now,),), renewed, found, ((drain,),) = await transaction.read(
            NOW,
            (_RENEW, (machines.LEASE, *_places(self.leases, self.asked))),
            (_STATES, (numbers,)),
            self.worker.seen(self.rows, self.trouble),
        )
        self.database.clock.note(now)
        self.renewed = {lease for (lease,) in renewed}
        self.moved.clear()
        holds, stopped = dict[int, str](), dict[int, str]()
        for batch, batch_id, size, is_here, state, reason, why, rules in found:
            if not is_here:
                self.moved.append(Batch(batch, batch_id, size))
            if (hold := hold_reason(state, reason)) is not None:
                holds[batch] = hold
            try:
                why = why or await _failure(transaction, batch, read_rules(rules))
            except UnreadableRecord as error:
                holds[batch] = str(error)
            if why is not None:
                stopped[batch] = why
        transaction.write(observing(numbers))
        return Renewal((), holds, stopped, bool(drain))


def _places(leases: Iterable[Lease], now: float | None) -> Sequence[Any]:
    """Batches, chunks and ids of the leases that have not ended for their holder."""
    valid = [lease for lease in leases if now is not None and may_send(lease.ends, now)]
    return (
        [lease.batch.batch for lease in valid],
        [lease.chunk for lease in valid],
        [lease.id for lease in valid],
    )


async def _failure(transaction: Transaction, batch: int, rules: StopRules) -> str | None:
    """Stop a batch of which more rows have failed than its rules allow. Returns the reason."""
    if rules.max_failure_rate is None:
        return None
    (((created, refused),),) = await transaction.read((_DECIDED, (batch,)))
    none, rules = Decimal(0), StopRules(max_failure_rate=rules.max_failure_rate)
    totals = {(Outcome.NOT_FINAL, ""): (created, none), (Outcome.REJECTED, ""): (refused, none)}
    reason = stop_reason(rules, totals, amount=none, currency="")
    if reason is not None:
        transaction.write((_NO_NEW, (batch,)))
        transaction.write(stopping(batch, reason))
    return reason
