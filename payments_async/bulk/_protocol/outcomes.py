"""The states of a row, and what became of rows: in one word each, in counts and in exact sums.

Pure (States; gaps H, I).

NEW ── take ──▶ IN_FLIGHT ── a 2xx, or the list shows it ──▶ CREATED ── retry-failed ──▶ NEW, next generation
 ▲                │  │  └─── refused, nothing in doubt ────▶ REJECTED ── edited, retry-failed ──▶ NEW
 └── given back ──┘  └────── no definite answer ───────────▶ IN_DOUBT ── take ──▶ IN_FLIGHT
NEW ── cancel ──▶ CANCELLED                    the list shows other content ──▶ CONFLICT
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from decimal import Context, Decimal, Inexact, InvalidOperation
from enum import IntEnum, StrEnum
from functools import reduce
from typing import Final, TypeVar

from ...models.statuses import PayoutEnd


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


class Outcome(StrEnum):
    """What became of a row, as far as the ledger knows. Each row has exactly one."""

    NOT_STARTED = "not_started"
    """It was never sent."""
    CANCELLED = "cancelled"
    """It was never sent, and will not be."""
    REJECTED = "rejected"
    """The service refused it: there is no payout."""
    UNDER_WAY = "under_way"
    """A request for it may be on its way."""
    IN_DOUBT = "in_doubt"
    """It is not known whether there is a payout."""
    CONFLICT = "conflict"
    """Its reference belongs to another payout, or to its own with other content."""
    NOT_FINAL = "not_final"
    """Its payout was created, and is not known to be final."""
    ARRIVED = "arrived"
    """Its payout has arrived."""
    FAILED = "failed"
    """Its payout has finally failed, and never arrived."""
    RETURNED = "returned"
    """Its payout had arrived, and the service now says that it was reversed, has failed or was cancelled."""


class ExtraPayout(StrEnum):
    """What a payout is that stands for no row, and has arrived or may still arrive."""

    MOVED_IN_CONFLICT = "moved_in_conflict"  # its row is in conflict
    IN_EXCESS = "in_excess"  # its row has another payout, or was not sent


_O = Outcome
CREATED: Final = (_O.NOT_FINAL, _O.ARRIVED, _O.FAILED, _O.RETURNED)
"""Outcomes of rows whose payouts were created."""
OPEN: Final = (_O.NOT_STARTED, _O.UNDER_WAY, _O.IN_DOUBT)
"""Outcomes of rows that a batch waits for."""
NOT_ARRIVED: Final = (_O.FAILED, _O.RETURNED)
"""Outcomes of rows whose payouts are final, and the recipients do not have the money."""
OF_STATE: Final[Mapping[RowState, tuple[Outcome, ...]]] = {
    RowState.NEW: (_O.NOT_STARTED,),
    RowState.CANCELLED: (_O.CANCELLED,),
    RowState.REJECTED: (_O.REJECTED,),
    RowState.IN_FLIGHT: (_O.UNDER_WAY,),
    RowState.IN_DOUBT: (_O.IN_DOUBT,),
    RowState.CONFLICT: (_O.CONFLICT,),
    RowState.CREATED: CREATED,
}
"""{state: the outcomes of rows in it}."""


def outcome_of(state: RowState, end: PayoutEnd, *, had_arrived: bool) -> Outcome:
    """The outcome of a row in this state, whose payout has ended so."""
    if state is not RowState.CREATED:
        return OF_STATE[state][0]
    if end is PayoutEnd.FAILED:
        return _O.RETURNED if had_arrived else _O.FAILED
    return _O.ARRIVED if end is PayoutEnd.ARRIVED else _O.NOT_FINAL


GROUPS: Final[Mapping[str, tuple[Outcome, ...]]] = {
    "asked": tuple(_O),
    **{outcome.value: (outcome,) for outcome in _O if outcome not in CREATED},
    "created": CREATED,
    **{outcome.value: (outcome,) for outcome in CREATED},
}
"""{word: the outcomes that it counts}, in the order of tables: each outcome, `asked` and `created`."""


def outcomes_of(words: Collection[str]) -> frozenset[Outcome]:
    """The outcomes that these words of `GROUPS` count. Raises ValueError for any other word."""
    if unknown := sorted({str(word) for word in words} - GROUPS.keys()):
        wrong, there = ", ".join(map(repr, unknown)), ", ".join(GROUPS)
        raise ValueError(f"no row is ever {wrong}; there are: {there}")
    return frozenset(outcome for word in words for outcome in GROUPS[word])


RowTotals = Mapping[tuple[Outcome, str], tuple[int, Decimal]]
"""{(outcome, currency): (its rows, the sum of their amounts in major units)}."""
ExtraTotals = Mapping[tuple[ExtraPayout, str], tuple[int, Decimal]]
"""{(what they are, currency): (payouts, the sum of their amounts in major units)}."""
P = TypeVar("P")
EXACT: Final = Context(prec=200, traps=[Inexact, InvalidOperation])
"""A context for exact sums: a sum that would be rounded raises instead."""

_NOTHING: Final = (0, Decimal(0))
_NONE: Final[ExtraTotals] = {}


def as_text(amount: Decimal) -> str:
    """Format an amount as plain digits, never with an exponent: `10.10`, `100`."""
    return format(amount, "f")


def brief(figures: object) -> str:
    """Format counts and sums for a repr: `{CREATED: 3}`, amounts as plain digits, without zeros."""
    if isinstance(figures, Mapping):
        pairs = [f"{name}: {brief(value)}" for name, value in figures.items() if value]
        return f"{{{', '.join(pairs)}}}"
    return as_text(figures) if isinstance(figures, Decimal) else str(figures)


def add_amount(sums: dict[str, Decimal], currency: str, amount: Decimal) -> None:
    sums[currency] = EXACT.add(sums.get(currency, _NOTHING[1]), amount)


def add_rows(totals: dict[P, tuple[int, Decimal]], group: P, rows: int, amount: Decimal) -> None:
    """Add the sum of rows to the totals of their group; below 0 to remove them."""
    count, total = totals.get(group, _NOTHING)
    totals[group] = (count + rows, EXACT.add(total, amount))


def count_rows(totals: RowTotals, *outcomes: Outcome) -> int:
    return sum(rows for (outcome, _), (rows, _) in totals.items() if outcome in outcomes)


def by_currency(totals: RowTotals) -> dict[str, Decimal]:
    """Sum over all outcomes: {currency: sum}."""
    sums: dict[str, Decimal] = {}
    for (_, currency), (_, amount) in totals.items():
        add_amount(sums, currency, amount)
    return sums


def counts_of(totals: RowTotals, extra: ExtraTotals = _NONE) -> dict[str, int]:
    """{word of `GROUPS`: its rows}, then {word of `ExtraPayout`: its payouts}."""
    rows = Counter[str]()
    for (word, _), (number, _) in (*totals.items(), *extra.items()):
        rows[word] += number
    counts = {word: sum(rows[outcome] for outcome in outcomes) for word, outcomes in GROUPS.items()}
    return {**counts, **{word.value: rows[word] for word in ExtraPayout}}


def sums_of(totals: RowTotals, extra: ExtraTotals = _NONE) -> dict[str, dict[str, Decimal]]:
    """{currency: {word of `GROUPS` and of `ExtraPayout`: its sum, major units}}."""
    found: dict[str, dict[str, Decimal]] = {}
    for currency in sorted({*by_currency(totals), *(code for _, code in extra)}):
        amounts = {outcome: totals.get((outcome, currency), _NOTHING)[1] for outcome in Outcome}
        found[currency] = {
            word: reduce(EXACT.add, (amounts[outcome] for outcome in outcomes), _NOTHING[1])
            for word, outcomes in GROUPS.items()
        }
        for word in ExtraPayout:
            found[currency][word.value] = extra.get((word, currency), _NOTHING)[1]
    return found


def sums_text(sums: Mapping[str, Mapping[str, Decimal]]) -> dict[str, dict[str, str]]:
    """The sums of `sums_of` as JSON values: amounts as text."""
    return {code: {word: as_text(amount) for word, amount in each.items()} for code, each in sums.items()}


def is_complete(totals: RowTotals) -> bool:
    """True if nothing is left to do: no row not started, under way or in doubt."""
    return count_rows(totals, *OPEN) == 0
