"""What a worker does now, and how it ended."""

from __future__ import annotations

import attrs


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
