"""A lease of a chunk, as its holder knows it."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

import attrs

from ....protocol.machines import may_send
from ...chunks import Batch


class Work(StrEnum):
    """What a lease is asked for."""

    SEND = "send"
    """Rows that are new, or that a worker left in flight: one chunk."""
    LOOK = "look"
    """Rows in doubt that are due: all free chunks of one batch that have some and are otherwise done."""
    CLOSE = "close"
    """The closing of a batch all of whose rows are decided: its chunk 0."""


@attrs.define(eq=False)
class Lease:
    """The right to send a chunk's rows, for a while."""

    batch: Batch
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

    def is_valid(self) -> bool:
        """True if a request may begin. Asked right before its first byte."""
        now = self._now()
        return not self.is_lost and now is not None and may_send(self.ends, now)
