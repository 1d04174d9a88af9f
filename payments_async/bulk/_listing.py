"""A batch of a database in a list, from its figures alone: no row is read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import attrs

from ._ledger.operators import ForgottenBatch, ListedWorker
from ._protocol.exit_codes import Stop
from ._protocol.machines import BatchState
from ._protocol.outcomes import OPEN
from ._report import BatchReport, report_of

if TYPE_CHECKING:
    from ._ledger.postgresql.batches import BatchWithFigures


@attrs.frozen(kw_only=True)
class ListedBatch:
    """A batch of a database, with who works on it."""

    report: BatchReport
    environment: str
    """`live` or `sandbox`."""
    state: BatchState
    reason: str | None
    """The reason for the state, if it was given."""
    rule: str | None
    """Why the stop rules let no further row be taken; None while they do."""
    is_unproven: bool
    """True if commits were lost, and no recovery has shown yet which."""
    chunks: int
    chunks_open: int
    """Chunks with rows that are not decided."""
    chunks_leased: int
    """Chunks that a worker holds."""
    workers: tuple[ListedWorker, ...]
    """Those that hold chunks of it."""
    idle_workers: int
    """Workers of the database that hold nothing now."""
    closed_at: float | None
    """When it was closed last, in seconds since 1970; None if it never was."""
    forgotten: ForgottenBatch | None
    """What is kept of a forgotten batch; None if it has its rows."""

    @property
    def batch_id(self) -> str:
        """The batch's name."""
        return self.report.batch_id

    @property
    def per_minute(self) -> float:
        """Rows a minute, by all workers together."""
        return sum(worker.per_minute / len(worker.batches) for worker in self.workers)

    @property
    def seconds_left(self) -> float | None:
        """Seconds until every row is decided; None while it is unknown."""
        left = sum(self.report.counts[outcome] for outcome in OPEN)
        return left / self.per_minute * 60 if left and self.per_minute >= 1 else None

    @property
    def is_alone(self) -> bool:
        """True if no worker of the database is running."""
        return not (self.workers or self.idle_workers)

    @property
    def is_over(self) -> bool:
        """True if no worker can do more: all is decided, or the stop rules let no row be taken."""
        is_stopped = self.rule is not None and not self.chunks_leased
        return self.report.complete or (is_stopped and not self.report.counts["under_way"])

    @property
    def is_unclosed(self) -> bool:
        """True if every row is decided, and no worker has closed it yet."""
        return self.report.complete and self.state is BatchState.OPEN


def with_workers(found: BatchWithFigures, workers: Iterable[ListedWorker]) -> ListedBatch:
    """Make the listing of a batch, with those of the database's workers that hold chunks of it."""
    facts = found.facts
    live, name = [worker for worker in workers if not worker.is_gone], facts.batch.batch_id
    stopped = facts.stopped if facts.hold_reason is None else f"the batch is {facts.hold_reason}"
    stop = None if stopped is None else Stop.RULE
    return ListedBatch(
        report=report_of(facts.header, found.figures.totals, stopped, stop=stop),
        environment=facts.header.binding.environment,
        state=facts.state,
        reason=facts.reason,
        rule=facts.stopped,
        is_unproven=facts.is_unproven,
        chunks=facts.chunks,
        chunks_open=found.chunks_open,
        chunks_leased=found.chunks_leased,
        workers=tuple(worker for worker in live if name in worker.batches),
        idle_workers=sum(not worker.leased_chunks for worker in live),
        closed_at=facts.closed_at or None,
        forgotten=facts.forgotten,
    )
