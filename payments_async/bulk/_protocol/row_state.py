"""The states of a row, and what comes next for it. Pure.

NEW ── take ──▶ IN_FLIGHT ── a 2xx, or the list shows it ──▶ CREATED ── retry-failed ──▶ NEW, next generation
 ▲                │  │  └─── refused, nothing in doubt ────▶ REJECTED ── edited, retry-failed ──▶ NEW
 └── given back ──┘  └────── no definite answer ───────────▶ IN_DOUBT ── take ──▶ IN_FLIGHT
NEW ── cancel ──▶ CANCELLED                    the list shows other content ──▶ CONFLICT
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Final


class RowState(StrEnum):
    """The state of a row, as stored."""

    NEW = "NEW"
    """Nothing is known to have been sent: a send that was refused or never left leaves it NEW."""
    IN_FLIGHT = "IN_FLIGHT"
    """A process has it, and may be sending it."""
    CREATED = "CREATED"
    REJECTED = "REJECTED"
    CONFLICT = "CONFLICT"
    IN_DOUBT = "IN_DOUBT"
    CANCELLED = "CANCELLED"


UNFINISHED: Final = (RowState.IN_FLIGHT, RowState.IN_DOUBT)
"""States of rows that may have been sent, and of which nothing is proven yet."""


class Turn(IntEnum):
    """What comes next for a row. The ledger finds rows by it."""

    NOTHING = 0
    POST = 1
    LOOK = 2  # it is looked for in the service's list, and not posted
