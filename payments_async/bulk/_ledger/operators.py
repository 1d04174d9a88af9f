"""What the operator of a database sees of it: its workers, and what an inspection found."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import attrs

from .._protocol.machines import LEASE, Standbys


class Role(StrEnum):
    """What a database's user does with a ledger."""

    READER = "reader"
    """Reads the figures of batches, and no row."""
    WORKER = "worker"
    PLANNER = "planner"
    """Imports, edits and discards batches, and works on them."""


@attrs.frozen
class DatabaseReport:
    """What an inspection found of a database."""

    label: str
    """The address, without user and password."""
    server_version: str
    has_tables: bool
    tables: int | None
    """The version of the ledger's tables; None when there are none, or they may not be read."""
    is_encrypted: bool
    clock_ahead: float
    """Seconds by which its clock is ahead of this machine's."""
    settings: Mapping[str, str]
    """Settings of the server, as new sessions have them."""
    grants: tuple[str, ...]
    """Statements that give the user the rights that it lacks."""
    problems: tuple[str, ...]
    """Why it cannot be used as it is; empty when it can."""
    warnings: tuple[str, ...]
    standbys: Standbys
    """What receives the server's commits."""
    is_pooled: bool
    """True if a pooler, one that keeps sessions, stands in between."""
    connections: Mapping[str, int] = attrs.field(factory=dict)
    """{`run`, `worker`: the connections that each needs at most}: a pool must be as large."""


@attrs.frozen
class ClosedBatch:
    """A closed batch that `forget` looked at."""

    batch_id: str
    rows: int
    counts: Mapping[str, int]
    """What became of its rows, as in `BatchReport.counts`."""
    size: int
    """Bytes of its tables on disk."""
    closed_at: float
    """When it was closed, in seconds since 1970."""
    kept: str | None
    """Why it is kept; None if it is forgotten, or would be."""


@attrs.frozen
class ForgottenBatch:
    """What is kept of a forgotten batch beside its rows and sums."""

    at: float
    """When it was forgotten, in seconds since 1970."""
    root: str
    """The hash over all that was recorded of it: the head that its certificate and an archive show."""
    certificate: str | None
    """Its last certificate, as JSON text; None if the service's list was not read."""


@attrs.frozen
class ListedWorker:
    """A worker, as it last reported."""

    id: str
    host: str
    pid: int
    version: str
    """That of the package."""
    slots: int
    """How many chunks it works on at a time; 0: an engine that calls the steps decides."""
    rows: int
    """Rows that it has decided."""
    per_minute: float
    """Rows a minute lately."""
    is_draining: bool
    """True if an operator wants it to end."""
    trouble: str | None
    """Why it cannot use the service now, and rests; None when it can."""
    up: float
    """Seconds since it started."""
    silent: float
    """Seconds since it last reported."""
    leased_chunks: tuple[tuple[str, int], ...] = attrs.field(kw_only=True)
    """(batch, chunk) of each lease that it holds; chunk 0 is the batch itself, which is being closed."""

    @property
    def is_gone(self) -> bool:
        """True if it holds nothing any more: it has ended without a word, or is cut off from the database."""
        return self.silent >= LEASE

    @property
    def batches(self) -> frozenset[str]:
        """The batches that it holds chunks of."""
        return frozenset(batch for batch, _ in self.leased_chunks)
