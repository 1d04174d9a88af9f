"""What a service that counts requests would have refused, whichever way it draws its minutes. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

WINDOW = 60.0


def refused_sliding(moments: Iterable[float], limit: int) -> int:
    """Requests that found `limit` others accepted within the 60 s before them; times in order."""
    accepted: deque[float] = deque()
    refused = 0
    for moment in moments:
        while accepted and accepted[0] <= moment - WINDOW:
            accepted.popleft()
        if len(accepted) < limit:
            accepted.append(moment)
        else:
            refused += 1
    return refused


def refused_fixed(moments: Sequence[float], limit: int, phases: int = 60) -> int:
    """The most refused by a service whose minutes begin at one of so many places of a minute."""
    most = 0
    for phase in range(phases):
        begin, counts = phase * WINDOW / phases, dict[int, int]()
        for moment in moments:
            minute = int((moment - begin) // WINDOW)
            counts[minute] = counts.get(minute, 0) + 1
        most = max(most, sum(max(count - limit, 0) for count in counts.values()))
    return most


def share_used(moments: Iterable[float], limit: int, begin: float, end: float) -> float:
    """The part of `limit` a minute that was used between two moments."""
    return sum(begin <= moment < end for moment in moments) / (limit * (end - begin) / WINDOW)
