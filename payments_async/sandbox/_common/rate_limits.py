"""Rate limits (`docs/interface.md`, Limits): requests per minute for a key, and for a record of a key.

A request is admitted by every window it falls under or by none; a refused one counts nowhere.
"""

from __future__ import annotations

from collections import deque
from typing import Literal

import attrs

WINDOW = 60.0
"""Seconds; the windows are half-open, so a request at t no longer counts at t + 60."""

LimitClass = Literal["writes", "reads", "diagnostics", "refund_availability"]
Rate = int | None


@attrs.frozen
class SandboxLimits:
    """Requests per minute; None switches a limit off.

    `refund_availability` is the 100 a minute that one description names (gap Z): None leaves the operation
    with the other reads. `window` says how the minutes lie: `aligned` to the clock, or `sliding` behind each
    request.
    """

    writes: Rate = 60_000
    reads: Rate = 10_000
    diagnostics: Rate = 6_000
    diagnostics_per_record: Rate = 12
    refund_availability: Rate = None
    window: Literal["aligned", "sliding"] = "aligned"

    @classmethod
    def off(cls) -> SandboxLimits:
        """No limit at all."""
        return cls(writes=None, reads=None, diagnostics=None, diagnostics_per_record=None)

    def scopes(self, limit_class: LimitClass, record_id: str | None) -> list[tuple[str, int]]:
        """The windows a request falls under, each with its limit; `record_id` for live operations only."""
        rates: dict[str, Rate]
        if limit_class == "refund_availability":
            rates = {"reads": self.reads, "refund_availability": self.refund_availability}
        elif limit_class == "diagnostics":
            rates = {"diagnostics": self.diagnostics, f"record {record_id}": self.diagnostics_per_record}
        else:
            rates = {limit_class: self.writes if limit_class == "writes" else self.reads}
        return [(scope, rate) for scope, rate in rates.items() if rate is not None]


@attrs.frozen
class Excess:
    """A full window: its limit in requests per minute and the seconds until it has room."""

    limit: int
    wait: float


class AlignedWindows:
    """One counter per scope, emptied when the clock's minute changes."""

    def __init__(self) -> None:
        self._minute = -1
        self._counts: dict[str, int] = {}

    def wait(self, scope: str, limit: int, now: float) -> float:
        """Seconds until `scope` has room for one more; 0 when it has."""
        minute = int(now // WINDOW)
        if minute != self._minute:
            self._minute, self._counts = minute, {}
        return 0.0 if self._counts.get(scope, 0) < limit else (minute + 1) * WINDOW - now

    def count(self, scope: str, now: float) -> None:
        """One request falls into `scope`; follows a `wait` at the same `now`."""
        self._counts[scope] = self._counts.get(scope, 0) + 1


class SlidingWindows:
    """The times of the last minute's requests, by scope."""

    def __init__(self) -> None:
        self._times: dict[str, deque[float]] = {}
        self._sweep_at = 0.0

    def wait(self, scope: str, limit: int, now: float) -> float:
        times = self._recent(scope, now)
        return 0.0 if len(times) < limit else times[len(times) - limit] + WINDOW - now

    def count(self, scope: str, now: float) -> None:
        self._recent(scope, now).append(now)
        if now >= self._sweep_at:
            self._sweep_at = now + WINDOW
            self._times = {name: times for name, times in self._times.items() if self._recent(name, now)}

    def _recent(self, scope: str, now: float) -> deque[float]:
        times = self._times.setdefault(scope, deque())
        while times and times[0] + WINDOW <= now:
            times.popleft()
        return times


class KeyLimits:
    def __init__(self, limits: SandboxLimits) -> None:
        self._limits = limits
        self._windows = AlignedWindows() if limits.window == "aligned" else SlidingWindows()

    def admit(self, limit_class: LimitClass, record_id: str | None, now: float) -> Excess | None:
        """Count one request; or count nothing and give the full window with the longest wait."""
        scopes = self._limits.scopes(limit_class, record_id)
        waits = [Excess(limit, self._windows.wait(scope, limit, now)) for scope, limit in scopes]
        longest = max(waits, key=lambda excess: excess.wait, default=None)
        if longest is not None and longest.wait > 0:
            return longest
        for scope, _ in scopes:
            self._windows.count(scope, now)
        return None
