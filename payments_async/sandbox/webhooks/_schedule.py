"""When a delivery is tried (gap Y), and what the scenario's words make of that: values in, values out."""

from __future__ import annotations

import attrs

from ..common.scenario_words import HookWords

OFFSETS = (0.0, 30.0, 120.0, 600.0, 3600.0)
"""Seconds of sandbox time from the moment a delivery is due to each of its tries."""

HELD_FOR = 60.0
"""Seconds `reorder` holds a delivery back at most, should the record have nothing more to tell."""


def next_try(first_at: float, tried: int) -> float | None:
    """When it is tried again after `tried` tries in vain; None when it is given up."""
    return first_at + OFFSETS[tried] if tried < len(OFFSETS) else None


@attrs.frozen
class Treatment:
    """What the words make of each of a record's deliveries."""

    dropped: bool = False
    """It is never sent."""
    delay: float = 0.0
    """Seconds until the first try."""
    copies: int = 1
    reordered: bool = False
    """It waits until the record's next one has been tried."""
    before_response: bool = False
    """The first try is over before the request that caused it is answered; so nothing delays it."""


ORDINARY = Treatment()


def treatment(hooks: HookWords) -> Treatment:
    """What the words of a scenario ask for; of two `delay` the later word counts."""
    if not hooks:
        return ORDINARY
    words = {word.kind: word for word in hooks}
    first = "before_response" in words
    return Treatment(
        dropped="drop" in words,
        delay=words["delay"].seconds if "delay" in words and not first else 0.0,
        copies=words["duplicate"].count if "duplicate" in words else 1,
        reordered="reorder" in words and not first,
        before_response=first,
    )
