"""When a list is read again, and what a wait is for, as a token too. Pure (Limits, Polling guidance).

After a reading comes a rest: 5 s at least, longer after unchanged readings, and 0.6 s for each page that was
read. A reading of more than 100 pages is spread over time. So any number of waits costs at most 1 % of the
read limit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Literal, Self

import attrs

from .._attrs import ValueMixin
from .._validation import rules
from ..errors import InvalidRequest
from ..params import operations

FLOOR = 5.0
"""Seconds: a transaction is never read more often."""
CEILING = 60.0
"""Seconds: the longest interval that unchanged answers lead to."""
PER_PAGE = 0.6
"""Seconds of rest for each page read: 100 pages a minute, 1 % of the read limit."""
PAGES_AT_ONCE = 100
"""Pages that one reading for waits takes without a rest."""
MAX_PAGES = 1_000
"""Pages of 100 records that one reading for waits takes at most."""

Kind = Literal["payout", "checkout", "attempt"]

_WANTED: Mapping[Kind, str] = {
    "payout": "a Payout, its id or a WaitTimeout's token",
    "checkout": "a Checkout, its id or a WaitTimeout's token",
    "attempt": "the payment's id or a WaitTimeout's token",
}
"""What each wait can be given."""


def interval(unchanged: int, pages: int, chance: float) -> float:
    """Seconds to the next reading: longer after so many unchanged ones and after many pages, with jitter."""
    grown = FLOOR * 1.5 ** min(unchanged, 10)
    return max(min(grown, CEILING), pages * PER_PAGE) * (1.0 + 0.2 * chance)


def page_due(began: float, pages: int) -> float:
    """When a reading that began then, and has so many pages, may ask for the next one."""
    return began if pages < PAGES_AT_ONCE else began + pages * PER_PAGE


class PollSchedule:
    """When one list is read again. Times are monotonic seconds."""

    def __init__(self) -> None:
        self.read_at = float("-inf")
        """When its last reading ended."""
        self._unchanged = self._pages = 0
        self._chance = 0.0

    def note(self, now: float, chance: float, *, pages: int, news: bool | None) -> None:
        """A reading has ended; `news`: whether a record had changed, None for one that was broken off."""
        self.read_at, self._chance, self._pages = now, chance, pages
        if news is not None:
            self._unchanged = 0 if news else self._unchanged + 1

    def note_record(self, now: float, chance: float) -> None:
        """A record of the list was just read by itself: the list can wait."""
        self.read_at, self._chance = max(now, self.read_at), chance

    def begin_anew(self) -> None:
        """Something new is waited for: the rests grow from the shortest again."""
        self._unchanged = 0

    @property
    def due(self) -> float:
        """When the list is to be read next."""
        return self.read_at + interval(self._unchanged, self._pages, self._chance)

    def rest(self, now: float, until: float) -> float | None:
        """Seconds to the next reading, which is to begin before `until`; None when it cannot.

        The last one comes early, where the floor allows, so that the time given is used.
        """
        earliest = max(now, self.read_at + interval(0, self._pages, 0.0))
        return None if earliest > until else max(earliest, min(self.due, until)) - now


@attrs.frozen(eq=False, repr=False)
class WaitTarget(ValueMixin):
    """What a wait is for. As JSON it is the token with which another process continues the wait."""

    kind: Kind
    id: str
    """The payout's, checkout's or payment intent's."""
    attempt_id: str | None = None
    created_at: datetime | None = None
    """Bounds the walk of the list, when known."""

    def token(self) -> str:
        """The target as JSON text."""
        at = self.created_at.isoformat() if self.created_at else None
        return json.dumps({"v": 1, "kind": self.kind, "id": self.id, "attempt": self.attempt_id, "at": at})

    @classmethod
    def read(cls, kind: Kind, given: object, attempt_id: str | None = None) -> Self:
        """The target that an id or a token names. Raises InvalidRequest."""
        if isinstance(given, str) and given.startswith("{"):
            target = cls._from_token(given)
            if target is not None and target.kind == kind:
                return target
            problem = f"is not the token of {'an' if kind == 'attempt' else 'a'} {kind}'s wait"
            raise InvalidRequest({"token": [problem]}, operation="wait")
        name = f"{'payment_intent' if kind == 'attempt' else kind}_id"
        faults = operations.id_problems({name: given})
        if not isinstance(given, str):
            faults[name] = [f"must be {_WANTED[kind]}, not {rules.kind(given)}"]
        if kind == "attempt":
            missing = {"attempt_id": ["is required"]}
            faults |= missing if attempt_id is None else operations.id_problems({"attempt_id": attempt_id})
        if faults:
            raise InvalidRequest(faults, operation="wait")
        return cls(kind, str(given), attempt_id)

    @classmethod
    def _from_token(cls, text: str) -> Self | None:
        try:
            tree = json.loads(text)
            if tree["v"] != 1 or operations.id_problems({"id": tree["id"]}):
                return None
            if tree["kind"] == "attempt" and operations.id_problems({"id": tree["attempt"]}):
                return None
            at = datetime.fromisoformat(tree["at"]) if tree["at"] else None
            return cls(tree["kind"], tree["id"], tree["attempt"], at)
        except (KeyError, TypeError, ValueError, RecursionError):
            return None
