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
_NOTES: Final = 100


@attrs.define(eq=False)
class TrafficStep:
    """The requests and webhooks of one step, which begins `at` seconds since 1970."""

    at: float
    requests: dict[Outcome, int] = attrs.field(factory=dict)
    deliveries: int = 0
    """Webhooks whose first try was in it."""
    delivered: int = 0
    """Those among them that were accepted, then or later."""

    @property
    def total(self) -> int:
        """All requests of this step."""
        return sum(self.requests.values())


class Traffic:
    """The requests and webhooks of the last fifteen minutes, by steps."""

    def __init__(self) -> None:
        self._steps: dict[int, TrafficStep] = {}
        self._took: deque[tuple[float, float]] = deque(maxlen=_KEPT)
        self.notes: deque[tuple[float, object]] = deque(maxlen=_NOTES)
        """What was done, with its time: a text, a rule that was set, or how many seconds were skipped."""

    def add_request(self, at: float, outcome: Outcome) -> None:
        """Count a request."""
        requests = self._step(at).requests
        requests[outcome] = requests.get(outcome, 0) + 1

    def add_duration(self, at: float, seconds: float) -> None:
        """Note how long the answer to a request took that arrived `at`."""
        self._took.append((at, seconds))

    def add_try(self, first_at: float, *, is_first: bool, accepted: bool) -> None:
        """Count a webhook's try at the time of its first one, while that is remembered."""
        step = self._step(first_at) if is_first else self._steps.get(int(first_at // STEP))
        if step is not None:
            step.deliveries += is_first
            step.delivered += accepted

    def note(self, at: float, done: object) -> None:
        """Note what was done to the sandbox."""
        self.notes.append((at, done))

    def count(self, since: float, until: float) -> int | None:
        """The requests of a time; None unless it is of whole steps, all of them remembered."""
        newest = max(self._steps, default=0)
        if since // STEP <= newest - SECONDS / STEP or since % STEP or until % STEP:
            return None
        return sum(step.total for step in self._steps.values() if since <= step.at < until)

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
        self.notes.clear()

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
