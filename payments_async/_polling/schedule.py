"""When to read again, what is waited for, how a wait goes on elsewhere. Pure (Limits, Polling guidance).

After a reading comes a rest: 5 s at least, longer after unchanged readings, and 0.6 s for each page that was
read. So any number of waits costs at most 1 % of the read limit.
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
"""Seconds of rest for each page a sweep read: 100 pages a minute, 1 % of the read limit."""
MAX_PAGES = 1_000
"""Pages of 100 one sweep reads at most."""

Kind = Literal["payout", "checkout", "attempt"]

_WANTED: Mapping[Kind, str] = {
    "payout": "a Payout, its id or a WaitTimeout's token",
    "checkout": "a Checkout, its id or a WaitTimeout's token",
    "attempt": "the payment's id or a WaitTimeout's token",
}
"""What each wait can be given."""


def interval(unchanged: int, pages: int, chance: float) -> float:
    """Seconds to the next sweep: longer after so many unchanged ones and after many pages, with jitter."""
    grown = FLOOR * 1.5 ** min(unchanged, 10)
    return max(min(grown, CEILING), pages * PER_PAGE) * (1.0 + 0.2 * chance)


@attrs.frozen(eq=False, repr=False)
class WaitTarget(ValueMixin):
    """What a wait is for; as JSON, the token with which another process goes on."""

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
            told = f"is not the token of {'an' if kind == 'attempt' else 'a'} {kind}'s wait"
            raise InvalidRequest({"token": [told]}, operation="wait")
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
