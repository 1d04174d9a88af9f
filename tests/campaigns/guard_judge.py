"""Judges guarded payouts by the service's books: too full windows, and refusals that had room. Pure."""

from __future__ import annotations

import itertools
import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import attrs

MEASURES: Final[Mapping[str, Mapping[str, Any]]] = {
    "by creation": {"by_answer": False},
    "by answer": {"by_answer": True},
    "beyond a part of a window": {"by_answer": True, "part": 1 / 200, "late": 0.1},
}
"""How long an amount takes room."""
ROUNDING: Final = 2e-6
"""Of the sandbox's times, seconds."""

Payout = tuple[float, str, Decimal]
"""When it was made by the service's clock, currency and amount."""


def overfull(payouts: Iterable[Payout], sums: Sequence[tuple[str, str, int]]) -> list[str]:
    """Where the service made more than a sum allows in a window, wherever it begins: the worst of each."""
    made, found = sorted(payouts), []
    for currency, most, seconds in sums:
        mine = [(at, amount) for at, name, amount in made if name == currency]
        used, worst, oldest = Decimal(0), (Decimal(0), 0.0), 0
        over = 0
        for at, amount in mine:
            used += amount
            while mine[oldest][0] <= at - seconds + ROUNDING:
                used -= mine[oldest][1]
                oldest += 1
            worst = max(worst, (used, at))
            over += used > Decimal(most)
        if worst[0] > Decimal(most):
            found.append(
                f"{currency} {worst[0]} within {seconds} s, {most} allowed: the window that ends at "
                f"{worst[1]:.3f}; {over} payouts went over it"
            )
    return found


@attrs.frozen
class Hold:
    """The time for which one request takes room, as far as its calls show it."""

    currency: str
    amount: Decimal
    begins: float
    ended: float
    """When its last call ended; if nobody knows its outcome, when it counts as carried out."""
    made_at: float | None
    """When the service made the payout; None if it made none."""
    counts: bool
    """Whether it was carried out, or counts as if it was."""

    def ends(self, seconds: int, *, by_answer: bool, part: float = 0.0, late: float = 0.0) -> float:
        """When it leaves a window; `part` of a window and `late` seconds later than it might."""
        if not self.counts:
            return self.ended
        if by_answer or self.made_at is None:
            return self.ended + seconds * (1.0 + part) + late
        return max(self.ended, self.made_at + seconds)


def holds_of(
    lines: Iterable[Sequence[Any]], outboxes: Iterable[Any], made_at: Mapping[str, float], unknown: float
) -> list[Hold]:
    """What takes room, by logs and outboxes; what has no outcome counts as carried out after `unknown`."""
    calls: dict[str, list[Sequence[Any]]] = {}
    for line in lines:
        if line[6] in ("paid", "none", "doubt"):
            calls.setdefault(line[2], []).append(line)
    logged, found = {line[2] for line in lines}, []
    for key, mine in calls.items():
        asked, ended = min(line[0] for line in mine), max(line[1] for line in mine)
        results = {line[6] for line in mine}
        settled = results & {"paid"} or "doubt" not in results
        counts = "paid" in results or not settled
        until = ended if settled else max(line[0] for line in mine) + unknown
        amount = Decimal(mine[0][5])
        found.append(Hold(mine[0][4], amount, asked, until, made_at.get(key), counts))
    for at, request in outboxes:  # those of the dead, of which no call ever ended
        if (key := request["idempotency_key"]) not in logged:
            body = json.loads(request["body"])
            amount = Decimal(str(body["amount"]))
            found.append(Hold(body["currency"], amount, at, at + unknown, made_at.get(key), True))
    return found


class Room:
    """How much room of a window was taken, at any time of a span."""

    def __init__(self, uses: Sequence[tuple[float, float, Decimal]]) -> None:
        """`uses`: from when, until when, and how much."""
        self._begins, self._begun = _sums_by_time((begins, amount) for begins, _, amount in uses)
        self._ends, self._ended = _sums_by_time((ends, amount) for _, ends, amount in uses)

    def used(self, since: float, until: float) -> Decimal:
        """All that took room at any moment from `since` to `until`."""
        begun = self._begun[bisect_right(self._begins, until)]
        return begun - self._ended[bisect_left(self._ends, since)]


def _sums_by_time(amounts: Iterable[tuple[float, Decimal]]) -> tuple[list[float], list[Decimal]]:
    ordered = sorted(amounts)
    sums = itertools.accumulate((amount for _, amount in ordered), initial=Decimal(0))
    return [at for at, _ in ordered], [*sums]


def needless(
    holds: Sequence[Hold], refused: Sequence[Any], sums: Sequence[tuple[str, str, int]], **ends: Any
) -> int:
    """How many refusals of the sums had room in all windows of their currency, from question to answer."""
    rooms = {
        (currency, seconds): Room(
            [
                (each.begins, each.ends(seconds, **ends), each.amount)
                for each in holds
                if each.currency == currency
            ]
        )
        for currency, _, seconds in sums
    }
    count = 0
    for asked, told, _, _, currency, amount, *_ in refused:
        count += all(
            rooms[currency, seconds].used(asked, told) + Decimal(amount) <= Decimal(most)
            for name, most, seconds in sums
            if name == currency
        )
    return count
