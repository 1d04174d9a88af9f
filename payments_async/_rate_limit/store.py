"""The limit that processes share through a store: a process reserves a block of permits, and uses them.

A store keeps one row for each service address, key fingerprint and limit class: the moment at which all
permits reserved so far have arrived, one every `step` seconds (GCRA, the generic cell rate algorithm). A
reservation moves this moment on. It takes effect in one statement of the store, on the store's clock.

Why no minute holds more than its limit, wherever it begins: a permit is used no earlier than `saved` seconds
before it arrives, and no later than `VALID` seconds after it was reserved. A request that is under way longer
takes another permit. So what the service counts in a minute has permits that arrive within `60 + VALID +
AHEAD + saved` seconds, and `Terms.step` lets no more than the limit arrive in that time. `AHEAD` is for
permits that were reserved ahead when the store lost its rows, and for those of requests that take another.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

import attrs

from .bucket import WINDOW

VALID: Final = 5.0
"""Seconds after which a block is void: nothing is sent with its permits any more."""
AHEAD: Final = 1.0
"""The most seconds between a reservation and the start of its block."""
AHEAD_IN_BULK: Final = 0.25
"""The same for bulk calls: the more the store has to do, the less is left for them."""
PROBE_HINT: Final = 1.0
"""The most seconds to the next reservation while another process probes."""
ASK_AGAIN: Final = 0.1
"""Least seconds to the next reservation after one that was granted nothing."""
LEAST: Final = 6
"""Least requests a minute that are shared: of fewer, the room that is left would take more than half."""
PATIENCE: Final = 1.0
"""Seconds for a round trip to a store, after which the connection is given up."""


class StoreUnavailable(Exception):
    """The store cannot be reached, or does not answer in time. The message names no password."""


@attrs.frozen
class LimitRow:
    """One row of a store. The key itself is never part of it."""

    address: str
    """Normalised address of the service."""
    fingerprint: str
    """Fingerprint of the secret key."""
    kind: str
    """The limit class."""


@attrs.frozen
class Terms:
    """How permits of one limit arrive."""

    limit: int
    """Requests a minute."""

    @property
    def block(self) -> int:
        """Most permits of a block, and most that are saved up: a quarter of a second's worth, at least 1."""
        return max(1, self.limit // 240)

    @property
    def step(self) -> float:
        """Seconds between two permits."""
        return (WINDOW + VALID + AHEAD) / (self.limit - self.block - 1)

    @property
    def rate(self) -> float:
        """Permits a minute: nine tenths of the limit, less of a small one."""
        return WINDOW / self.step


@attrs.frozen(kw_only=True)
class BlockRequest:
    """What a process asks a store for."""

    wanted: int
    """Permits, at most a block."""
    charged: int
    """Permits that are taken whether there is room or not: these requests have been sent already."""
    step: float
    saved: float
    """Seconds of arrivals that may be saved up."""
    ahead: float
    """The most seconds to the start of the block; the lower figure comes after the higher."""


@attrs.frozen(kw_only=True)
class Reservation:
    """A store's answer."""

    granted: int
    """Permits, often fewer than wanted."""
    wait: float
    """Seconds until they start; with none granted, until asking again is of use."""
    closed_for: float = 0.0
    """Seconds for which a 429 has closed the row."""
    probe: float = 0.0
    """Not 0.0: the permit is the one probe after a 429, with this name."""

    @classmethod
    def of(
        cls, request: BlockRequest, now: float, granted: int, begins: float, closed: float, probed: float
    ) -> Reservation:
        """Read a row as a reservation at `now` left it.

        `begins`: when the first of its permits arrives. `closed`: until when a 429 has closed the row; 0.0
        if none has. `probed`: until when a probe is under way, by the process that was granted a permit.
        """
        if granted:
            starts = begins + granted * request.step - request.saved
            return cls(granted=granted, wait=max(starts - now, 0.0), probe=probed if closed else 0.0)
        if closed > now:
            return cls(granted=0, wait=closed - now, closed_for=closed - now)
        room = begins + request.step - request.saved - request.ahead
        wait = min(probed - now, PROBE_HINT) if probed > now else room - now
        return cls(granted=0, wait=max(wait, ASK_AGAIN))


class BlockStore(ABC):
    """A store of rows. Used on one event loop; opens its connection when first used, and again after a loss.

    Each call takes a few seconds at most, else raises `StoreUnavailable`. What can only be put right by the
    operator raises `ConfigurationError`.
    """

    def __init__(self, place: str) -> None:
        """`place`: the store, as messages name it."""
        self._place = place

    @abstractmethod
    async def reserve(self, row: LimitRow, request: BlockRequest) -> Reservation:
        """Reserve a block."""

    @abstractmethod
    async def close_after_429(self, row: LimitRow, seconds: float) -> None:
        """Close the row for every process: nothing for `seconds`, then one probe."""

    @abstractmethod
    async def open_after_probe(self, row: LimitRow, probe: float) -> None:
        """Open the row after this probe was answered; not if it was closed again meanwhile."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close the connection."""
