"""What happened in the last fifteen minutes of the sandbox's time, counted as it happens.

The journal keeps the latest entries only: in a large batch they are of the last seconds.
Not safe for threads by itself: the sandbox's lock is held around every call.
"""

from __future__ import annotations

from collections import deque
from typing import Final, Literal

import attrs

Outcome = Literal["ok", "refused", "failed", "unanswered"]
"""What a request's caller got: 2xx, 3xx or 4xx, 5xx or what cannot be read, no (whole) answer."""

_LOST: Final = frozenset({"hang", "reset", "lost_request", "lost_response", "cut_body"})
"""Faults that keep an answer, or a part of it, from its caller."""
_UNREADABLE: Final = frozenset({"bad_json", "wrong_type", "empty"})
"""Faults that spoil an answer."""

SECONDS: Final = 900.0
STEP: Final = 30.0
"""Seconds that are counted together."""
_KEPT: Final = 5_000
"""Durations that are kept: those of the latest requests."""


@attrs.define(eq=False)
class TrafficStep:
    """The requests and webhooks of one step, which begins `at` seconds since 1970."""

    at: float
    requests: dict[Outcome, int] = attrs.field(factory=dict)
    delivered: int = 0
    undelivered: int = 0
    """Tries of webhooks that were not accepted."""

    @property
    def total(self) -> int:
        """All requests of this step."""
        return sum(self.requests.values())


class Traffic:
    """The requests and webhooks of the last fifteen minutes, by steps."""

    def __init__(self) -> None:
        self._steps: dict[int, TrafficStep] = {}
        self._took: deque[tuple[float, float]] = deque(maxlen=_KEPT)

    def add_request(self, at: float, outcome: Outcome) -> None:
        """Count a request."""
        requests = self._step(at).requests
        requests[outcome] = requests.get(outcome, 0) + 1

    def add_duration(self, at: float, seconds: float) -> None:
        """Note how long the answer to a request took that arrived `at`."""
        self._took.append((at, seconds))

    def add_try(self, at: float, *, accepted: bool) -> None:
        """Count a try of a webhook."""
        step = self._step(at)
        if accepted:
            step.delivered += 1
        else:
            step.undelivered += 1

    def steps(self, now: float) -> list[TrafficStep]:
        """The steps until now, oldest first; those in which nothing happened, too."""
        last = int(now // STEP)
        numbers = range(last - int(SECONDS / STEP) + 1, last + 1)
        return [self._steps.get(number) or TrafficStep(number * STEP) for number in numbers]

    def durations(self, now: float) -> list[float]:
        """The seconds that the latest requests took, the shortest first."""
        return sorted(seconds for at, seconds in self._took if at > now - SECONDS)

    def clear(self) -> None:
        """Forget everything."""
        self._steps.clear()
        self._took.clear()

    def _step(self, at: float) -> TrafficStep:
        number = int(at // STEP)
        step = self._steps.get(number)
        if step is None:
            oldest = number - SECONDS / STEP
            self._steps = {one: kept for one, kept in self._steps.items() if one > oldest}
            step = self._steps[number] = TrafficStep(number * STEP)
        return step


def outcome_of(status: int, fault: str | None) -> Outcome:
    """What became of a request for its caller, by the service's status, 0 for none, and the fault it met."""
    kind = fault.partition(":")[0] if fault else ""
    if status == 0 or kind in _LOST:
        return "unanswered"
    if status >= 500 or (status < 300 and kind in _UNREADABLE):
        return "failed"
    return "refused" if status >= 300 else "ok"
