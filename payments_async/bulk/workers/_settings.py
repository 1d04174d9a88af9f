"""The options of a worker, checked before anything is connected."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypedDict

import attrs

from .. import _options
from .._engine.engine import Pace
from .._protocol.stop_rules import StopRules
from ..errors import BulkError
from ._reports import WorkerProgress


class WorkerOptions(TypedDict, total=False):
    """The options of a worker."""

    slots: int
    """Chunks worked on at a time; 2 unless given, so that one request that takes long leaves nobody idle."""
    batch_id: str | None
    """Work on this batch only; by default on every batch that was planned with the client's account."""
    until_idle: bool
    """End when nothing is left to do, for this worker or another one. Otherwise it waits for more."""
    concurrency: int
    """Rows sent at a time, in all slots together; 192 unless given (`PayoutBatch.run`)."""
    patience: float
    """Seconds in which rows in doubt are posted again and searched for, once their chunks are done; 3600
    unless given. Those that stay in doubt are looked at again after 15 minutes."""
    drain: float
    """Seconds in which rows being sent may finish after `stop`; 30 unless given."""
    insecure_database: bool
    """Allow a database on another host without `sslmode=verify-full`."""
    folder: str | os.PathLike[str]
    """Where outcomes are written that the database could not take; the current folder unless given."""
    on_progress: Callable[[WorkerProgress], object]
    """Called every few seconds; it cannot break the work."""


@attrs.frozen(kw_only=True)
class WorkerSettings:
    """The checked `WorkerOptions`, and what programs do not choose. Raises BulkError for an invalid one."""

    slots: int = 2
    batch_id: str | None = attrs.field(default=None, converter=_options.composed)
    until_idle: bool = False
    concurrency: int = 192
    patience: float = 3600.0
    drain: float = 30.0
    insecure_database: bool = False
    folder: str | os.PathLike[str] | None = "."
    on_progress: Callable[[WorkerProgress], object] = bool
    audits: bool = True
    """Compare a complete batch with the service's list before it is closed."""

    def __attrs_post_init__(self) -> None:
        _options.require_count("slots", self.slots)
        _options.require_count("concurrency", self.concurrency)
        _options.require_seconds("patience", self.patience, allows_none=True)
        _options.require_seconds("drain", self.drain, allows_none=True)
        _options.require_batch_id(self.batch_id)
        if self.folder is not None and not os.path.isdir(self.folder):
            raise BulkError(f"folder: {os.fspath(self.folder)} is not a folder")

    @property
    def pace(self) -> Pace:
        """The pace of the engine in one step. The stop rules of the batch are in its leases."""
        share = -(-self.concurrency // self.slots)
        return Pace(concurrency=share, rules=StopRules(), patience=self.patience, drain=self.drain)


def connections(slots: int) -> int:
    """The connections of a worker: renewals, reading, each slot, rows in doubt, the rate limit."""
    return slots + 4
