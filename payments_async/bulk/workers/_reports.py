"""Reports of workers: how the work on a chunk ended, and how a worker did."""

from __future__ import annotations

from enum import StrEnum

import attrs

from .._protocol.exit_codes import Stop


class RunEnd(StrEnum):
    """The possible ends of work under leases."""

    DONE = "done"
    """Nothing is left that can be done now. Rows in doubt may wait for a look at the service's list."""
    UNAVAILABLE = "unavailable"
    """No lease was to be had: another worker has the rows, or none may be sent now (`ChunkReport.reason`)."""
    LOST = "lost"
    """A lease was lost or has ended, or its next rows were refused (`ChunkReport.reason`)."""
    PAUSED = "paused"
    """The batch is paused, or suspect, or closed, as a renewal of the lease showed."""
    STOPPED = "stopped"
    """This process was stopped, or cannot pay now."""


@attrs.frozen
class ChunkReport:
    """How the work on a chunk ended."""

    batch_id: str
    chunks: tuple[int, ...]
    """The numbers of the chunks."""
    end: RunEnd
    reason: str | None = None
    """Why it ended early; None when it did not."""
    stop: Stop = Stop.TEMPORARY
    """What has to change before it can go on, when `end` is `STOPPED`."""
    rows: int = 0
    """Rows that it decided: created, rejected or in conflict."""


@attrs.frozen
class WorkerProgress:
    """What a worker is doing."""

    worker: str
    """Its id."""
    rows: int
    """Rows that it has decided: created, rejected or in conflict."""
    leased_chunks: tuple[tuple[str, int], ...]
    """(batch, chunk) of each lease that it holds; chunk 0 is a batch that is being closed."""
    trouble: str | None = None
    """Why it cannot use the service now, and rests; None when it can."""


@attrs.frozen
class WorkerReport:
    """What a worker has done, and why it ended."""

    worker: str
    """Its id."""
    rows: int
    """Rows that it decided: created, rejected or in conflict."""
    chunks: int
    """Chunks that it worked on."""
    stopped: str | None = None
    """Why it ended; None when nothing was left to do."""
    exit_code: int = 0
    """0 stopped in order, or nothing left to do · 2 the service refuses the key, or rights are missing ·
    75 the database or the service was lost: start it again."""
    unrecorded: tuple[str, ...] = ()
    """Files with outcomes that could not be recorded: the next worker learns them again."""
    left_open: tuple[str, ...] = ()
    """Batches that are still open, when nothing was left to do: they have rows in doubt that wait for their
    next look, rows that the stop rules hold back, or a recovery that is not confirmed."""
