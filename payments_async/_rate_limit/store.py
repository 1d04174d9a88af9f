"""The limit that processes share through a store: a process reserves a block of permits, and uses them.

A store keeps one row for each service address, key fingerprint and limit class: the moment at which all
permits reserved so far have arrived, one every `step` seconds (GCRA, the generic cell rate algorithm). A
reservation moves this moment on. It takes effect in one statement of the store, on the store's clock.

Why no minute holds more than its limit, wherever it begins: a permit is used no earlier than `saved` seconds
before it arrives, and no later than `VALID` seconds after it was reserved. So what the service counts in a
minute has permits that arrive within `60 + VALID + saved` seconds; `Terms.step` lets no more than the limit
arrive in that time and another `AHEAD`: as much as may be reserved already when a store loses its rows. What
processes leave of `VALID` is room for requests that the network delays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

import attrs

from .limits import WINDOW

VALID: Final = 5.0
"""Seconds after which a block is void: nothing is sent with its permits any more."""
AHEAD: Final = 1.0
"""The most seconds between a reservation and the start of its block."""
AHEAD_IN_BULK: Final = 0.25
"""The same for bulk calls: while interactive calls reserve further ahead, nothing is left for them."""
ASK_AGAIN: Final = 0.1
"""Least seconds to the next reservation after one that was granted nothing."""
LEAST: Final = 6
"""Least requests a minute that are shared: of fewer, the room that is left would take more than half."""
PATIENCE: Final = 1.0
"""Seconds for a round trip to a store, after which the connection is given up."""


def row_name(address: str, fingerprint: str, kind: str) -> str:
    """The name of a row; `address`: that of the service, normalised. The key itself is never part of it."""
    return f"{address} {fingerprint} {kind}"


class StoreUnavailable(Exception):
    """The store cannot be reached, or does not answer in time. The message names no password."""


@attrs.frozen
class Terms:
    limit: int  # requests a minute

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
    wanted: int  # permits, at most a block
    pause: float
    """Seconds for which no process is granted anything, after a 429; a row keeps a minute of it."""
    step: float
    saved: float  # seconds of arrivals that may be saved up
    ahead: float
    """The most seconds to the start of the block; the lower figure comes after the higher."""


@attrs.frozen
class Reservation:
    granted: int  # permits, often fewer than wanted
    wait: float
    """Seconds until they start; with none granted, until asking again is of use."""

    @classmethod
    def of(cls, request: BlockRequest, granted: int, lead: float) -> Reservation:
        """Read an answer. `lead`: seconds until the first permit arrives that was not reserved before."""
        if granted:
            return cls(granted, max(lead + granted * request.step - request.saved, 0.0))
        return cls(0, max(lead + request.step - request.saved - request.ahead, ASK_AGAIN))


class BlockStore(ABC):
    """A store of rows. Used on one event loop; opens its connection when first used, and again after a loss.

    Each call takes a few seconds at most, else raises `StoreUnavailable`. What can only be put right by the
    operator raises `ConfigurationError`.
    """

    def __init__(self, place: str) -> None:
        """`place`: the store, as messages name it."""
        self._place = place

    @abstractmethod
    async def reserve(self, row: str, request: BlockRequest) -> Reservation:
        """Reserve a block of the row of this name."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close the connection."""
