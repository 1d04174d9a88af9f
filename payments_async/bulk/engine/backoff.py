"""Rows whose posts failed in this run, each to be posted again after a back-off: 10 s, 20 s, 40 s, …"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..._runtime import Runtime
from ..protocol.decisions import post_again_after
from .doubts import UnresolvedQueue, UnresolvedRow


class BackOff:
    """Keeps the waiting rows. What was posted often enough goes to `look`, which asks the list."""

    def __init__(self, runtime: Runtime, look: Callable[[UnresolvedRow], object]) -> None:
        self._runtime, self._look = runtime, look
        self._waiting = UnresolvedQueue()
        self._times: dict[int, int] = {}
        """Of the rows that are posted again now: how often they were."""

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def due(self) -> float | None:
        """When the next row is to be posted, on the runtime's monotonic clock; None when none waits."""
        return self._waiting.due

    def add(self, number: int) -> None:
        """Take a row whose posts have failed under a key that is still trusted."""
        times = self._times.pop(number, 0)
        seconds = post_again_after(times)
        if seconds is None:
            self._look(UnresolvedRow(number))
        else:
            self._waiting.add(UnresolvedRow(number, times=times + 1), self._runtime.monotonic() + seconds)

    def take(self, size: int) -> Iterator[list[int]]:
        """The numbers of the rows that are due, so many at a time."""
        for doubts in self._waiting.take(self._runtime.monotonic()).groups(size):
            self._times.update((doubt.number, doubt.times) for doubt in doubts)
            yield [doubt.number for doubt in doubts]

    def settled(self, number: int) -> None:
        """Forget a row that is not under way any more, unless it waits again."""
        self._times.pop(number, None)

    def end(self) -> None:
        """Leave the rows that wait to the list: there is no time for another post."""
        for doubts in self._waiting.take().groups(500):
            for doubt in doubts:
                self._look(UnresolvedRow(doubt.number))
